// SPDX-License-Identifier: Apache-2.0
// The C++ plug-in of the documentation: least weight, and decodes that end early.
#include "lib/qec/decoders/stop_check.h"
#include "unittests/qec/every_error_set.h"
#include "unittests/qec/shot_lists.h"

#include <chrono>
#include <thread>

namespace cudaq::qec::realtime::test {
namespace {

const std::string kPlugin = CUDAQ_TEST_LEAST_WEIGHT_PLUGIN;

double weight_of(double p) { return std::log((1 - p) / p); }

/// Pairs of events that one error or two errors cause, the two a little heavier together. The search takes the two
/// first, and for the later pairs the difference is half as large: so it finds 2^pairs solutions, each lighter than the
/// one before. The last event needs two errors, and its bound has one, so the first limit is too low for a solution.
struct long_search {
  static constexpr std::uint64_t kPairs = 24;
  std::string dem;
  std::vector<std::uint64_t> events;
  double least = 2 * weight_of(0.01);

  long_search() {
    constexpr double kOne = 0.01;
    for (std::uint64_t k = 0; k < kPairs; ++k) {
      const double half = (weight_of(kOne) + 0.1 / static_cast<double>(1U << k)) / 2;
      const std::string first = "D" + std::to_string(2 * k), second = "D" + std::to_string(2 * k + 1);
      const std::string alone = std::to_string(1 / (1 + std::exp(half)));
      dem += "error(0.01) " + first + " " + second + " L0\n";
      dem += "error(" + alone + ") " + first + "\nerror(" + alone + ") " + second + "\n";
      events.insert(events.end(), {2 * k, 2 * k + 1});
      least += weight_of(kOne);
    }
    const std::string last = std::to_string(2 * kPairs), other = std::to_string(2 * kPairs + 1);
    dem += "error(0.01) D" + last + " D" + other + "\nerror(0.01) D" + other + " L1\n";
    events.push_back(2 * kPairs);
  }
};

TEST(LeastWeightPlugin, FindsTheLeastSetOfEverySyndromeOfRandomModels) {
  std::mt19937 random(6);
  for (const std::size_t detectors : {2U, 4U})
    for (int model = 0; model < 8; ++model)
      expect_least(kPlugin, random_model(random, detectors, 0.4));
}

TEST(LeastWeightPlugin, TakesTheProbabilitiesOfAShot) {
  std::mt19937 random(7);
  for (int k = 0; k < 8; ++k) {
    const std::vector<random_error> errors = random_model(random, 3, 0.4);
    std::vector<random_error> of_shot = errors;
    shot_list list;
    for (std::size_t e = 0; e < errors.size(); e += 2)
      if (errors[e].detectors + errors[e].observables != 0) {
        of_shot[e].probability = std::uniform_real_distribution(0.001, 0.49)(random);
        list.push_back({e, of_shot[e].probability});
      }
    const auto tested = make_or_throw(kPlugin, dem_of(errors));
    expect_least_of(*tested, of_shot, list);
    expect_least_of(*tested, errors);
    EXPECT_EQ(decode(*tested, {}, shot_list{{0, 0.6}}).status, decode_status::bad_probability);
    EXPECT_NE(std::string(tested->fault()).find("least-weight: it does not take one of the 1 probabilities"),
              std::string::npos)
        << tested->fault();
    EXPECT_EQ(decode(*tested, {}, shot_list{{99, 0.1}}).status, decode_status::bad_probability);
    expect_least_of(*tested, errors);
  }
  // Of errors with one weight the first is taken, also after a shot in which it was the heavier one.
  const auto tied = make_or_throw(kPlugin, "error(0.1) D0 L0\nerror(0.1) D0\n");
  EXPECT_EQ(decode(*tied, {0}), (answer{decode_status::ok, {1}}));
  EXPECT_EQ(decode(*tied, {0}, shot_list{{0, 0.01}}), (answer{decode_status::ok, {0}}));
  EXPECT_EQ(decode(*tied, {0}), (answer{decode_status::ok, {1}}));
}

// The plug-in takes no probability above 1/2, bp-osd does: which of them was the first must not matter.
TEST(LeastWeightPlugin, InARaceAnotherMemberMayTakeTheListThatItRefuses) {
  const char *const model = "error(0.1) D0 L0\nerror(0.2) D0\n";
  for (const char *mode : {"first", "best"}) {
    const auto race = make_or_throw("race:" + kPlugin + "|bp-osd,mode=" + mode, model);
    for (int k = 0; k < 100; ++k)
      ASSERT_EQ(decode(*race, {0}, shot_list{{0, 0.6}}), (answer{decode_status::ok, {1}})) << mode << ", shot " << k;
    const auto none = make_or_throw("race:" + kPlugin + "|" + kPlugin + ",mode=" + mode, model);
    EXPECT_EQ(decode(*none, {0}, shot_list{{0, 0.6}}).status, decode_status::bad_probability) << mode;
    EXPECT_NE(std::string(none->fault()).find("does not take one of"), std::string::npos) << none->fault();
  }
}

TEST(LeastWeightPlugin, GivesTheErrorsAndTheWeightOfItsAnswer) {
  const auto with = make_or_throw(kPlugin, "error(0.1) D0 L0\nerror(0.05) D0 D1\nerror(0.2) D1 L1\nerror(0) D0 D1\n");
  std::vector<std::uint64_t> room(with->num_errors());
  decode_details details{.errors = room};
  std::uint8_t out = 0;
  ASSERT_EQ(with->decode(std::vector<std::uint64_t>{0, 1}, {&out, 1}, details), decode_status::ok);
  EXPECT_EQ(out, 0);
  EXPECT_EQ(room[0], 1U);
  EXPECT_EQ(details.num_errors, 1U);
  EXPECT_NEAR(details.weight, weight_of(0.05), 1e-12);
  ASSERT_EQ(with->decode(std::vector<std::uint64_t>{}, {&out, 1}, details), decode_status::ok);
  EXPECT_EQ(details.weight, 0);
}

TEST(LeastWeightPlugin, EndsAtTheDeadlineWithTheBestSolutionSoFar) {
  const long_search model;
  const auto with = make_or_throw(kPlugin + ":steps=1000000000000", model.dem);
  std::uint8_t out = 0;
  decode_details late{.control = {.deadline_ns = monotonic_ns()}};
  EXPECT_EQ(with->decode(model.events, {&out, 1}, late), decode_status::deadline);
  EXPECT_FALSE(late.has_solution) << "there was no time for a step";
  std::vector<std::uint64_t> room(with->num_errors());
  decode_details details{.control = {.deadline_ns = monotonic_ns() + 200'000'000}, .errors = room};
  EXPECT_EQ(with->decode(model.events, {&out, 1}, details), decode_status::deadline);
  EXPECT_TRUE(details.has_solution);
  EXPECT_GT(details.num_errors, 2U);
  EXPECT_GT(details.weight, model.least);
  EXPECT_LT(details.weight, model.least + 0.2);
}

TEST(LeastWeightPlugin, EndsAfterItsSteps) {
  const long_search model;
  std::uint8_t out = 0;
  decode_details details;
  const auto few = make_or_throw(kPlugin + ":steps=10", model.dem);
  EXPECT_EQ(few->decode(model.events, {&out, 1}, details), decode_status::not_converged);
  const auto more = make_or_throw(kPlugin + ":steps=5000", model.dem);
  EXPECT_EQ(more->decode(model.events, {&out, 1}, details), decode_status::ok);
  EXPECT_GT(details.weight, model.least) << "one of many solutions";
}

TEST(LeastWeightPlugin, EndsWhenItIsCancelledAndDecodesTheNextShot) {
  const long_search model;
  const auto with = make_or_throw(kPlugin + ":steps=1000000000000", model.dem);
  std::uint32_t word = 0;
  std::jthread canceller([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    cancel_decode(word);
  });
  std::uint8_t out = 0xEE;
  decode_details details{.control = {.cancel = &word}};
  EXPECT_EQ(with->decode(model.events, {&out, 1}, details), decode_status::cancelled);
  EXPECT_EQ(out, 0);
  EXPECT_EQ(decode(*with, {0, 1}), (answer{decode_status::ok, {1}}));
}

TEST(LeastWeightPlugin, RefusesWhatItDoesNotKnow) {
  const auto refusal = [](const std::string &settings, const char *dem) {
    return make_decoder(kPlugin + settings, dem).error;
  };
  EXPECT_NE(refusal(":beam=5", "error(0.1) D0\n").find("setting beam=5: the only one is steps=N"), std::string::npos);
  EXPECT_NE(refusal(":steps=5x", "error(0.1) D0\n").find("setting steps=5x: the only one"), std::string::npos);
  EXPECT_NE(refusal("", "error(0.1) D0\nerror(0.7) D0\n").find("error 1 is likelier than not"), std::string::npos);
}

} // namespace
} // namespace cudaq::qec::realtime::test
