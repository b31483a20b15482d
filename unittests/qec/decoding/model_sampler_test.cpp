// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/decoding/model_sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

namespace cudaq::qec::realtime::test {
namespace {

/// How often each pair (detectors, observables) comes out.
std::map<std::pair<int, int>, int> counts(const char *dem, std::uint32_t errors, int shots) {
  const model_sampler sampler(*parse_dem(dem));
  std::mt19937_64 random(1);
  std::map<std::pair<int, int>, int> found;
  for (int i = 0; i < shots; ++i) {
    std::uint8_t shot = 0, observables = 0;
    if (errors == 0)
      sampler.sample(random, {&shot, 1}, {&observables, 1});
    else
      sampler.sample_exactly(errors, random, {&shot, 1}, {&observables, 1});
    ++found[{shot, observables}];
  }
  return found;
}

void expect_count(int count, int shots, double probability) {
  const double mean = shots * probability;
  EXPECT_NEAR(count, mean, 5 * std::sqrt(mean) + 1) << probability;
}

TEST(ModelSampler, EachErrorHappensWithItsProbability) {
  constexpr int kShots = 200000;
  auto found = counts("error(0.3) D0 L0\nerror(0.02) D1\nerror(0.001) D2 L1\nerror(1) D3\n", 0, kShots);
  expect_count(found[{8, 0}], kShots, 0.7 * 0.98 * 0.999);
  expect_count(found[{9, 1}], kShots, 0.3 * 0.98 * 0.999);
  expect_count(found[{10, 0}], kShots, 0.7 * 0.02 * 0.999);
  expect_count(found[{12, 2}], kShots, 0.7 * 0.98 * 0.001);
  expect_count(found[{11, 1}], kShots, 0.3 * 0.02 * 0.999);
}

TEST(ModelSampler, ComponentsOfADecomposedErrorHappenTogether) {
  constexpr int kShots = 100000;
  auto found = counts("repeat 2 {\nerror(0.1) D0 L0 ^ D1\nshift_detectors 2\n}\n", 0, kShots);
  EXPECT_EQ(found.size(), 4u);
  expect_count(found[{3, 1}], kShots, 0.09);
  expect_count(found[{12, 1}], kShots, 0.09);
  expect_count(found[{15, 0}], kShots, 0.01);
}

TEST(ModelSampler, ShotsOfAFixedWeightAreDistributedAsShotsThatHaveThatWeight) {
  constexpr int kShots = 100000;
  const char *dem = "error(0.5) D0\nerror(0.2) D1\nerror(0.1) D2\n"; // odds 1, 1/4, 1/9
  auto two = counts(dem, 2, kShots);
  const double sum = 1.0 / 4 + 1.0 / 9 + 1.0 / 36;
  EXPECT_EQ(two.size(), 3u);
  expect_count(two[{3, 0}], kShots, 1.0 / 4 / sum);
  expect_count(two[{5, 0}], kShots, 1.0 / 9 / sum);
  expect_count(two[{6, 0}], kShots, 1.0 / 36 / sum);
}

TEST(ModelSampler, AWeightThatCannotBeDrawnIsRefused) {
  EXPECT_FALSE(model_sampler(*parse_dem("error(0.5) D0\nerror(0.5) D1\n")).can_sample(3));
  EXPECT_FALSE(model_sampler(*parse_dem("detector D0\n")).can_sample(1));
  EXPECT_TRUE(model_sampler(*parse_dem("error(0.5) D0\nerror(0.5) D1\n")).can_sample(2));
}

} // namespace
} // namespace cudaq::qec::realtime::test
