// SPDX-License-Identifier: Apache-2.0
#include "unittests/qec/learning/learning_test_support.h"

#include "lib/qec/learning/offline_learning.h"

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

} // namespace
} // namespace cudaq::qec::realtime::test
