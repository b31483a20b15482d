// SPDX-License-Identifier: Apache-2.0
// `latency` runs, checks the answers and reports. The test does not judge times, which would need an idle machine.
#include "unittests/tools/common/run_program.h"

#include <gtest/gtest.h>

namespace cudaq::realtime::tools::test {
namespace {

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
