// SPDX-License-Identifier: Apache-2.0
// cudaq-realtime-bench as its users run it: what it refuses, what it writes, and how it ends.
#include "unittests/support/program_paths.h"
#include "unittests/tools/common/interrupted_program.h"
#include "unittests/tools/common/run_on_terminal.h"

#include <gtest/gtest.h>

namespace cudaq::realtime::tools::test {
namespace {

bool has_decoders() { return run_program("decoding --help").exit_code == 0; }
std::string model() { return std::string(CUDAQ_TEST_DATA) + "/surface_z_d3_p0.003.dem"; }

program_result expect_refusal(const std::string &arguments, const std::string &text, int status = 2) {
  const program_result r = run_program(arguments);
  EXPECT_EQ(r.exit_code, status) << arguments << "\n" << r.err;
  EXPECT_TRUE(contains(r.err, text)) << arguments << "\n" << r.err;
  EXPECT_TRUE(r.err.starts_with("cudaq-realtime-bench")) << r.err;
  return r;
}

TEST(BenchProgram, RefusesValuesOutOfRangeAndNamesTheOption) {
  expect_refusal("", "subcommand");
  expect_refusal("host", "There are device, graph");
  expect_refusal("devise", "Did you mean device?");
  expect_refusal("help devise", "Did you mean device?");
  expect_refusal("device --cases echo-8B,worker-8B", "worker-8B");
  expect_refusal("graph --cases worker,workers-7", "workers-7");
  if (has_decoders())
    for (const std::string unknown : {"workers-64", "P99"})
      expect_refusal("pipeline --cases " + unknown, unknown);
  expect_refusal("device --repeats 0", "--repeats");
  expect_refusal("device --rounds 0", "--rounds");
  if (has_decoders()) {
    for (const std::string unused : {"--repeats 3", "--rounds 3", "--cores 0"})
      expect_refusal("pipeline " + unused, "there is no option --");
    expect_refusal("decoding --dme model.dem", "Did you mean --dem?");
    expect_refusal("decoding --dem x --shots 5 --duration 1", "--duration");
  }
  expect_refusal("device --exchanges 0", "--exchanges");
  expect_refusal("device --timeout nan", "--timeout");
  expect_refusal("device --gpu -1", "--gpu");
}

TEST(BenchProgram, SaysWhatTheDevicePathLacksHere) {
  const auto cuda = run_program("info --json", CUDAQ_USERS_PROGRAM_PATH).json().at("cuda");
  if (cuda.value("devices", nlohmann::json::array()).size() != 0)
    GTEST_SKIP() << "there is a GPU";
  for (const std::string command : {"device", "graph"}) {
    const program_result r = run_program(command + " --quick --json");
    EXPECT_EQ(r.exit_code, 3) << command << "\n" << r.err;
    EXPECT_TRUE(contains(r.err, "no GPU can be used") || contains(r.err, "no device kernels")) << r.err;
    EXPECT_EQ(r.json().at("command"), command);
  }
}

TEST(BenchProgram, OpensItsFilesBeforeTheWork) {
  for (const std::string option : {"--json", "--html", "--hgrm"})
    EXPECT_EQ(expect_refusal("idle --quick " + option + " /nonexistent/report", option).out, "");
  // The histogram's own file, not only its folder.
  const scratch_folder folder;
  std::filesystem::create_directory(folder.path() / "x.slots4.stop.hgrm");
  expect_refusal("idle --quick --hgrm " + (folder.path() / "x").string(), "it is a folder");
}

TEST(BenchProgram, TakesTheOldNameOfRepeats) {
  const program_result r = run_program("idle --rounds 2");
  EXPECT_EQ(r.exit_code, 0) << r.err;
  EXPECT_EQ(r.err, "cudaq-realtime-bench idle: --rounds is an old name; write --repeats 2\n");
}

TEST(BenchProgram, WritesReportsThatFitTheSchema) {
  const auto text = nlohmann::json::parse(read_file(CUDAQ_REPORT_SCHEMA));
  const json_schema schema(text);
  std::vector<std::string> lines{"idle --quick", "help device", "device --exchanges 0", "nonsense"};
  if (has_decoders()) {
    lines.push_back("decoding --decoder lookup --shots 100 --dem " + model());
    lines.push_back("decoding --decoder lookup --shots 100 --dem " + model() + " " + CUDAQ_TEST_DATA +
                    "/surface_z_d3_p0.005.dem");
    lines.push_back("stream --rounds 100 --cycle-us 0 --dem " + std::string(CUDAQ_TEST_DATA) +
                    "/surface_loop_d3_p0.004.dem");
  }
  for (const std::string &line : lines)
    EXPECT_EQ(schema.problems_of(run_program(line + " --json").json()), std::vector<std::string>{}) << line;
  const auto known = text.at("properties").at("command").at("enum");
  const auto help = run_good_program("help --json");
  for (const auto &command : help.at("help").at("subcommands"))
    EXPECT_NE(std::find(known.begin(), known.end(), command.at("name")), known.end()) << command.at("name");
}

TEST(BenchProgram, DecodesWholeBatchesForTheDuration) {
  if (!has_decoders())
    GTEST_SKIP() << "this build has no decoders";
  const auto decoding = run_good_program("decoding --json --duration 0.2 --decoder lookup --dem " + model());
  EXPECT_EQ(decoding.at("shots").get<int>() % 256, 0);
  EXPECT_GT(decoding.at("shots").get<int>(), 0);
}

TEST(BenchProgram, DecodesWithDeadlinesAndPlotsTheErrors) {
  if (!has_decoders())
    GTEST_SKIP() << "this build has no decoders";
  const scratch_folder folder;
  const std::string page = (folder.path() / "curve.html").string();
  const auto decoding = run_good_program("decoding --json --shots 300 --decoder bp-osd relay-bp --deadlines 0.001,1e9 "
                                         "--html " +
                                         page + " --dem " + model());
  ASSERT_EQ(decoding.at("cases").size(), 6u) << "two decoders alone, and each with two deadlines";
  for (const std::size_t first : {2u, 4u}) {
    const auto &missed = decoding.at("cases").at(first), &met = decoding.at("cases").at(first + 1);
    EXPECT_EQ(missed.at("decoder"), first == 2 ? "bp-osd" : "relay-bp");
    EXPECT_GT(missed.at("deadline_missed").get<int>(), 0);
    EXPECT_EQ(missed.at("refused"), 0) << "a deadline is no refusal";
    EXPECT_EQ(met.at("deadline_met"), 300);
    EXPECT_EQ(met.at("failures"), decoding.at("cases").at(first / 2 - 1).at("failures"));
    EXPECT_GE(missed.at("failures").get<int>(), met.at("failures").get<int>());
  }
  EXPECT_TRUE(contains(read_file(page), "logical errors per shot over deadline of a decode"));
  EXPECT_TRUE(contains(run_program("decoding --decoder lookup --deadlines 5 --dem " + model()).err,
                       "--deadlines: lookup does not end at a deadline"));
}

TEST(BenchProgram, ShowsItsProgressOnATerminal) {
  std::vector<std::vector<std::string>> runs{{"idle", "--repeats", "30"}};
  if (has_decoders())
    runs.push_back({"decoding", "--dem", model(), "--decoder", "lookup", "--duration", "2"});
  for (const std::vector<std::string> &run : runs) {
    const terminal_result r = run_on_terminal(run, {{"TERM", "xterm"}});
    EXPECT_EQ(r.exit_code, 0) << r.text;
    for (const std::string &part : {run[0] + ": ", std::string(" %, "), std::string("/s, "), std::string(" left")})
      EXPECT_TRUE(contains(r.text, part)) << part << "\n" << r.text;
  }
}

TEST(BenchProgram, ReportsTheRepetitionsAndShotsThatItHasDoneAtASignal) {
  const auto idle = report_after(SIGINT, {"idle", "--repeats", "10000"});
  ASSERT_TRUE(idle.contains("points"));
  ASSERT_GE(idle.at("points").size(), 1u);
  for (const auto &point : idle.at("points")) {
    EXPECT_GE(point.at("request_ns").at("count").get<int>(), 1);
    EXPECT_EQ(point.at("request_ns").at("count"), point.at("stop_ns").at("count"));
  }
  EXPECT_LT(idle.at("points").back().at("request_ns").at("count").get<int>(), 10000);
  const std::string model = std::string(CUDAQ_TEST_DATA) + "/surface_z_d3_p0.003.dem";
  for (const char *threads : {"1", "3"}) {
    const auto decoding = report_after(
        SIGTERM, {"decoding", "--dem", model, "--decoder", "lookup", "--shots", "100000000000", "--threads", threads});
    ASSERT_TRUE(decoding.contains("shots"));
    EXPECT_GE(decoding.at("shots").get<std::uint64_t>(), 256u);
    EXPECT_LT(decoding.at("shots").get<std::uint64_t>(), 100000000000u);
  }
}

} // namespace
} // namespace cudaq::realtime::tools::test
