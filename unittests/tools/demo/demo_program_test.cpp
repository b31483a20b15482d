// SPDX-License-Identifier: Apache-2.0
// The demo on small codes, with each wait strategy, pool and ring layout.
#include "unittests/support/program_paths.h"
#include "unittests/tools/common/run_program.h"

#include <algorithm>
#include <gtest/gtest.h>

namespace cudaq::realtime::tools::test {
namespace {

/// Runs one pass and checks what every good run has in common.
nlohmann::json run_good_demo(const std::string &options) {
  auto j = run_good_program("demo --json --data '" + std::string(CUDAQ_TEST_DATA) + "' " + options);
  if (j.is_discarded())
    return j;
  for (const auto &p : j.at("passes")) {
    EXPECT_EQ(p.at("shots_sent"), p.at("shots_answered")) << options;
    for (const char *zero : {"mismatches", "wrong_frames", "error_statuses", "lost", "duplicates", "drops"})
      EXPECT_EQ(p.at(zero), 0) << options << " " << zero;
    EXPECT_EQ(p.at("dispatcher").at("responded"), p.at("shots_sent")) << options;
    EXPECT_EQ(p.at("dispatcher_processed"), p.at("shots_sent")) << options;
  }
  return j;
}

struct variant {
  const char *wait;
  const char *workers;
  const char *layout;
};

class DemoVariants : public ::testing::TestWithParam<variant> {};

TEST_P(DemoVariants, AnswersEveryShotRight) {
  const variant &v = GetParam();
  const auto j = run_good_demo(std::string("--config d3 --shots 2000 --rate 0 --wait ") + v.wait + " --workers " +
                               v.workers + " " + v.layout);
  ASSERT_FALSE(j.is_discarded());
  EXPECT_EQ(j.at("passes").at(0).at("shots_sent"), 2000);
}

INSTANTIATE_TEST_SUITE_P(Demo, DemoVariants,
                         ::testing::Values(variant{"spin", "0", ""}, variant{"spin", "0", "--in-place"},
                                           variant{"spin", "2", ""}, variant{"spin", "2", "--in-place"},
                                           variant{"yield", "0", ""}, variant{"yield", "0", "--in-place"},
                                           variant{"yield", "2", ""}, variant{"yield", "2", "--in-place"},
                                           variant{"block", "0", ""}, variant{"block", "0", "--in-place"},
                                           variant{"block", "2", ""}, variant{"block", "2", "--in-place"}));

TEST(Demo, AgreesWithPyMatchingsLogicalErrorsOnALargerCode) {
  const auto j = run_good_demo("--config d7 --shots 1600 --decoder auto --rate 0");
  ASSERT_FALSE(j.is_discarded());
  if (j.at("decoder").at("name") != "pymatching")
    GTEST_SKIP() << "PyMatching is not built in";
  const auto &p = j.at("passes").at(0);
  EXPECT_EQ(p.at("differences_from_pymatching"), 0);
  EXPECT_EQ(p.at("logical_errors"), p.at("pymatching_offline_logical_errors"));
  EXPECT_GT(p.at("logical_errors").get<int>(), 0) << "a set without logical errors compares nothing";
}

TEST(Demo, RunsAFastPassAndAPacedOneByDefault) {
  const auto j = run_good_demo("--config d3 --shots 1000");
  ASSERT_FALSE(j.is_discarded());
  ASSERT_EQ(j.at("passes").size(), 2u);
  EXPECT_EQ(j.at("passes").at(0).at("cadence_ns"), 0);
  EXPECT_GT(j.at("passes").at(1).at("cadence_ns").get<double>(), 0);
  EXPECT_TRUE(j.at("passes").at(1).contains("latency_since_due_ns"));
}

TEST(Demo, SendsNoFasterThanTheCadenceForTheDuration) {
  int max_sent = 0;
  for (int run = 0; run < 5 && max_sent < 150; ++run) {
    const auto j = run_good_demo("--config d3 --rate 1000 --duration 0.3");
    ASSERT_FALSE(j.is_discarded());
    const int sent = j.at("passes").at(0).at("shots_sent").get<int>();
    EXPECT_LE(sent, 301);
    max_sent = std::max(max_sent, sent);
  }
  EXPECT_GE(max_sent, 150) << "300 on a quiet machine; a thread that loses its core near the end leaves shots unsent";
}

TEST(Demo, ServesOneSlotTwoClientThreadsAndAShuffledSet) {
  run_good_demo("--config d3 --shots 500 --rate 0 --slots 1");
  run_good_demo("--config d3 --shots 2000 --rate 0 --slots 3 --client-threads 2 --workers 2");
  run_good_demo("--config d3 --shots 1000 --rate 0 --seed 42 --client-threads 2 --noise 0.003");
}

// The demo must detect and report wrong golden answers and unreadable data.

namespace fs = std::filesystem;
constexpr char kSet[] = "surface_z_d3_p0.005";

class DemoFailures : public ::testing::Test {
protected:
  DemoFailures() {
    for (const auto &entry : fs::directory_iterator(CUDAQ_TEST_DATA))
      if (entry.path().filename().string().rfind(kSet, 0) == 0)
        fs::copy_file(entry.path(), scratch_.path() / entry.path().filename());
  }
  [[nodiscard]] fs::path file(const std::string &suffix) const { return scratch_.path() / (kSet + suffix); }
  void flip_bit(const std::string &suffix, std::size_t byte) {
    std::string content = read_file(file(suffix));
    content.at(byte) = static_cast<char>(content.at(byte) ^ 1);
    std::ofstream(file(suffix), std::ios::binary) << content;
  }
  [[nodiscard]] program_result run(const std::string &options) const {
    return run_program("demo --config d3 --noise 0.005 --shots 1000 --rate 0 --data '" + scratch_.path().string() +
                       "' " + options);
  }
  [[nodiscard]] static bool has_pymatching() {
    return run_program("info --json").json().at("pieces").at("PyMatching").at("present") == true;
  }
  scratch_folder scratch_;
};

TEST_F(DemoFailures, PassesOnAnUntouchedCopy) { EXPECT_EQ(run("").exit_code, 0); }

TEST_F(DemoFailures, FailsWhenOneGoldenAnswerIsWrongAndNamesTheShot) {
  if (!has_pymatching())
    GTEST_SKIP() << "PyMatching is not built in: the lookup decoder is judged by its own offline answers";
  flip_bit(".pred.b8", 123);
  const program_result r = run("--json");
  EXPECT_EQ(r.exit_code, 1) << r.out;
  EXPECT_TRUE(contains(r.err, "shot 123 of the set")) << r.err;
  const auto j = r.json();
  ASSERT_FALSE(j.is_discarded()) << "a failed run must print its report too";
  EXPECT_EQ(j.at("ok"), false);
  EXPECT_EQ(j.at("passes").at(0).at("mismatches"), 1);
}

TEST_F(DemoFailures, WarnsIfTheDecoderMakesMoreLogicalErrorsThanTheReferenceBeyondChance) {
  const auto reference = [this] {
    const program_result r = run("--decoder lookup --json --html '" + (scratch_.path() / "page.html").string() + "'");
    EXPECT_EQ(r.exit_code, 0) << r.err;
    return r.json().at("reference");
  };
  const auto equal = reference();
  EXPECT_EQ(equal.at("beyond_chance"), false) << equal;
  EXPECT_EQ(equal.at("warning"), "");
  EXPECT_GT(equal.at("decoder_logical_errors"), 8);
  EXPECT_FALSE(contains(read_file(scratch_.path() / "page.html"), "Warning: "));

  fs::copy_file(file(".obs.b8"), file(".pred.b8"), fs::copy_options::overwrite_existing); // a reference without errors
  const auto worse = reference();
  EXPECT_EQ(worse.at("beyond_chance"), true) << worse;
  EXPECT_EQ(worse.at("decoder_logical_errors"), equal.at("decoder_logical_errors"));
  EXPECT_EQ(worse.at("reference_logical_errors"), 0);
  EXPECT_TRUE(contains(read_file(scratch_.path() / "page.html"), "Warning: lookup makes more logical errors than"));
  const program_result text = run("--decoder lookup");
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_TRUE(contains(text.out, "warning: lookup makes more logical errors than PyMatching's published predictions"))
      << text.out;
  EXPECT_TRUE(contains(text.out, "ok: every shot answered once, every answer as the same decoder offline"));
}

TEST_F(DemoFailures, CountsADifferenceFromPyMatchingBesideTheLookupDecodersOwnAnswers) {
  const auto count = [this] {
    const program_result r = run("--decoder lookup --json");
    EXPECT_EQ(r.exit_code, 0) << r.err;
    return r.json().at("passes").at(0).at("differences_from_pymatching").get<int>();
  };
  const int before = count();
  flip_bit(".pred.b8", 123);
  EXPECT_EQ(std::abs(count() - before), 1);
}

TEST_F(DemoFailures, NamesTheFileThatItCannotUseAndTheSetsThatThereAre) {
  const auto expect_refused = [](const program_result &r, const std::string &text) {
    EXPECT_EQ(r.exit_code, 2) << text;
    EXPECT_TRUE(contains(r.err, text)) << r.err;
  };
  expect_refused(run_program("demo --config d4 --data '" + scratch_.path().string() + "'"), kSet);
  fs::resize_file(file(".dets.b8"), fs::file_size(file(".dets.b8")) - 1);
  expect_refused(run(""), "dets.b8");
  fs::remove(file(".dem"));
  expect_refused(run(""), ".dem");
}

// The C library reserves 64 MiB of addresses for each thread that allocates, and tries it again at each allocation.
TEST(Demo, IsNotSlowIfAddressesAreLimited) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "AddressSanitizer needs more addresses than this test allows";
#endif
  if (run_program("demo --decoder pymatching --config d3 --shots 1").exit_code != 0)
    GTEST_SKIP() << "this build has no PyMatching";
  const scratch_folder scratch;
  const auto err = scratch.path() / "err";
  const auto time_with = [&](const std::string &limit) {
    const std::string command = limit + kWithLimit + "'" + CUDAQ_TOOL_PATH +
                                "' demo --config d13 --shots 1500 --data '" + CUDAQ_TEST_DATA + "' >/dev/null 2>'" +
                                err.string() + "'";
    const auto begin = std::chrono::steady_clock::now();
    const int status = std::system(command.c_str());
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << limit << status << read_file(err);
    return std::chrono::steady_clock::now() - begin;
  };
  const auto unlimited = time_with("");
  EXPECT_LT(time_with("ulimit -v 60000 && "), 10 * unlimited + std::chrono::seconds(20)) << "it took minutes";
}

// Too few even for the threads: an allocation that fails ends it with a text.
TEST(Demo, EndsWithATextIfMemoryIsMissing) {
  const scratch_folder scratch;
  const auto err = scratch.path() / "err";
  for (const char *kib : {"26000", "29000", "31000", "33000"}) {
    const std::string command = std::string("ulimit -v ") + kib + " && " + kWithLimit + "'" + CUDAQ_TOOL_PATH +
                                "' demo --config d13 --shots 20 --data '" + CUDAQ_TEST_DATA + "' >/dev/null 2>'" +
                                err.string() + "'";
    const int status = std::system(command.c_str());
    ASSERT_TRUE(WIFEXITED(status)) << kib << ": " << status;
    EXPECT_NE(WEXITSTATUS(status), 124) << kib << " KiB: it does not end";
    EXPECT_TRUE(WEXITSTATUS(status) == 0 || !read_file(err).empty()) << kib << " KiB";
  }
}

} // namespace
} // namespace cudaq::realtime::tools::test
