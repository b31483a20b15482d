// SPDX-License-Identifier: Apache-2.0
// The public class rate_learner. What it learns is tested with the classes that it calls, and in Python.
#include "cudaq/qec/decoding/learning.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>

namespace cudaq::qec::realtime {
namespace {

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

} // namespace
} // namespace cudaq::qec::realtime
