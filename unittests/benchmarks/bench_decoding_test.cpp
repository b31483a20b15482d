// SPDX-License-Identifier: Apache-2.0
// `decoding`: what it counts does not depend on the number of threads.
#include "unittests/qec/model_text.h"
#include "unittests/support/program_paths.h"
#include "unittests/tools/common/interrupted_program.h"
#include "unittests/tools/decode/decode_test_support.h"

#include <gtest/gtest.h>

namespace cudaq::realtime::tools::test {
namespace {

/// The report without what differs from run to run.
nlohmann::json counts(const std::string &options) {
  auto report = run_good_program("decoding --json --predecoder local --dem " + std::string(CUDAQ_TEST_DATA) +
                                 "/surface_z_d5_p0.005.dem " + options);
  if (report.is_discarded())
    return {};
  for (auto &one : report.at("cases")) {
    one.erase("cpu_ns_per_shot");
    one.erase("shot_ns");
  }
  return {{"shots", report.at("shots")}, {"cases", report.at("cases")}};
}

TEST(BenchDecoding, CountsDoNotDependOnTheNumberOfThreads) {
  SKIP_WITHOUT_PYMATCHING();
  const auto one = counts("--shots 5000 --threads 1"); // not a multiple of a batch
  EXPECT_EQ(one.at("shots"), 5000);
  EXPECT_GT(one.at("cases").at(0).at("failures"), 10);
  EXPECT_EQ(counts("--shots 5000 --threads 3"), one);
  EXPECT_EQ(counts("--shots 5000 --threads 0"), one);
}

TEST(BenchDecoding, StopsAtTheSameShotWithAnyNumberOfThreads) {
  SKIP_WITHOUT_PYMATCHING();
  const auto one = counts("--shots 1000000 --failures 20 --threads 1");
  EXPECT_LT(one.at("shots"), 1000000);
  EXPECT_GE(one.at("cases").at(0).at("failures"), 20);
  EXPECT_EQ(counts("--shots 1000000 --failures 20 --threads 5"), one);
}

/// A chain of three detectors: what a shot knows says which of its errors are likely.
class BenchKnownShots : public decode_files_test {
protected:
  void SetUp() override {
    const std::string model = "error(0.001) D0 L0\nerror(0.001) D0 D1\nerror(0.001) D1 D2\nerror(0.001) D2\n";
    std::string listed, heralds = "detectors 7\n";
    for (const char *const k : {"0", "1", "2", "3"}) {
      listed += std::string("flag ") + k + " 2 " + k + " 0.5\n";
      heralds += std::string("herald ") + std::to_string(*k - '0' + 3) + " " + k + " 0.5\n";
    }
    file("model.dem", model);
    const std::string head = cudaq::qec::realtime::test::head_of_text("cudaq-realtime-readout 1", model);
    file("readout.txt", head +
                            "measurements 2\nflags 4\ngaussian 0 1 -1 0.7 0.5\nmisread 0 0.001 0 0\n"
                            "misread 3 0.001 1 0\n" +
                            listed);
    file("heralds.txt", cudaq::qec::realtime::test::heralds_text(model, heralds));
  }
  [[nodiscard]] nlohmann::json cases(const std::string &options) const {
    const auto report =
        run_good_program("decoding --json --shots 3000 --decoder bp-osd --dem " + path("model.dem") + " " + options);
    if (report.is_discarded())
      return {};
    nlohmann::json list;
    for (const auto &one : report.at("cases"))
      list.push_back({{"name", one.at("name")}, {"failures", one.at("failures")}});
    return list;
  }
};

TEST_F(BenchKnownShots, AreDecodedWithAndWithoutWhatTheyKnow) {
  const struct {
    std::string options;
    const char *name;
  } both[] = {{"--readout " + path("readout.txt") + " --leaked 0.1", "bp-osd with the readout"},
              {"--heralds " + path("heralds.txt") + " --erased 0.1", "bp-osd with heralds"}};
  for (const auto &[options, name] : both) {
    const nlohmann::json one = cases(options);
    ASSERT_EQ(one.size(), 2U) << options;
    EXPECT_EQ(one[0].at("name"), "bp-osd");
    EXPECT_EQ(one[1].at("name"), name);
    EXPECT_GT(one[0].at("failures").get<int>(), 10);
    EXPECT_LT(10 * one[1].at("failures").get<int>(), 9 * one[0].at("failures").get<int>()) << options;
    EXPECT_EQ(cases(options + " --threads 3"), one) << "it does not depend on the number of threads";
  }
  const auto refused = [&](const std::string &options, const std::string &text) {
    const program_result r = run_program("decoding --dem " + path("model.dem") + " " + options);
    EXPECT_EQ(r.exit_code, 2) << options;
    EXPECT_TRUE(contains(r.err, text)) << options << ": " << r.err;
  };
  refused(both[0].options + " --decoder lookup", "--decoder lookup: what the shots know: ");
  refused(both[0].options + " --dem " + path("model.dem"), "name one file for --dem");
  refused(both[0].options + " --errors 2", "excludes");
  refused("--readout " + path("heralds.txt"), "heralds.txt: line 1");
  refused("--heralds " + path("readout.txt"), "readout.txt: line 1");
}

TEST(BenchDecoding, LateAnswersAreFailures) {
  const auto report = run_good_program("decoding --json --shots 500 --decoder lookup:deadline_us=0.001 --dem " +
                                       std::string(CUDAQ_TEST_DATA) + "/surface_z_d3_p0.005.dem");
  ASSERT_FALSE(report.is_discarded());
  EXPECT_EQ(report.at("cases").at(0).at("late"), 500);
  EXPECT_EQ(report.at("cases").at(0).at("unanswered"), 0);
  EXPECT_EQ(report.at("cases").at(0).at("failures"), 500);
}

TEST(BenchDecoding, CountsALateShotWithoutASolutionOnce) {
  const auto report = run_good_program(
      "decoding --json --shots 500 --predecoder none --dem " + std::string(CUDAQ_TEST_DATA) +
      "/surface_z_d3_p0.005.dem --decoder relay-bp:pre_iter=2,num_sets=0,set_max_iter=1,deadline_us=0.001");
  ASSERT_FALSE(report.is_discarded());
  const auto &c = report.at("cases").at(0);
  EXPECT_GT(c.at("unanswered"), 0);
  EXPECT_LE(c.at("unanswered").get<int>() + c.at("late").get<int>(), 500);
  EXPECT_LE(c.at("unanswered").get<int>() + c.at("late").get<int>(), c.at("failures").get<int>());
}

TEST(BenchDecoding, RefusesADecoderOfOtherDetectorsThanTheModelHas) {
  const scratch_folder scratch;
  const std::string model = scratch.path() / "model.dem", heralds = scratch.path() / "heralds.txt";
  const std::string text = "error(0.1) D0\nerror(0.1) D1 L0\n";
  std::ofstream(model) << text;
  std::ofstream(heralds) << cudaq::qec::realtime::test::heralds_text(text, "detectors 3\nherald 1 1 0.5\n");
  const program_result run =
      run_program("decoding --shots 10 --dem " + model + " --decoder bp-osd 'bp-osd:heralds=" + heralds + "'");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_TRUE(contains(run.err, "it decodes shots of 3 detectors, those sampled from " + model + " have 2")) << run.err;
}

TEST(BenchDecoding, HasTheTailOfADecoderThatGivesUpAndCountsItsShotsApart) {
  const scratch_folder scratch;
  const std::string page = scratch.path() / "page.html";
  const program_result run = run_program(
      "decoding --json --shots 500 --predecoder none --decoder relay-bp:pre_iter=2,num_sets=0,set_max_iter=1 "
      "lookup:deadline_us=0.001 lookup --dem " +
      std::string(CUDAQ_TEST_DATA) + "/surface_z_d3_p0.005.dem --html " + page);
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const auto cases = run.json().at("cases");
  ASSERT_EQ(cases.size(), 3);
  for (const auto &c : cases) {
    EXPECT_EQ(c.at("shot_ns").at("count"), 500) << "also those without a solution";
    EXPECT_LE(c.at("shot_ns").at("p50"), c.at("shot_ns").at("p99.9"));
    EXPECT_GE(c.at("failures"), c.at("unanswered"));
    EXPECT_EQ(c.at("refused").get<int>() + c.at("decoder_failures").get<int>(), 0);
  }
  EXPECT_EQ(run.json().at("schema_version"), 2);
  EXPECT_GT(cases.at(0).at("not_converged"), 0);
  EXPECT_EQ(cases.at(0).at("not_converged"), cases.at(0).at("unanswered"));
  EXPECT_EQ(cases.at(1).at("deadline_missed"), 500);
  EXPECT_EQ(cases.at(1).at("not_converged"), 0);
  const std::string html = read_file(page);
  EXPECT_FALSE(contains(html, "Good: every check passed")) << "no green result over shots without an answer";
  const auto without_answer = cases.at(0).at("unanswered").get<int>() + cases.at(1).at("unanswered").get<int>() +
                              cases.at(1).at("late").get<int>();
  EXPECT_TRUE(contains(html, "Complete, but " + std::to_string(without_answer) +
                                 " decodes have no answer or a late one: failures of the rate"));
  EXPECT_TRUE(contains(html, "<th>not converged</th>"));
  const program_result text = run_program(
      "decoding --shots 500 --predecoder none --decoder relay-bp:pre_iter=2,num_sets=0,set_max_iter=1 --dem " +
      std::string(CUDAQ_TEST_DATA) + "/surface_z_d3_p0.005.dem");
  EXPECT_TRUE(contains(text.out, "  time of a shot  ")) << text.out;
  EXPECT_TRUE(contains(text.out, " not converged\n")) << text.out;
}

// The plug-in throws nothing, but breaks the contract: its status is not one of a decode.
TEST(BenchDecoding, CountsAShotInWhichTheDecoderFailsApart) {
  const scratch_folder scratch;
  const std::string model = scratch.path() / "broken.dem";
  std::ofstream(model) << "error(0.5) D0 L0\n";
  const auto report = run_good_program("decoding --json --shots 100 --predecoder none --dem " + model + " --decoder " +
                                       std::string(CUDAQ_TEST_BREAKING_PLUGIN) + ":break=status");
  ASSERT_FALSE(report.is_discarded());
  const auto &c = report.at("cases").at(0);
  EXPECT_GT(c.at("decoder_failures"), 0);
  EXPECT_EQ(c.at("decoder_failures"), c.at("unanswered"));
  EXPECT_EQ(c.at("refused"), 0);
  const std::string why = "plug-in breaking: decode returned 17, accepted: ";
  EXPECT_TRUE(contains(c.at("first_fault"), why)) << c;
  const program_result text = run_program("decoding --shots 100 --predecoder none --dem " + model + " --decoder " +
                                          std::string(CUDAQ_TEST_BREAKING_PLUGIN) + ":break=status");
  EXPECT_TRUE(contains(text.out, why)) << text.out;
}

TEST(BenchDecoding, AnotherSeedSendsOtherShots) {
  SKIP_WITHOUT_PYMATCHING();
  EXPECT_NE(counts("--shots 5000 --seed 6"), counts("--shots 5000"));
  EXPECT_NE(counts("--shots 5000 --errors 6"), counts("--shots 5000"));
}

// The plug-in sleeps a second in each shot with detector 4, which half of the shots have. It takes models whose error k
// flips detector k.
nlohmann::json slow_run_after_a_signal(const scratch_folder &scratch, const std::vector<std::string> &more) {
  const std::string model = scratch.path() / "slow.dem";
  std::ofstream(model) << "error(0) D0\nerror(0) D1\nerror(0) D2\nerror(0) D3\nerror(0.5) D4 L0\n";
  std::vector<std::string> words{"decoding", "--dem", model, "--decoder",
                                 std::string(CUDAQ_TEST_EARLY_PLUGIN) + ":deadline_us=1000000000"};
  words.insert(words.end(), more.begin(), more.end());
  return report_after(SIGINT, words);
}

TEST(BenchDecoding, EndsSoonInABatchOfSlowShotsAndCountsThem) {
  const scratch_folder scratch;
  const std::string csv = scratch.path() / "counts.csv";
  for (const char *threads : {"1", "2"}) {
    const auto report =
        slow_run_after_a_signal(scratch, {"--predecoder", "none", "--csv", csv + threads, "--threads", threads});
    const auto added = report.value("added_shots", std::size_t{0});
    EXPECT_GE(added, 1U);
    EXPECT_LT(added, 50U);
    const auto kept = run_good_program("decoding --json --csv " + csv + threads);
    EXPECT_EQ(kept.at("points").at(0).at("shots"), added);
    EXPECT_EQ(kept.at("points").at(0).at("failures"), 0);
  }
}

TEST(BenchDecoding, LeavesOutABatchThatNotAllCasesHaveDecoded) {
  const scratch_folder scratch;
  const auto report = slow_run_after_a_signal(scratch, {"lookup", "--predecoder", "none"});
  EXPECT_EQ(report.value("shots", 1), 0);
  EXPECT_TRUE(report.value("cases", nlohmann::json::array({1})).empty());
}

} // namespace
} // namespace cudaq::realtime::tools::test
