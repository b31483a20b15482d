// SPDX-License-Identifier: Apache-2.0
#include "unittests/support/program_paths.h"
#include "unittests/tools/common/json_schema.h"
#include "unittests/tools/common/run_program.h"

#include <cmath>
#include <gtest/gtest.h>

namespace cudaq::realtime::tools::test {
namespace {

class Compare : public testing::Test {
protected:
  /// A report of `latency` with one case, as a file. `p50` and `rate` are those of its rounds.
  std::string report(const std::string &name, const std::vector<double> &p50, double rate = 1e6,
                     const nlohmann::json &changes = nlohmann::json::object()) const {
    nlohmann::json j = {{"schema_version", 1},
                        {"tool", "cudaq-realtime"},
                        {"command", "latency"},
                        {"version", "0.1.0"},
                        {"date", "2025-01-31T12:34:56Z"},
                        {"ok", true},
                        {"machine", {{"cpu_model", "a processor"}}},
                        {"method", {{"slots", 64}}}};
    const double middle = p50[p50.size() / 2];
    j["cases"] = {{{"name", "host_call"},
                   {"per_second", rate},
                   {"round_per_second", std::vector<double>(p50.size(), rate)},
                   {"round_p50_ns", p50},
                   {"latency_ns", {{"count", 9}, {"p50", middle}, {"p99", 2 * middle}, {"max", 90 * middle}}}}};
    j.update(changes);
    const auto path = folder_.path() / name;
    std::ofstream(path) << j;
    return path.string();
  }
  std::string file(const std::string &name) const { return (folder_.path() / name).string(); }

