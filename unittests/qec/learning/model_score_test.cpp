// SPDX-License-Identifier: Apache-2.0
#include "unittests/qec/learning/learning_test_support.h"

#include "lib/qec/learning/model_score.h"

#include <cmath>

namespace cudaq::qec::realtime::test {
namespace {

score_difference compare_on(const detector_error_model &truth, const detector_error_model &served,
                            const detector_error_model &candidate, std::size_t shots, std::uint64_t block = 256) {
  model_score score(sets_of(served), served, candidate, block);
  sample_shots(truth, shots, 11, [&](const shot_bytes &shot) { ASSERT_EQ(score.add(shot), decode_status::ok); });
  return score.difference();
}

TEST(ModelScore, IsTheDifferenceOfTheLogLikelihoodsOfDetectorsAndPairs) {
  const detector_error_model served = model_of("error(0.1) D0 D1\nerror(0.1) D0\n"),
                             candidate = model_of("error(0.2) D0 D1\nerror(0.05) D0\n");
  const auto log_likelihood = [](double pair, double alone, int shot) {
    const double x0 = pair * (1 - alone) + alone * (1 - pair), x1 = pair;
    const double p[] = {(1 - pair) * (1 - alone), (1 - pair) * alone, pair * alone, pair * (1 - alone)};
    return std::log((shot & 1) != 0 ? x0 : 1 - x0) + std::log((shot & 2) != 0 ? x1 : 1 - x1) + std::log(p[shot]);
  };
  for (std::uint8_t shot = 0; shot < 4; ++shot) {
    model_score score(sets_of(served), served, candidate, 1);
    ASSERT_EQ(score.add({&shot, 1}), decode_status::ok);
    EXPECT_NEAR(score.difference().per_shot, log_likelihood(0.2, 0.05, shot) - log_likelihood(0.1, 0.1, shot), 1e-12);
  }
}

TEST(ModelScore, PrefersTheTruthByManySigmasAndNoModelToItself) {
  const detector_error_model truth = surface_code(), wrong = with_factors(truth, half_or_double);
  const score_difference better = compare_on(truth, wrong, truth, 20000),
                         worse = compare_on(truth, truth, wrong, 20000);
  EXPECT_GT(better.better_by_sigmas, 10);
  EXPECT_LT(worse.better_by_sigmas, -10);
  EXPECT_NEAR(better.per_shot, -worse.per_shot, 1e-9);
  const score_difference same = compare_on(truth, truth, truth, 20000);
  EXPECT_EQ(same.better_by_sigmas, 0);
}

TEST(ModelScore, SigmaIsThatOfRepeatedExperiments) {
  const detector_error_model truth = surface_code(), wrong = with_factors(truth, half_or_double);
  double sum = 0, squares = 0, sigma = 0;
  constexpr int kExperiments = 40;
  for (int k = 0; k < kExperiments; ++k) {
    model_score score(sets_of(truth), wrong, truth, 64);
    sample_shots(truth, 4096, 100 + static_cast<std::uint64_t>(k),
                 [&](const shot_bytes &shot) { ASSERT_EQ(score.add(shot), decode_status::ok); });
    const score_difference found = score.difference();
    sum += found.per_shot;
    squares += found.per_shot * found.per_shot;
    sigma += found.sigma / kExperiments;
  }
  const double spread = std::sqrt(squares / kExperiments - sum * sum / kExperiments / kExperiments);
  EXPECT_GT(sigma, spread / 1.6);
  EXPECT_LT(sigma, spread * 1.6);
}

TEST(ModelScore, DecidesNothingOnTooFewBlocks) {
  const detector_error_model truth = surface_code(), wrong = with_factors(truth, half_or_double);
  const score_difference few = compare_on(truth, wrong, truth, 19 * 256 + 255);
  EXPECT_EQ(few.blocks, 19u);
  EXPECT_EQ(few.better_by_sigmas, 0);
  EXPECT_GT(compare_on(truth, wrong, truth, 20 * 256).better_by_sigmas, 3);
  EXPECT_EQ(compare_on(truth, wrong, truth, 0).per_shot, 0);
}

TEST(ModelScore, KeepsABoundedNumberOfBlocks) {
  const detector_error_model truth = model_of("error(0.1) D0\n"), other = model_of("error(0.2) D0\n");
  const score_difference found = compare_on(truth, truth, other, 5000, 1);
  EXPECT_EQ(found.blocks, 625u); // of 8 shots each
  EXPECT_EQ(found.shots, 5000);
  EXPECT_LT(found.better_by_sigmas, -5); // `other` is the candidate
}

TEST(ModelScore, TakesModelsThatExcludeWhatHappens) {
  const detector_error_model served = model_of("error(0.1) D0 D1\nerror(0.1) D1\n"),
                             candidate = model_of("error(0.1) D0 D1\ndetector D1\n");
  const score_difference found = compare_on(served, served, candidate, 30 * 256);
  EXPECT_TRUE(std::isfinite(found.per_shot));
  EXPECT_LT(found.better_by_sigmas, -3);
}

} // namespace
} // namespace cudaq::qec::realtime::test
