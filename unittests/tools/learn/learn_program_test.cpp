// SPDX-License-Identifier: Apache-2.0
// `cudaq-realtime learn`: the rates of a model's errors, from detection events.
#include "unittests/support/program_paths.h"
#include "unittests/tools/decode/decode_test_support.h"

#include <gtest/gtest.h>

#include <cmath>

namespace cudaq::realtime::tools::test {
namespace {

// Two detectors; with the numbers of shots() the rates are 0.1, 0.05 and 0.02.
constexpr const char *kModel = "# a comment\ndetector(1, 2) D0\nerror(0.2) D0 D1 L0\nerror(0.02) D0\nerror(0.05) D1\n";

class LearnProgram : public decode_files_test {
protected:
  void SetUp() override { file("model.dem", kModel); }

  /// Lines of the format 01, with each kind of shots evenly among the others.
  static std::string shots(std::size_t count = 20000) {
    const double p[] = {0.1, 0.05, 0.02};
    double of[4] = {}, due[4] = {};
    for (int errors = 0; errors < 8; ++errors) {
      double both = 1;
      for (int k = 0; k < 3; ++k)
        both *= (errors >> k & 1) != 0 ? p[k] : 1 - p[k];
      const int pair = errors & 1;
      of[(pair ^ (errors >> 1 & 1)) + 2 * (pair ^ (errors >> 2))] += both;
    }
    std::string text;
    for (std::size_t k = 0; k < count; ++k) {
      for (int shot = 0; shot < 4; ++shot)
        due[shot] += of[shot] * (0.5 + static_cast<double>(k * 7919 % 101) / 100.0);
      const auto next = static_cast<int>(std::max_element(due, due + 4) - due);
      due[next] -= 1;
      text += next & 1 ? '1' : '0';
      text += next & 2 ? "1\n" : "0\n";
    }
    return text;
  }
  [[nodiscard]] program_result learn(const std::string &more) const {
    return run_program("learn --dem " + path("model.dem") + " " + more);
  }
  void expect_refused(const std::string &options, const std::string &text, int status = 2) const {
    const program_result r = learn(options);
    EXPECT_EQ(r.exit_code, status) << options;
    EXPECT_TRUE(contains(r.err, text)) << options << "\n" << r.err;
  }
};

TEST_F(LearnProgram, WritesTheModelWithTheRatesOfTheShots) {
  const program_result r = learn("--in " + file("shots.01", shots()) + " --held-out 0.3 --out " + path("learned.dem"));
  ASSERT_EQ(r.exit_code, 0) << r.err;
  EXPECT_TRUE(contains(r.out, "learned         from 14112 shots")) << r.out;
  EXPECT_TRUE(contains(r.out, "sigma better")) << r.out;
  const std::string text = read_file(path("learned.dem"));
  double pair = 0, first = 0, second = 0;
  ASSERT_EQ(std::sscanf(text.c_str(),
                        "# a comment\ndetector(1, 2) D0\nerror(%lf) D0 D1 L0\nerror(%lf) D0\nerror(%lf) D1", &pair,
                        &first, &second),
            3)
      << text;
  EXPECT_NEAR(pair, 0.1, 0.005);
  EXPECT_NEAR(first, 0.05, 0.005);
  EXPECT_NEAR(second, 0.02, 0.005);
}

TEST_F(LearnProgram, ReportsEachErrorAndEachDetectorAsJson) {
  const program_result r = learn("--held-out 0 --json --in " + file("shots.01", shots()));
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const auto report = nlohmann::json::parse(r.out);
  EXPECT_EQ(report.at("shots"), 20000);
  EXPECT_EQ(report.at("held_out_shots"), 0);
  EXPECT_FALSE(report.contains("score"));
  ASSERT_EQ(report.at("errors").size(), 3u);
  const auto &pair = report.at("errors")[0];
  EXPECT_EQ(pair.at("error"), 0);
  EXPECT_EQ(pair.at("line"), 3);
  EXPECT_EQ(pair.at("model"), 0.2);
  EXPECT_TRUE(pair.at("resolved").get<bool>());
  EXPECT_LT(pair.at("low").get<double>(), 0.1);
  EXPECT_GT(pair.at("high").get<double>(), 0.1);
  ASSERT_EQ(report.at("detectors").size(), 2u);
  EXPECT_NEAR(report.at("detectors")[0].at("rate").get<double>(), 0.14, 0.005);
  EXPECT_LT(report.at("detectors")[0].at("sigmas").get<double>(), -5);
}

TEST_F(LearnProgram, TiesTheErrorsOfAGroup) {
  const std::string head = "cudaq-realtime-tied 1\nmodel ";
  file("groups.txt", head + "00000000\ntie all 0 1 2\n");
  const std::string in = "--in " + file("shots.01", shots());
  expect_refused(in + " --tied " + path("groups.txt"), "groups.txt: line 2: the file is for the model");
  const std::string wrong = learn(in + " --tied " + path("groups.txt")).err;
  const std::size_t at = wrong.find("the CRC-32 "); // the text names the model that it is
  ASSERT_NE(at, std::string::npos) << wrong;
  file("groups.txt", head + wrong.substr(at + 11, 8) + "\ntie all 0 1 2\n");
  const program_result r = learn(in + " --json --tied " + path("groups.txt"));
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const auto errors = nlohmann::json::parse(r.out).at("errors");
  const double factor = errors[0].at("rate").get<double>() / 0.2;
  EXPECT_LT(factor, 1);
  EXPECT_NEAR(errors[1].at("rate").get<double>() / 0.02, factor, 0.1 * factor);
  file("groups.txt", head + wrong.substr(at + 11, 8) + "\ntie all 0 3\n");
  expect_refused(in + " --tied " + path("groups.txt"), "error 3 of a group of tied errors is not in the model");
}

TEST_F(LearnProgram, LeavesTheModelAsItIsIfTheDataMustNotChangeIt) {
  std::string stuck;
  for (int k = 0; k < 5000; ++k)
    stuck += k % 10 != 0 ? "01\n" : "11\n";
  const std::string out = " --out " + path("learned.dem");
  expect_refused("--in " + file("stuck.01", stuck) + out,
                 "the model stays as it is: detector 1 fires in 1 of the shots", 1);
  expect_refused("--in " + file("few.01", shots(100)) + out, "too few shots: 100, needed: 1000", 1);
  EXPECT_FALSE(std::filesystem::exists(path("learned.dem")));
  const auto report = nlohmann::json::parse(learn("--json --in " + path("stuck.01")).out);
  EXPECT_EQ(report.at("exit_status"), 1);
  EXPECT_EQ(report.at("refusals").size(), 1u) << report.at("refusals");
}

TEST_F(LearnProgram, RefusesFilesThatCannotBeUsed) {
  const std::string in = "--in " + file("shots.01", shots(100));
  expect_refused("--in " + path("none.01"), "none.01");
  expect_refused("--in " + file("empty.01", ""), "there are no shots");
  expect_refused("--in " + file("wide.01", "010\n"), "wide.01: shot 0");
  expect_refused(in + " --out " + path("none/learned.dem"), "--out: cannot write ");
  expect_refused(in + " --out " + path("model.dem"), "model.dem"); // it is read
  EXPECT_EQ(read_file(path("model.dem")), kModel);
  expect_refused(in + " --held-out 1", "--held-out");
  expect_refused(in + " --prior 1", "--prior");
  file("model.dem", "error(0.1) L0\n");
  expect_refused(in, "the model has no detectors");
  file("model.dem", "error(0.5) D0 D1\n");
  expect_refused("--in " + path("none.01"), // before a shot is read
                 "line 1: the error has probability 0.5; rates are learned of errors of at most 0.4");
  file("model.dem", "mistake(0.5) D0 D1\n");
  expect_refused(in, "model.dem: line 1: ");
}

TEST_F(LearnProgram, ReadsShotsWithTheirObservables) {
  std::string with_observables;
  const std::string plain = shots(4000);
  for (std::size_t k = 0; k < plain.size(); k += 3)
    with_observables += plain.substr(k, 2) + "1\n";
  const program_result r = learn("--in_includes_appended_observables --json --in " + file("more.01", with_observables));
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const auto plain_report = nlohmann::json::parse(learn("--json --in " + file("shots.01", plain)).out);
  EXPECT_EQ(nlohmann::json::parse(r.out).at("errors"), plain_report.at("errors"));
}

} // namespace
} // namespace cudaq::realtime::tools::test
