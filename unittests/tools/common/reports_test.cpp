// SPDX-License-Identifier: Apache-2.0
// Every report is valid by docs/report_schema.json, and the schema refuses what is not a report.
#include "cudaq/realtime/version.h"
#include "unittests/support/program_paths.h"
#include "unittests/tools/common/json_schema.h"
#include "unittests/tools/common/run_program.h"

#include <gtest/gtest.h>

namespace cudaq::realtime::tools::test {
namespace {

const json_schema &report_schema() {
  static const json_schema the_schema(nlohmann::json::parse(read_file(CUDAQ_REPORT_SCHEMA)));
  return the_schema;
}

/// The report of the program, which must be valid. The exit status must be one of its own field.
nlohmann::json expect_valid_report(const std::string &arguments) {
  const program_result r = run_program(arguments);
  const auto report = r.json();
  EXPECT_FALSE(report.is_discarded()) << arguments << "\n" << r.out << r.err;
  for (const std::string &problem : report_schema().problems_of(report))
    ADD_FAILURE() << arguments << ": " << problem;
  EXPECT_EQ(report.value("exit_status", -1), r.exit_code) << arguments;
  return report;
}

void expect_refused(const nlohmann::json &report, const std::string &text) {
  const auto problems = report_schema().problems_of(report);
  EXPECT_TRUE(std::any_of(problems.begin(), problems.end(), [&](const std::string &p) { return contains(p, text); }))
      << text << " is not among " << nlohmann::json(problems);
}

void expect_valid_good_report(const std::string &arguments) {
  EXPECT_EQ(expect_valid_report(arguments).value("ok", false), true) << arguments;
}

TEST(ReportSchema, FitsReportsOfTheMachineAndTheCommandLine) {
  expect_valid_report("doctor --json"); // which may find something wrong
  for (const char *arguments : {"info --json", "help --json", "help latency --json", "completion bash --json"})
    expect_valid_good_report(arguments);
}

TEST(ReportSchema, FitsReportsOfMeasurements) { expect_valid_good_report("latency --quick --json"); }

TEST(ReportSchema, FitsReportsOfDecoders) {
  if (run_program("demo --help").exit_code != 0)
    GTEST_SKIP() << "this build has no decoders";
  const std::string model = std::string(CUDAQ_TEST_DATA) + "/surface_z_d3_p0.003";
  const std::string own =
      " --dem " + model + ".dem --in " + model + ".dets.b8 --obs_in " + model + ".obs.b8 --decoder lookup --json";
  expect_valid_good_report("demo --config d3 --shots 200 --decoder lookup --json");
  expect_valid_good_report("demo --config d3 --shots 200 --decoder lookup --rate 200000 --json");
  expect_valid_good_report("decode --out /dev/null" + own);
  expect_valid_report("learn --json --dem " + model + ".dem --in " + model + ".dets.b8");
  const scratch_folder scratch;
  const std::string loop = scratch.path() / "loop.dem", rounds = scratch.path() / "rounds.01";
  std::ofstream(loop) << "repeat 5 {\ndetector(0) D0\nerror(0.1) D0 L0\nshift_detectors(1) 1\n}\n";
  std::ofstream(rounds) << "0\n1\n0\n";
  expect_valid_good_report("decode --stream --commit 2 --buffer 1 --decoder lookup --out /dev/null --json --dem " +
                           loop + " --in " + rounds);
  expect_valid_good_report("pipeline --shots 200" + own);
  const auto search = expect_valid_report("emulate --transport ring --config d3 --decoder lookup --json --search-rate "
                                          "--search-repeats 1 --search-p999-us 1e9 --duration 0.02 --rate 20");
  ASSERT_EQ(search.value("error", nlohmann::json()), nullptr);
  EXPECT_GE(search.at("highest_rate").get<double>(), 1);
  bool held = false;
  for (const auto &trial : search.at("trials")) {
    EXPECT_EQ(trial.at("holds").get<bool>(), trial.at("failure").get<std::string>().empty()) << trial;
    held = held || (trial.at("holds").get<bool>() && trial.at("rate") == search.at("highest_rate"));
  }
  EXPECT_TRUE(held) << search.at("trials");
}

TEST(ReportSchema, FitsErrors) {
  for (const char *arguments : {"--json", "nonsense --json", "doctor --jsn --json", "latency --slots 0 --json",
                                "latency --core-dispatcher 4000 --json", "demo --data /nonexistent --json",
                                "demo --device gpu --gpu 255 --json", "help nonsense --json"}) {
    const auto report = expect_valid_report(arguments);
    EXPECT_EQ(report.value("ok", true), false) << arguments;
  }
}

TEST(ReportSchema, HasEverySubcommand) {
  const auto known = nlohmann::json::parse(read_file(CUDAQ_REPORT_SCHEMA)).at("properties").at("command").at("enum");
  const std::function<void(const nlohmann::json &)> look = [&](const nlohmann::json &command) {
    EXPECT_NE(std::find(known.begin(), known.end(), command.at("name")), known.end()) << command.at("name");
    for (const auto &below : command.at("subcommands"))
      look(below);
  };
  look(expect_valid_report("help --json").at("help"));
}

TEST(ReportSchema, RefusesWhatIsNotAReport) {
  const auto good = expect_valid_report("latency --quick --json");
  for (const auto &[name, value] : good.items()) {
    if (name == "method" || name == "cases" || name == "ratios")
      continue;
    auto without = good;
    without.erase(name);
    expect_refused(without, "there is no field " + name);
  }
  const auto changed = [&](const std::string &pointer, const nlohmann::json &value) {
    auto report = good;
    report[nlohmann::json::json_pointer(pointer)] = value;
    return report;
  };
  expect_refused(changed("/schema_version", 4), "/schema_version: 4");
  expect_refused(changed("/command", "unknown"), "/command");
  expect_refused(changed("/date", "yesterday"), "/date");
  expect_refused(changed("/ok", 1), "/ok");
  expect_refused(changed("/exit_status", 1), "/exit_status");
  expect_refused(changed("/error", "a text"), "/error");
  expect_refused(changed("/machine/online_cores", 0), "/machine/online_cores");
  expect_refused(changed("/cases/0/latency_ns/p50", -1), "/cases/0/latency_ns/p50");
  expect_refused(changed("/cases", nlohmann::json::array()), "/cases");
  auto without = good;
  without.at("cases").at(1).erase("round_p50_ns");
  expect_refused(without, "/cases/1: there is no field round_p50_ns");
}

TEST(Info, WritesOnlyJsonToStdoutWithTheOption) {
  const program_result r = run_program("info --json");
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const auto j = r.json();
  ASSERT_FALSE(j.is_discarded()) << r.out;
  EXPECT_EQ(j.at("header_version"), j.at("library_version"));
  EXPECT_EQ(j.at("features").at("host_path"), true);
  EXPECT_FALSE(j.at("machine").at("cpu_model").get<std::string>().empty());
}

TEST(Info, SaysWhatEachMissingPieceGivesAndHowToGetIt) {
  const auto j = run_program("info --json").json();
  ASSERT_FALSE(j.is_discarded());
  for (const char *name :
       {"PyMatching", "CUDA driver", "CUDA devices", "device kernels", "requests in GPU memory", "NUMA placement"}) {
    const auto &piece = j.at("pieces").at(name);
    if (piece.at("present") == true)
      continue;
    EXPECT_FALSE(piece.at("gives").get<std::string>().empty()) << name;
    EXPECT_FALSE(piece.at("get").get<std::string>().empty()) << name;
  }
}

TEST(Info, WritesTextAndAFileTogether) {
  const scratch_folder scratch;
  const auto file = scratch.path() / "info.json";
  const program_result r = run_program("info --json '" + file.string() + "'");
  EXPECT_EQ(r.exit_code, 0) << r.err;
  const auto j = nlohmann::json::parse(read_file(file), nullptr, false);
  ASSERT_FALSE(j.is_discarded());
  EXPECT_TRUE(r.out.starts_with("cudaq-realtime " + j.at("version").get<std::string>() + " (")) << r.out;
  EXPECT_EQ(j.at("command"), "info");
}

// `latency` runs, checks the answers and reports. The test does not judge times, which would need an idle machine.

nlohmann::json run_quick(const std::string &options) {
  const program_result r = run_program("latency --quick --json " + options);
  EXPECT_EQ(r.exit_code, 0) << r.err;
  return r.json();
}

TEST(Latency, ReportsEveryCaseWithPercentilesAndNoWrongReply) {
  const auto j = run_quick("");
  ASSERT_FALSE(j.is_discarded());
  ASSERT_EQ(j.at("cases").size(), 9u);
  for (const auto &c : j.at("cases")) {
    EXPECT_EQ(c.at("wrong"), 0) << c.at("name");
    EXPECT_GE(c.at("exchanges").get<int>(), 4000) << c.at("name");
    const auto &ns = c.at("latency_ns");
    EXPECT_GT(ns.at("min").get<double>(), 0) << c.at("name");
    EXPECT_LE(ns.at("min").get<double>(), ns.at("p50").get<double>());
    EXPECT_LE(ns.at("p50").get<double>(), ns.at("p99.9").get<double>());
    EXPECT_LE(ns.at("p99.9").get<double>(), ns.at("max").get<double>());
  }
}

TEST(Latency, StatesMachineMethodDateAndCommandBesideTheRatios) {
  const auto j = run_quick("--seed 9");
  ASSERT_FALSE(j.is_discarded());
  EXPECT_FALSE(j.at("machine").at("kernel").get<std::string>().empty());
  EXPECT_TRUE(contains(j.at("command_line").get<std::string>(), "--seed 9"));
  EXPECT_EQ(j.at("date").get<std::string>().size(), 20u);
  EXPECT_GE(j.at("method").at("timer_overhead_ns").get<double>(), 0);
  EXPECT_EQ(j.at("ratios").size(), 6u);
  for (const auto &r : j.at("ratios")) {
    EXPECT_GT(r.at("ratio").get<double>(), 0) << r.at("what");
    EXPECT_LE(r.at("round_min"), r.at("round_max")) << r.at("what");
  }
}

TEST(Latency, ComparesRecordedHandlerTimesWithNone) {
  const auto j = run_quick("--handler-times");
  ASSERT_FALSE(j.is_discarded());
  ASSERT_EQ(j.at("cases").size(), 11u);
  EXPECT_EQ(j.at("cases").at(9).at("name"), "host_call_timed_closed_0");
  EXPECT_EQ(j.at("cases").at(10).at("name"), "host_call_timed_pipelined_0");
  EXPECT_EQ(j.at("cases").at(10).at("wrong"), 0);
  ASSERT_EQ(j.at("ratios").size(), 8u);
  EXPECT_TRUE(contains(j.at("ratios").at(7).at("what").get<std::string>(), "with handler times over without"));
}

TEST(Latency, ServesOneSlotAndInPlaceRings) {
  for (const char *options : {"--slots 1", "--slots 7", "--in-place", "--slots 1 --in-place"}) {
    const auto j = run_quick(options);
    ASSERT_FALSE(j.is_discarded()) << options;
    for (const auto &c : j.at("cases"))
      EXPECT_EQ(c.at("wrong"), 0) << options << " " << c.at("name");
  }
}

TEST(Latency, WritesAnHgrmFileForEveryCase) {
  const scratch_folder scratch;
  const std::string prefix = (scratch.path() / "h").string();
  EXPECT_EQ(run_program("latency --quick --hgrm '" + prefix + "'").exit_code, 0);
  EXPECT_TRUE(contains(read_file(prefix + ".host_call_closed_32.hgrm"), "1/(1-Percentile)"));
  EXPECT_TRUE(contains(read_file(prefix + ".two_flags_32.hgrm"), "Total count = 4"));
}

} // namespace
} // namespace cudaq::realtime::tools::test
