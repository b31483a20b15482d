// SPDX-License-Identifier: Apache-2.0
// `cudaq-realtime pipeline`, tested through its command line and output.
#include "cudaq/qec/decoding/decoder.h"
#include "unittests/qec/model_text.h"
#include "unittests/support/program_paths.h"
#include "unittests/tools/common/run_program.h"
#include "unittests/tools/decode/own_sets.h"

#include <fmt/format.h>
#include <fstream>
#include <gtest/gtest.h>

namespace cudaq::realtime::tools::test {
namespace {

nlohmann::json run_good_pipeline(const std::string &options) {
  auto j = run_good_program("pipeline --json --data '" + std::string(CUDAQ_TEST_DATA) + "' " + options);
  if (j.is_discarded())
    return j;
  EXPECT_EQ(j.at("submitted"), j.at("completed")) << options;
  for (const char *zero : {"timed_out", "failed", "error_statuses", "mismatches", "out_of_turn"})
    EXPECT_EQ(j.at(zero), 0) << options << " " << zero;
  EXPECT_EQ(j.at("latency_ns").at("count"), j.at("completed"));
  return j;
}

TEST(PipelineProgram, EveryAnswerEqualsTheOfflineDecode) {
  if (!qec::realtime::pymatching_available())
    GTEST_SKIP() << "PyMatching is not built in, and d7 is too large for the lookup decoder";
  for (const char *engine : {"local", "passthrough"}) {
    const auto j =
        run_good_pipeline(std::string("--config d7 --noise 0.005 --shots 3000 --workers 2 --predecoder ") + engine);
    ASSERT_FALSE(j.is_discarded());
    EXPECT_EQ(j.at("completed"), 3000);
    const bool local = std::string(engine) == "local";
    EXPECT_EQ(j.at("event_reduction").get<double>() > 0.2, local);
    EXPECT_EQ(j.at("logical_errors").at("matcher_alone"), 12) << "as in the set's manifest";
    if (!local) {
      EXPECT_EQ(j.at("logical_errors").at("with_predecoder"), 12);
      EXPECT_EQ(j.at("logical_errors").at("ratio"), 1.0);
    }
    // The three stages add up to the latency.
    double sum = 0;
    for (const char *stage : {"stage_a_ns", "stage_b_ns", "stage_c_ns"})
      sum += j.at(stage).at("mean").get<double>();
    EXPECT_NEAR(sum, j.at("latency_ns").at("mean").get<double>(), 1.0);
  }
}

TEST(PipelineProgram, ANetworkIsAPredecoder) {
  if (!qec::realtime::pymatching_available())
    GTEST_SKIP() << "PyMatching is not built in, and a predecoder runs before it only";
  const std::string set = std::string(CUDAQ_TEST_DATA) + "/surface_z_d3_p0.003";
  const std::string run = "pipeline --json --shots 500 --workers 1 --dem '" + set + ".dem' --in '" + set +
                          ".dets.b8' --obs_in '" + set + ".obs.b8' --predecoder ";
  const auto j = run_good_program(run + "'model=" + std::string(CUDAQ_TEST_NETWORK) + "'");
  ASSERT_FALSE(j.is_discarded());
  EXPECT_EQ(j.at("completed"), 500);
  EXPECT_EQ(j.at("mismatches"), 0);
  EXPECT_NEAR(j.at("event_reduction").get<double>(), 1 - 385. / 805, 0.001) << "as the training program says";
  EXPECT_TRUE(contains(j.at("accuracy_warning").get<std::string>(), "a network changes the answers"));
  const program_result absent = run_program(run + "model=absent");
  EXPECT_TRUE(contains(absent.err, "model predecoder: absent: No such file")) << absent.err;
}

/// A file of a network with two layers, all of whose weights are 0.
void write_network(const std::string &path, std::uint32_t channels) {
  std::string header = R"({"__metadata__": {"format": "cudaq-realtime predecoder 1"})";
  std::size_t at = 0;
  const auto add = [&](const std::string &name, const std::string &shape, std::size_t values) {
    header += fmt::format(R"(, "{}": {{"dtype": "F16", "shape": [{}], "data_offsets": [{}, {}]}})", name, shape, at,
                          at + 2 * values);
    at += 2 * values;
  };
  add("weights.0", fmt::format("{}, 4, 3, 3, 3", channels), std::size_t{channels} * 4 * 27);
  add("biases.0", std::to_string(channels), channels);
  add("weights.1", fmt::format("3, {}, 3, 3, 3", channels), std::size_t{channels} * 3 * 27);
  add("biases.1", "3", 3);
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  const std::uint64_t size = header.size(); // little-endian, as all machines of this project
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char *>(&size), sizeof(size))
      << header << std::string(at, '\0');
}

TEST(PipelineProgram, RefusesANetworkThatNoGpuTakesAsAFileThatCannotBeUsed) {
  const std::string without = run_program("pipeline --device gpu --config d3 --shots 1").err;
  if (contains(without, "no device kernels") || contains(without, "which is not built"))
    GTEST_SKIP() << "this build has no device kernels";
  const scratch_folder scratch;
  const std::string file = scratch.path().string() + "/wide.safetensors";
  write_network(file, 129);
  const std::string set = std::string(CUDAQ_TEST_DATA) + "/surface_z_d3_p0.003";
  const program_result r = run_program("pipeline --device gpu --dem '" + set + ".dem' --in '" + set +
                                       ".dets.b8' --predecoder 'model=" + file + "'");
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_TRUE(
      contains(r.err, "--device gpu: the network " + file + ": it has 129 channels; the kernels have at most 128"))
      << r.err;
}

// Known failure 40.
TEST(PipelineProgram, HelpAndReportSayWhatThePredecoderCosts) {
  const program_result help = run_program("pipeline --help");
  EXPECT_TRUE(contains(help.out, "1.3 to 2.6 times as many logical errors")) << help.out;
  if (!qec::realtime::pymatching_available())
    GTEST_SKIP() << "PyMatching is not built in, and d7 is too large for the lookup decoder";
  const std::string run = "pipeline --predecoder local --shots 200 --data '" + std::string(CUDAQ_TEST_DATA) + "'";
  const program_result text = run_program(run);
  EXPECT_TRUE(contains(text.out, "more logical errors than matching alone: measured 1.3 to 2.6 times")) << text.out;
  const auto j = run_good_pipeline("--predecoder local --shots 200");
  ASSERT_FALSE(j.is_discarded());
  EXPECT_NE(j.at("accuracy_warning"), "");
}

// Known failure 41.
TEST(PipelineProgram, NothingIsPredecodedByAutoOrWithoutTheOption) {
  if (!qec::realtime::pymatching_available())
    GTEST_SKIP() << "PyMatching is not built in, and d7 is too large for the lookup decoder";
  const std::string automatic = "--predecoder auto --decoder ";
  for (const std::string &options :
       {std::string("--config d7"), automatic + "pymatching", automatic + "pymatching-correlated"}) {
    const auto j = run_good_pipeline("--shots 200 --workers 1 --noise 0.005 " + options);
    ASSERT_FALSE(j.is_discarded());
    EXPECT_EQ(j.at("config").at("engine"), "passthrough");
    EXPECT_EQ(j.at("event_reduction"), 0.0);
    EXPECT_EQ(j.at("logical_errors").at("with_predecoder"), j.at("logical_errors").at("matcher_alone"));
    EXPECT_EQ(j.at("accuracy_warning"), "");
    if (options.starts_with(automatic)) {
      EXPECT_TRUE(contains(j.at("config").at("choice"), "auto takes no predecoder"));
    }
  }
}

TEST(PipelineProgram, ThePredecoderIsRefusedBeforeOtherDecoders) {
  for (const char *decoder : {"bp-osd", "lookup"}) {
    const program_result r = run_program("pipeline --predecoder local --shots 10 --dem " + kOwnSets[0].file("dem") +
                                         " --in " + kOwnSets[0].file("dets") + " --decoder " + decoder);
    EXPECT_EQ(r.exit_code, 2) << r.out;
    EXPECT_TRUE(contains(r.err, std::string("before the decoder pymatching only, not before ") + decoder)) << r.err;
  }
}

TEST(PipelineProgram, ADecoderWithHeraldsIsRefused) {
  const scratch_folder scratch;
  const std::string dem = "error(0.1) D0 L0\nerror(0.1) D1\n", model = scratch.path() / "m.dem",
                    heralds = scratch.path() / "h.txt", shots = scratch.path() / "s.01";
  std::ofstream(model) << dem;
  std::ofstream(heralds) << qec::realtime::test::heralds_text(dem, "detectors 3\nherald 0 0 0.5\n");
  std::ofstream(shots) << "10\n01\n";
  const program_result r =
      run_program("pipeline --dem " + model + " --in " + shots + " --decoder bp-osd:heralds=" + heralds);
  EXPECT_EQ(r.exit_code, 2) << r.out;
  EXPECT_TRUE(contains(r.err, "h.txt: it has 3 detectors, the shots have 2")) << r.err;
}

TEST(PipelineProgram, ARateIsKept) {
  if (!qec::realtime::pymatching_available())
    GTEST_SKIP() << "PyMatching is not built in, and d7 is too large for the lookup decoder";
  const auto j = run_good_pipeline("--config d7 --rate 2000 --shots 1000 --workers 1");
  ASSERT_FALSE(j.is_discarded());
  EXPECT_GE(j.at("wall_ns").get<double>(), 0.499e9);
  EXPECT_GE(j.at("latency_since_due_ns").at("mean").get<double>(), j.at("latency_ns").at("mean").get<double>());
}

TEST(PipelineProgram, TextReportNamesTheFigures) {
  if (!qec::realtime::pymatching_available())
    GTEST_SKIP() << "PyMatching is not built in, and d7 is too large for the lookup decoder";
  const program_result r = run_program("pipeline --shots 500 --data '" + std::string(CUDAQ_TEST_DATA) + "'");
  EXPECT_EQ(r.exit_code, 0) << r.err;
  for (const char *part : {"submitted 500   completed 500   timed out 0   wrong 0", "throughput", "p99.9", "stddev",
                           "per round (/7)", "A dispatch, engine", "B matching", "C consumer", "logical errors",
                           "backpressure", "ok: every shot answered once"})
    EXPECT_TRUE(contains(r.out, part)) << part << "\n" << r.out;
}

} // namespace
} // namespace cudaq::realtime::tools::test
