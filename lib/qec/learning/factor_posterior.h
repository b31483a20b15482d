// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace cudaq::qec::realtime {

/// What the counts alone say of a factor: a normal distribution, whose variance grows with the factor itself, because
/// errors that happen often have a large spread of their number.
struct factor_estimate {
  double mean, sigma;
  double slope; ///< of the variance, by the factor
};

struct factor_posterior {
  double median, sigma, low, high; ///< sigma: half of the central 68.3 %; low to high: the central 95 %
};

/// The factor after its prior, a logarithmic normal distribution around 1, whose logarithm has this sigma. The factor
/// is positive, whatever the estimate is.
inline factor_posterior posterior_of(const factor_estimate &data, double prior_sigma) noexcept {
  constexpr std::size_t kPoints = 513;
  constexpr double kReach = 8, kReachOfPrior = 6; // sigma
  constexpr double kNothing = 40;                 // of the logarithm of a weight below the largest one
  // Equal steps of the logarithm, where both distributions are. If they are far apart, what their product leaves lies
  // anywhere between them: a first pass finds it.
  const double of_prior = kReachOfPrior * prior_sigma;
  const auto log_of = [&](double factor) { return factor > 0 ? std::log(factor) : -of_prior; };
  const double low = log_of(data.mean - kReach * data.sigma);
  const double high = log_of(std::max(data.mean + kReach * data.sigma, data.sigma)); // the factor is above 0
  double begin = std::max(low, -of_prior), end = std::min(high, of_prior);
  int passes = 1;
  if (begin >= end) {
    begin = std::min({low, high - 1, -of_prior});
    end = std::max(high, of_prior);
    passes = 4;
  }
  std::array<double, kPoints> logs, weights;
  double largest = 0;
  for (;;) {
    largest = -1e300;
    for (std::size_t k = 0; k < kPoints; ++k) {
      logs[k] = begin + (end - begin) * static_cast<double>(k) / (kPoints - 1);
      const double factor = std::exp(logs[k]), off = factor - data.mean;
      const double variance = std::max(data.sigma * data.sigma + data.slope * off, data.sigma * data.sigma / 4);
      weights[k] =
          -off * off / variance / 2 - std::log(variance) / 2 - logs[k] * logs[k] / (2 * prior_sigma * prior_sigma);
      largest = std::max(largest, weights[k]);
    }
    if (--passes == 0)
      break;
    std::size_t first = 0, last = kPoints - 1;
    while (weights[first] < largest - kNothing)
      ++first;
    while (weights[last] < largest - kNothing)
      --last;
    begin = logs[first - std::min<std::size_t>(first, 1)];
    end = logs[std::min(last + 1, kPoints - 1)];
  }
  double sum = 0;
  for (double &weight : weights)
    sum += weight = std::exp(weight - largest);
  const auto quantile = [&](double share) {
    double below = 0;
    for (std::size_t k = 0; k < kPoints; ++k) {
      if (below + weights[k] >= share * sum) { // the weight of a point lies evenly around it
        const double part = (share * sum - below) / weights[k] - 0.5;
        return std::exp(logs[k] + part * (end - begin) / (kPoints - 1));
      }
      below += weights[k];
    }
    return std::exp(end);
  };
  constexpr double kOneSigma = 0.158655, kTwoSigma = 0.025;
  return {quantile(0.5), (quantile(1 - kOneSigma) - quantile(kOneSigma)) / 2, quantile(kTwoSigma),
          quantile(1 - kTwoSigma)};
}

} // namespace cudaq::qec::realtime
