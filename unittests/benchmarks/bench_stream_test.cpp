// SPDX-License-Identifier: Apache-2.0
// `stream`: what it counts does not depend on workers and pace.
#include "unittests/support/program_paths.h"
#include "unittests/tools/decode/decode_test_support.h"

#include <gtest/gtest.h>

namespace cudaq::realtime::tools::test {
namespace {

nlohmann::json report_of(const std::string &options) {
  return run_good_program("stream --json --decoder pymatching --dem " + std::string(CUDAQ_TEST_DATA) +
                          "/surface_loop_d3_p0.004.dem " + options);
}

TEST(BenchStream, CountsDoNotDependOnTheWorkers) {
  SKIP_WITHOUT_PYMATCHING();
  const std::string same = "--rounds 400 --experiments 60 --random-stops --mode parallel --cycle-us 0 ";
  const auto none = report_of(same), two = report_of(same + "--workers 2 --queue-rounds 50");
  ASSERT_FALSE(none.is_discarded());
  ASSERT_FALSE(two.is_discarded());
  EXPECT_EQ(none.at("experiments"), 60);
  EXPECT_GT(none.at("rounds"), 60 * 200);
  EXPECT_GT(none.at("wrong"), 0) << "experiments of 400 rounds at distance 3";
  for (const char *field : {"rounds", "wrong", "windows", "broken"})
    EXPECT_EQ(none.at(field), two.at(field)) << field;
  EXPECT_LE(two.at("lag_rounds").at("max"), 51);
  EXPECT_EQ(two.at("tail_ns").at("count"), 60);
}

TEST(BenchStream, KeepsThePace) {
  SKIP_WITHOUT_PYMATCHING();
  const auto report = report_of("--rounds 1000 --cycle-us 100");
  ASSERT_FALSE(report.is_discarded());
  EXPECT_LT(report.at("rounds_per_second"), 10100);
  EXPECT_EQ(report.at("backlog_rounds").size(), 100);
  EXPECT_GT(report.at("pace_ratio"), 0.1);
  EXPECT_EQ(report.at("pace_kept"), report.at("pace_ratio") >= 1 / 1.01 && report.at("pace_worst_rounds") <= 100);
}

TEST(BenchStream, SaysThatItCouldNotKeepThePace) {
  SKIP_WITHOUT_PYMATCHING();
  const std::string run = "stream --decoder pymatching --dem " + std::string(CUDAQ_TEST_DATA) +
                          "/surface_loop_d3_p0.004.dem --rounds 1000 --cycle-us ";
  const program_result r = run_program(run + "0.001"); // less than two readings of the clock take
  EXPECT_EQ(r.exit_code, 0) << "a pace is no check";
  EXPECT_TRUE(contains(r.out, "NOT kept: a round each ")) << r.out;
  const auto fast = report_of("--rounds 1000 --cycle-us 0.001");
  EXPECT_EQ(fast.at("pace_kept"), false);
  EXPECT_LT(fast.at("pace_ratio"), 0.9);
  EXPECT_TRUE(report_of("--rounds 1000 --cycle-us 0").at("pace_kept").is_null());
}

TEST(BenchStream, OfADecoderThatFailsSaysWhyAndNothingElse) {
  const std::string run = "stream --rounds 100 --experiments 2 --cycle-us 0 --dem " + std::string(CUDAQ_TEST_DATA) +
                          "/surface_loop_d3_p0.004.dem --decoder " + std::string(CUDAQ_TEST_BREAKING_PLUGIN) +
                          ":break=status";
  const program_result r = run_program(run);
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_TRUE(contains(r.err, "2 of 2 experiments ended without a final correction; the first: ")) << r.err;
  EXPECT_TRUE(contains(r.err, "plug-in breaking: decode returned 17, accepted: ")) << r.err;
  for (const char *const of_an_answer : {"\nrate ", "\ntail ", "\nwrong "})
    EXPECT_FALSE(contains(r.out, of_an_answer)) << r.out;
  const auto report = run_program(run + " --json").json();
  for (const char *const of_an_answer : {"rounds_per_second", "first_tenth", "last_tenth"})
    EXPECT_TRUE(report.at(of_an_answer).is_null()) << of_an_answer;
  EXPECT_TRUE(contains(report.at("first_fault"), "decode returned 17"));
}

// The plug-in breaks at the first event of a window. With this seed the first experiment has none, and the second has.
TEST(BenchStream, CountsNothingElseOfAnExperimentThatBreaks) {
  const scratch_folder scratch;
  const std::string model = scratch.path() / "loop.dem";
  const std::string round = "error(0.007) D0 L0\ndetector(0) D0\n", shift = "shift_detectors(1) 1\n";
  std::ofstream(model) << round + shift + "repeat 100 {\n" + round + shift + "}\n" + round;
  const std::string run = "stream --json --rounds 100 --cycle-us 0 --seed 1 --commit 4 --buffer 2 --dem " + model +
                          " --decoder " + std::string(CUDAQ_TEST_BREAKING_PLUGIN) +
                          ":break=column_cause --experiments ";
  const auto first = run_good_program(run + "1"), both = run_program(run + "2").json();
  ASSERT_EQ(first.at("broken"), 0);
  ASSERT_EQ(both.at("broken"), 1);
  EXPECT_EQ(both.at("experiments"), 2);
  for (const char *const field : {"rounds", "windows", "busy", "lag_rounds", "backlog_rounds"})
    EXPECT_EQ(both.at(field), first.at(field)) << field;
  for (const char *const tenth : {"first_tenth", "last_tenth"})
    EXPECT_GT(both.at(tenth).at("ns_per_round"), 0) << tenth;
}

TEST(BenchStream, AnExperimentHasTheLeastRoundsWithWholeRepetitions) {
  SKIP_WITHOUT_PYMATCHING();
  // A head of 2 rounds, repetitions of 2 and a tail of 3: the number is odd.
  for (const char *const rounds : {"1000", "1001"})
    EXPECT_EQ(report_of(std::string("--cycle-us 0 --rounds ") + rounds).at("rounds"), 1001);
}

TEST(BenchStream, ALongRunHasTheSameMemoryAndTimeAtItsEnd) {
  SKIP_WITHOUT_PYMATCHING();
  const auto report = report_of("--rounds 200000 --cycle-us 0");
  ASSERT_FALSE(report.is_discarded());
  const auto &first = report.at("first_tenth"), &last = report.at("last_tenth");
  EXPECT_GT(first.at("resident_bytes").get<double>(), 1 << 20);
  EXPECT_LT(last.at("resident_bytes").get<double>() - first.at("resident_bytes").get<double>(), 1 << 20);
  for (const auto *part : {&first, &last}) {
    EXPECT_GT(part->at("decode_ns_per_round"), 0);
    EXPECT_GE(part->at("ns_per_round"), part->at("decode_ns_per_round"));
  }
}

TEST(BenchStream, RefusesModelsWithoutALoopAndBadWindows) {
  const std::string data = CUDAQ_TEST_DATA;
  EXPECT_EQ(run_program("stream --dem " + data + "/surface_z_d3_p0.003.dem").exit_code, 2);
  EXPECT_EQ(run_program("stream --dem " + data + "/surface_loop_d3_p0.004.dem --buffer 1").exit_code, 2);
  EXPECT_EQ(run_program("stream --dem " + data + "/surface_loop_d3_p0.004.dem --rule rounds").exit_code, 2);
}

} // namespace
} // namespace cudaq::realtime::tools::test
