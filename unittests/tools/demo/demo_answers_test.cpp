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

TEST(Demo, ChecksTheLookupDecoderAgainstItselfOffline) {
  const auto j = run_good_demo("--config d3 --decoder lookup --shots 2000 --rate 0");
  ASSERT_FALSE(j.is_discarded());
  EXPECT_EQ(j.at("decoder").at("name"), "lookup");
  EXPECT_EQ(j.at("passes").at(0).at("expected_answers"), "same decoder offline");
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

} // namespace
} // namespace cudaq::realtime::tools::test
