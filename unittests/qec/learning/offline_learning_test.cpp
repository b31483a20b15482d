// SPDX-License-Identifier: Apache-2.0
#include "cudaq/qec/decoding/learning.h"
#include "lib/qec/learning/model_score.h"
#include "lib/qec/learning/offline_learning.h"
#include "unittests/qec/learning/learning_test_support.h"

#include <array>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>

namespace cudaq::qec::realtime::test {
namespace {

offline_learning learning_of(const detector_error_model &model, double held_out) {
  auto made = offline_learning::of(model, {}, held_out);
  if (made.failed())
    throw std::runtime_error(made.text());
  return std::move(*made);
}

offline_result finish(offline_learning &learning) {
  auto result = learning.finish();
  if (result.failed())
    throw std::runtime_error(result.text());
  return std::move(*result);
}

TEST(OfflineLearning, ScoresOnBlocksThatItDoesNotLearnFrom) {
  const detector_error_model truth = surface_code(), wrong = with_factors(truth, half_or_double);
  offline_learning learning = learning_of(wrong, 0.2);
  sample_shots(truth, 200 * 256 + 100, 1,
               [&](const shot_bytes &shot) { ASSERT_EQ(learning.add(shot), decode_status::ok); });
  const offline_result result = finish(learning);
  EXPECT_EQ(result.held_out, 40u * 256);
  EXPECT_EQ(result.learned_from, 160u * 256 + 100);
  EXPECT_EQ(result.rates.shots, 160 * 256 + 100);
  ASSERT_TRUE(result.score);
  EXPECT_EQ(result.score->blocks, 40u);
  EXPECT_GT(result.score->better_by_sigmas, 5);
  EXPECT_TRUE(result.rates.refusals.empty()) << result.rates.refusals.front();
}

TEST(OfflineLearning, LearnsFromAllShotsIfNoneIsHeldOut) {
  const detector_error_model model = surface_code();
  offline_learning learning = learning_of(model, 0);
  event_counts counts(sets_of(model));
  sample_shots(model, 3000, 1, [&](const shot_bytes &shot) {
    ASSERT_EQ(learning.add(shot), decode_status::ok);
    ASSERT_EQ(counts.add(shot), decode_status::ok);
  });
  counts.flush();
  const offline_result result = finish(learning);
  const learned_rates rates = learn_or_throw(model, counts);
  EXPECT_FALSE(result.score);
  ASSERT_EQ(result.rates.errors.size(), rates.errors.size());
  for (std::size_t k = 0; k < rates.errors.size(); ++k)
    ASSERT_EQ(result.rates.errors[k].rate, rates.errors[k].rate);
}

TEST(OfflineLearning, RefusesAModelThatIsWorseOnTheShotsThatWereHeldOut) {
  // A tenth of the shots is held out; these are of the model, the others are of twice its rates.
  const detector_error_model model = surface_code();
  const model_sampler good(model), other(with_factors(model, [](auto &, auto &) { return 2; }));
  offline_learning learning = learning_of(model, 0.1);
  std::mt19937_64 random(1);
  shot_bytes shot(good.shot_bytes()), observables(good.observable_bytes());
  for (std::size_t k = 0; k < 300 * 256; ++k) {
    std::ranges::fill(shot, std::uint8_t{0});
    (k / 256 % 10 == 9 ? good : other).sample(random, shot, observables);
    ASSERT_EQ(learning.add(shot), decode_status::ok);
  }
  const offline_result result = finish(learning);
  ASSERT_EQ(result.held_out, 30u * 256);
  ASSERT_FALSE(result.rates.refusals.empty());
  EXPECT_NE(result.rates.refusals.back().find("on 7680 held-out shots the learned model is worse"), std::string::npos)
      << result.rates.refusals.back();
}

TEST(OfflineLearning, ChecksHeldOutShotsAsOthers) {
  offline_learning learning = learning_of(model_of("error(0.1) D0 D9\n"), 0.9);
  const std::uint8_t shot[] = {1, 2, 0}, outside[] = {0, 4}, far_outside[] = {0, 0, 1};
  for (int k = 0; k < 600; ++k) { // the first block is learned from, the second one held out
    EXPECT_EQ(learning.add({shot, 1}), decode_status::buffer_too_small);
    EXPECT_EQ(learning.add(outside), decode_status::bad_detector_index);
    EXPECT_EQ(learning.add(far_outside), decode_status::bad_detector_index);
    EXPECT_EQ(learning.add(shot), decode_status::ok);
  }
  const offline_result result = finish(learning);
  EXPECT_EQ(result.learned_from, 256u);
  EXPECT_EQ(result.held_out, 344u);
}

TEST(OfflineLearning, RefusesAShareThatIsNone) {
  for (const double share : {-0.1, 1.0, std::numeric_limits<double>::quiet_NaN()})
    EXPECT_NE(offline_learning::of(surface_code(), {}, share).text().find("the share of held-out shots is"),
              std::string::npos);
}

// The public class rate_learner. What it learns is tested with the classes that it calls, and in Python.

constexpr const char *kModel = "error(0.2) D0 D1 L0\nerror(0.02) D0\nerror(0.05) D1\n";

void add(rate_learner &learner, int shots, int period) {
  for (int k = 0; k < shots; ++k) {
    const std::array<std::uint8_t, 1> shot{static_cast<std::uint8_t>(k % period == 0 ? 3 : k % period == 3 ? 1 : 0)};
    ASSERT_EQ(learner.add(shot), decode_status::ok);
  }
}

std::string refusal_of(std::string_view dem, const learning_settings &settings) {
  const rate_learner_result made = make_rate_learner(dem, settings);
  EXPECT_FALSE(made);
  return made.error;
}

TEST(RateLearner, LearnsFromAllShotsUntilNow) {
  const rate_learner_result made = make_rate_learner(kModel, {.held_out = 0});
  ASSERT_TRUE(made) << made.error;
  EXPECT_EQ(made.instance->num_detectors(), 2u);
  add(*made.instance, 5000, 20);
  const learning_report_result first = made.instance->finish();
  ASSERT_TRUE(first) << first.error;
  EXPECT_EQ(first.instance->shots, 5000u);
  EXPECT_FALSE(first.instance->score);
  ASSERT_EQ(first.instance->errors.size(), 3u);
  EXPECT_NEAR(first.instance->errors[0].rate, 0.05, 0.01);
  EXPECT_EQ(first.instance->errors[2].line, 3u);
  add(*made.instance, 5000, 10);
  const learning_report_result second = made.instance->finish();
  ASSERT_TRUE(second) << second.error;
  EXPECT_EQ(second.instance->shots, 10000u);
  EXPECT_NEAR(second.instance->errors[0].rate, 0.075, 0.01);
  ASSERT_EQ(second.instance->detectors.size(), 2u);
  EXPECT_DOUBLE_EQ(second.instance->detectors[1].rate, 0.075);
}

TEST(RateLearner, AddsNothingOfAShotThatDoesNotFit) {
  const rate_learner_result made = make_rate_learner(kModel);
  ASSERT_TRUE(made) << made.error;
  EXPECT_EQ(made.instance->add({}), decode_status::buffer_too_small);
  const std::array<std::uint8_t, 1> wide{4};
  EXPECT_EQ(made.instance->add(wide), decode_status::bad_detector_index);
  const learning_report_result nothing = made.instance->finish();
  EXPECT_FALSE(nothing);
  EXPECT_NE(nothing.error.find("no shots"), std::string::npos) << nothing.error;
}

TEST(RateLearner, ReturnsTheGivenTextOfRefusedShots) {
  const rate_learner_result made = make_rate_learner(kModel, {.held_out = 0});
  ASSERT_TRUE(made) << made.error;
  add(*made.instance, 100, 20);
  const learning_report_result learned = made.instance->finish();
  ASSERT_TRUE(learned) << learned.error;
  ASSERT_EQ(learned.instance->refusals.size(), 1u);
  EXPECT_EQ(learned.instance->refusals[0], "too few shots: 100, needed: 1000");
  EXPECT_EQ(learned.instance->dem, kModel);
}

TEST(RateLearner, RefusesSettingsAndModelsWithAText) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(refusal_of(kModel, {.held_out = 0.95}), "held_out is 0.95, accepted: 0 to 0.9");
  EXPECT_EQ(refusal_of(kModel, {.held_out = nan}), "held_out is nan, accepted: 0 to 0.9");
  EXPECT_EQ(refusal_of(kModel, {.prior = 1}), "prior is 1, accepted: 1.01 to 1e6");
  EXPECT_EQ(refusal_of(kModel, {.prior = nan}), "prior is nan, accepted: 1.01 to 1e6");
  EXPECT_EQ(refusal_of("error(0.1) L0\n", {}), "the model has no detectors");
  EXPECT_EQ(refusal_of("error(2) D0\n", {}).substr(0, 8), "line 1: ");
  EXPECT_EQ(refusal_of(kModel, {.tied = "tie a 0\n"}).substr(0, 14), "tied: line 1: ");
}

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