  static void expect_refusal(const std::string &arguments, const std::string &text) {
    const program_result r = run_program("compare " + arguments);
    EXPECT_EQ(r.exit_code, 2) << arguments << "\n" << r.out;
    EXPECT_TRUE(contains(r.err, text)) << arguments << "\n" << r.err;
  }

private:
  scratch_folder folder_;
};

/// The figure of the first compared report.
nlohmann::json figure(const nlohmann::json &report, const std::string &of, const std::string &what) {
  for (const auto &f : report.at("compared").at(0).at("figures"))
    if (f.at("of") == of && f.at("what") == what)
      return f;
  ADD_FAILURE() << of << " " << what << " is not in " << report;
  return {};
}

TEST_F(Compare, TheSameIsTheSame) {
  const auto a = report("a.json", {100, 101, 99, 100});
  const auto j = run_good_program("compare " + a + " " + a + " --json");
  EXPECT_EQ(j.at("compared_command"), "latency");
  EXPECT_EQ(figure(j, "host_call latency_ns", "p50").at("verdict"), "same");
  EXPECT_EQ(figure(j, "host_call latency_ns", "p50").at("ratio"), 1.0);
  EXPECT_EQ(figure(j, "host_call latency_ns", "p99").at("judged"), false);
  EXPECT_EQ(json_schema(nlohmann::json::parse(read_file(CUDAQ_REPORT_SCHEMA))).problems_of(j),
            std::vector<std::string>{});
}

TEST_F(Compare, ASlowerRunEndsWithOne) {
  const auto a = report("a.json", {100, 101, 99, 100}), b = report("b.json", {130, 131, 129, 130});
  const program_result r = run_program("compare " + a + " " + b + " --json");
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_TRUE(contains(r.err, "worse: host_call latency_ns p50 (1.30)")) << r.err;
  const auto p50 = figure(r.json(), "host_call latency_ns", "p50");
  EXPECT_EQ(p50.at("verdict"), "worse");
  EXPECT_NEAR(p50.at("ratio").get<double>(), 1.3, 1e-3);
  EXPECT_GT(p50.at("ratio_95_percent").at(0), 1.25);
  EXPECT_EQ(p50.at("values_of_base"), 4);
  EXPECT_EQ(run_program("compare " + b + " " + a).exit_code, 0) << "a faster run is good";
  EXPECT_EQ(run_program("compare " + a + " " + b + " --tolerance 0.5").exit_code, 0);
  EXPECT_EQ(run_program("compare " + a + " " + b + " --judge rate").exit_code, 0);
  EXPECT_EQ(run_program("compare " + a + " " + a + " " + b).exit_code, 1) << "each report is compared with the base";
}

TEST_F(Compare, ALowerRateIsWorse) {
  const auto a = report("a.json", {100, 100, 100}, 1e6), b = report("b.json", {100, 100, 100}, 5e5);
  const auto j = run_program("compare " + a + " " + b + " --json").json();
  EXPECT_EQ(figure(j, "host_call", "rate").at("verdict"), "worse");
  EXPECT_EQ(figure(j, "host_call latency_ns", "p50").at("verdict"), "same");
  EXPECT_EQ(figure(run_good_program("compare " + b + " " + a + " --json"), "host_call", "rate").at("verdict"),
            "better");
}

TEST_F(Compare, NoiseIsNoReasonForAVerdict) {
  const auto a = report("a.json", {50, 100, 180, 90}), b = report("b.json", {70, 130, 250, 120});
  const auto j = run_good_program("compare " + a + " " + b + " --json");
  EXPECT_GT(figure(j, "host_call latency_ns", "p50").at("ratio"), 1.3);
  EXPECT_EQ(figure(j, "host_call latency_ns", "p50").at("verdict"), "cannot tell")
      << "rounds differ as much as the runs";
  EXPECT_EQ(j.at("compared").at(0).at("cannot_tell"), 1);
  EXPECT_EQ(j.at("compared").at(0).at("same"), 1) << "the rate";
  const program_result text = run_program("compare " + a + " " + b);
  EXPECT_TRUE(contains(text.out, "0 worse, 0 better, 1 the same, 1 cannot tell")) << text.out;
  EXPECT_TRUE(contains(run_program("compare " + a + " " + b + " --tolerance 9").out, "2 the same, 0 cannot tell"));
}

TEST_F(Compare, ShowsTheFiguresOfItsRatio) {
  const nlohmann::json errors = {{"passes",
                                  {{{"name", "decoding"}, {"shots", 100}, {"logical_errors", 3}},
                                   {{"name", "without errors"}, {"shots", 100}, {"logical_errors", 0}}}}};
  const auto a = report("a.json", {90, 300, 100}, 1e6, errors),
             b = report("b.json", {70, 100, 95}, 2e6,
                        {{"passes", {{{"name", "decoding"}, {"shots", 50}, {"logical_errors", 6}}}}});
  const auto j = run_good_program("compare " + a + " " + b + " --json");
  for (const auto &f : j.at("compared").at(0).at("figures"))
    EXPECT_NEAR(f.at("now").get<double>() / f.at("base").get<double>(), f.at("ratio").get<double>(), 1e-9) << f;
  EXPECT_NEAR(figure(j, "host_call latency_ns", "p50").at("base").get<double>(), std::cbrt(90.0 * 300 * 100), 1e-9)
      << "the mean of the rounds, not the value of all exchanges";
  EXPECT_NEAR(figure(j, "decoding", "errors").at("ratio").get<double>(), 4, 1e-9) << "without the half errors";
}

TEST_F(Compare, MarksTheBetterSide) {
  const auto a = report("a.json", {100, 101, 99}, 1e6), b = report("b.json", {50, 51, 49}, 5e5);
  const program_result text = run_program("compare " + a + " " + b);
  EXPECT_TRUE(contains(text.out, "50 ns*")) << text.out;
  EXPECT_TRUE(contains(text.out, "1.00 M/s*")) << "the higher rate\n" << text.out;
  EXPECT_FALSE(contains(text.out, "100 ns*") || contains(text.out, "500.0 k/s*")) << text.out;
  const auto j = run_program("compare " + a + " " + b + " --json").json();
  EXPECT_EQ(figure(j, "host_call latency_ns", "p50").at("better_side"), "now");
  EXPECT_EQ(figure(j, "host_call latency_ns", "p50").at("better_is"), "lower");
  EXPECT_EQ(figure(j, "host_call", "rate").at("better_side"), "base");
  EXPECT_EQ(figure(j, "host_call", "rate").at("better_is"), "higher");
  EXPECT_EQ(figure(run_good_program("compare " + a + " " + a + " --json"), "host_call", "rate").at("better_side"),
            nullptr);
}

TEST_F(Compare, RunsGiveTheNoiseThatOneReportDoesNotHave) {
  std::string base, now;
  for (const double p50 : {100.0, 103.0, 98.0}) {
    base += (base.empty() ? "" : ",") + report("a" + std::to_string(p50), {p50});
    now += (now.empty() ? "" : ",") + report("b" + std::to_string(p50), {1.5 * p50});
  }
  const program_result r = run_program("compare " + base + " " + now + " --json");
  EXPECT_EQ(r.exit_code, 1);
  const auto p99 = figure(r.json(), "host_call latency_ns", "p99");
  EXPECT_EQ(p99.at("values_of_base"), 3);
  EXPECT_NEAR(p99.at("ratio").get<double>(), 1.5, 1e-9);
  EXPECT_TRUE(p99.at("ratio_95_percent").is_array());
  EXPECT_NEAR(p99.at("base").get<double>(), 2 * std::cbrt(100.0 * 103 * 98), 1e-9) << "the mean, not the first run";
  EXPECT_NEAR(p99.at("now").get<double>() / p99.at("base").get<double>(), p99.at("ratio").get<double>(), 1e-9);
  const program_result one = run_program("compare " + report("c", {100}) + " " + report("d", {150}));
  EXPECT_EQ(one.exit_code, 1) << "without noise the ratio decides";
  EXPECT_FALSE(contains(one.out, " \n")) << one.out;
  EXPECT_TRUE(contains(one.out, "noise not known")) << one.out;
}

TEST_F(Compare, NamesWhatElseDiffers) {
  const auto a = report("a.json", {100, 100}),
             b = report("b.json", {100, 100}, 1e6,
                        {{"method", {{"slots", 1}}}, {"machine", {{"cpu_model", "another"}}}});
  const program_result r = run_program("compare " + a + " " + b);
  EXPECT_TRUE(contains(r.out, "method.slots: 64, then 1")) << r.out;
  EXPECT_TRUE(contains(r.out, "machine.cpu_model: a processor, then another")) << r.out;
}

TEST_F(Compare, RefusesWhatCannotBeCompared) {
  const auto a = report("a.json", {100, 100});
  std::ofstream(file("text")) << "not JSON";
  expect_refusal(a, "reports");
  expect_refusal(a + " /nonexistent.json", "/nonexistent.json: cannot be read");
  expect_refusal(a + " " + file("text"), "not a report");
  expect_refusal(a + " " + report("failed", {100}, 1, {{"ok", false}}), "the report of a run that failed");
  expect_refusal(a + " " + report("other", {100}, 1, {{"command", "demo"}}), "its command is \"demo\"");
  expect_refusal(a + " " + report("newer", {100}, 1, {{"schema_version", 2}}), "its schema_version is 2");
  expect_refusal(a + " " + report("empty", {100}, 1, {{"cases", nlohmann::json::array()}}), "no figure in common");
  expect_refusal(a + " " + a + " --judge p42", "p42");
}

TEST_F(Compare, DoesNotOverwriteAReport) {
  const auto a = report("a.json", {100, 100});
  const std::string before = read_file(a);
  EXPECT_EQ(run_program("compare --json " + a + " " + a + " " + a).exit_code, 2);
  EXPECT_EQ(read_file(a), before);
  const std::string verdict = file("verdict.json");
  for (int time = 0; time < 2; ++time) // the second time it replaces its own file
    EXPECT_EQ(run_program("compare " + a + " " + a + " --json=" + verdict).exit_code, 0);
  EXPECT_EQ(nlohmann::json::parse(read_file(verdict)).at("command"), "compare");
}

TEST_F(Compare, TakesTheReportsOfTheProgram) {
  const auto a = file("run.json");
  ASSERT_EQ(run_program("idle --quick --json " + a).exit_code, 0);
  EXPECT_EQ(run_program("compare " + a + " " + a).exit_code, 0);
  ASSERT_EQ(run_program("latency --quick --json " + a, CUDAQ_USERS_PROGRAM_PATH).exit_code, 0);
  const auto j = run_good_program("compare " + a + " " + a + " --json");
  EXPECT_EQ(j.at("compared").at(0).at("same").get<int>() + j.at("compared").at(0).at("cannot_tell").get<int>(), 18)
      << "p50 and rate of nine cases";
}

} // namespace
} // namespace cudaq::realtime::tools::test
