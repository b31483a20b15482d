// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/stream/endless_shots.h"
#include "unittests/qec/stream/stream_test_support.h"

#include <cmath>

namespace cudaq::realtime::tools::test {
namespace {

namespace qt = cudaq::qec::realtime::test;

/// How often each detector of a model fires.
std::vector<double> rates_of(const qec::detector_error_model &model) {
  std::vector<double> rates(model.num_detectors);
  for (const qec::dem_component &c : model.components)
    for (const std::uint64_t d : model.detectors_of(c))
      rates[d] = qec::merged_probability(rates[d], c.probability);
  return rates;
}

TEST(EndlessSampler, EachDetectorFiresAsOftenAsTheModelSays) {
  // Errors have one component here, so errors are independent.
  const qec::repeating_model model = qt::repeating_or_throw(qt::repetition_dem(4, 0.03, 2, 5));
  const auto sampler = endless_sampler::make(model);
  ASSERT_TRUE(sampler.ok()) << sampler.text();
  constexpr std::uint64_t kRepetitions = 75; // blocks, and repetitions alone
  const std::vector<double> rates = rates_of(*model.unrolled(kRepetitions));
  std::vector<int> fired(rates.size());
  std::mt19937_64 random(5);
  constexpr int kShots = 20000;
  for (int k = 0; k < kShots; ++k) {
    const auto shot = sampler->sample(kRepetitions, random);
    ASSERT_EQ(shot.detectors, rates.size());
    for (std::size_t d = 0; d < rates.size(); ++d)
      fired[d] += shot.events[d / 8] >> d % 8 & 1;
  }
  for (std::size_t d = 0; d < rates.size(); ++d) {
    const double sigma = std::sqrt(kShots * rates[d] * (1 - rates[d]));
    EXPECT_NEAR(fired[d], kShots * rates[d], 5 * sigma) << "detector " << d;
  }
}

TEST(EndlessSampler, ErrorsAtTheBordersOfItsPartsAreWhole) {
  // Without a boundary before the tail, an error that is cut leaves an odd number of events.
  std::string text = "detector(0) D0\nrepeat 9 {\nerror(0.1) D0 D1\nshift_detectors(1) 1\ndetector(0) D0\n}\n"
                     "error(0.1) D0 D1 L0\ndetector(1) D1\n";
  const qec::repeating_model model = qt::repeating_or_throw(text);
  const auto sampler = endless_sampler::make(model);
  ASSERT_TRUE(sampler.ok()) << sampler.text();
  std::mt19937_64 random(7);
  int flips = 0;
  for (std::uint64_t k = 0; k < 2000; ++k) {
    const auto shot = sampler->sample(sampler->least_repetitions() + k % 100, random);
    std::uint64_t events = 0;
    for (std::uint64_t d = 0; d < 8 * shot.events.size(); ++d)
      events += shot.events[d / 8] >> d % 8 & 1;
    EXPECT_EQ(events % 2, 0U) << k;
    flips += shot.observables[0];
  }
  EXPECT_NEAR(flips, 200, 70);
}

} // namespace
} // namespace cudaq::realtime::tools::test
