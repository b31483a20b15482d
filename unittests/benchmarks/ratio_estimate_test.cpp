// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/compare/ratio_estimate.h"

#include <cmath>
#include <gtest/gtest.h>
#include <random>
#include <vector>

namespace cudaq::realtime::tools {
namespace {

using values = std::vector<double>;

TEST(RatioEstimate, IsOfGeometricMeans) {
  const ratio_estimate e = ratio_of_values(values{1, 4}, values{6, 6});
  EXPECT_NEAR(e.ratio, 3, 1e-12);
}

TEST(RatioEstimate, HasTheIntervalOfWelch) {
  // Logarithms 0, 1, 2 and 1, 2, 3: variances 1, error sqrt(2 / 3), 4 degrees of freedom, quantile 2.776.
  const double e = std::exp(1.0);
  const ratio_estimate r = ratio_of_values(values{1, e, e * e}, values{e, e * e, e * e * e});
  EXPECT_NEAR(r.ratio, e, 1e-12);
  ASSERT_TRUE(r.interval);
  EXPECT_NEAR(std::log(r.interval->first), 1 - 2.776 * std::sqrt(2.0 / 3), 1e-9);
  EXPECT_NEAR(std::log(r.interval->second), 1 + 2.776 * std::sqrt(2.0 / 3), 1e-9);
}

TEST(RatioEstimate, HasNoIntervalForOneValue) {
  EXPECT_FALSE(ratio_of_values(values{2}, values{3, 3, 3}).interval);
  EXPECT_FALSE(ratio_of_values(values{2, 2}, values{3}).interval);
  const auto exact = ratio_of_values(values{2, 2}, values{3, 3}).interval;
  ASSERT_TRUE(exact);
  EXPECT_DOUBLE_EQ(exact->first, exact->second);
}

/// Part of 4000 experiments whose interval contains the true ratio 1.
template <typename Experiment>
double coverage(Experiment experiment) {
  std::mt19937_64 random(7);
  int contained = 0;
  for (int i = 0; i < 4000; ++i) {
    const auto interval = experiment(random).interval.value();
    contained += interval.first <= 1 && 1 <= interval.second;
  }
  return contained / 4000.0;
}

TEST(RatioEstimate, ContainsTheTruthInNinetyFivePercent) {
  const double equal_noise = coverage([](std::mt19937_64 &random) {
    std::lognormal_distribution<double> time(5, 0.2);
    values a(8), b(8);
    for (double &v : a)
      v = time(random);
    for (double &v : b)
      v = time(random);
    return ratio_of_values(a, b);
  });
  EXPECT_NEAR(equal_noise, 0.95, 0.012);
  const double unequal_noise = coverage([](std::mt19937_64 &random) {
    std::lognormal_distribution<double> quiet(5, 0.02), loud(5, 0.5);
    values a(10), b(4);
    for (double &v : a)
      v = quiet(random);
    for (double &v : b)
      v = loud(random);
    return ratio_of_values(a, b);
  });
  EXPECT_NEAR(unequal_noise, 0.95, 0.012);
}

TEST(RatioEstimate, OfErrorsContainsTheTruthInNinetyFivePercent) {
  const double covered = coverage([](std::mt19937_64 &random) {
    std::binomial_distribution<int> failures(5000, 0.01), more(20000, 0.01);
    return ratio_of_errors(failures(random), 5000, more(random), 20000);
  });
  EXPECT_GE(covered, 0.94);
  EXPECT_LE(covered, 0.97);
}

TEST(RatioEstimate, OfNoErrorsIsWide) {
  const ratio_estimate none = ratio_of_errors(0, 1000, 0, 1000);
  EXPECT_DOUBLE_EQ(none.ratio, 1);
  EXPECT_LT(none.interval->first, 0.1);
  EXPECT_GT(none.interval->second, 10);
  EXPECT_GT(ratio_of_errors(0, 1000, 100, 1000).interval->first, 1) << "a hundred errors are more than none";
}

} // namespace
} // namespace cudaq::realtime::tools
