// SPDX-License-Identifier: Apache-2.0
// `decoding`: what it counts does not depend on the number of threads.
#include "unittests/support/program_paths.h"
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
  for (auto &one : report.at("cases"))
    one.erase("cpu_ns_per_shot");
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

TEST(BenchDecoding, AnotherSeedSendsOtherShots) {
  SKIP_WITHOUT_PYMATCHING();
  EXPECT_NE(counts("--shots 5000 --seed 6"), counts("--shots 5000"));
  EXPECT_NE(counts("--shots 5000 --errors 6"), counts("--shots 5000"));
}

} // namespace
} // namespace cudaq::realtime::tools::test
