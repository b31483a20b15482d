// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/decoders/lookup_decoder.h"
#include "unittests/qec/every_error_set.h"

namespace cudaq::qec::realtime::test {
namespace {

TEST(LookupDecoder, FindsTheLeastSetOfEverySyndromeOfRandomGraphs) {
  std::mt19937 random(3);
  for (int model = 0; model < 60; ++model)
    expect_least("lookup", random_model(random, 2, 0.4));
}

TEST(LookupDecoder, FindsTheLeastSetWithErrorsOfManyDetectors) {
  std::mt19937 random(4);
  for (int model = 0; model < 30; ++model)
    expect_least("lookup", random_model(random, 4, 0.4));
}

TEST(LookupDecoder, FindsTheLeastSetWithErrorsLikelierThanNot) {
  std::mt19937 random(5);
  for (int model = 0; model < 30; ++model)
    expect_least("lookup", random_model(random, 2, 0.95));
}

TEST(LookupDecoder, GivesATieToTheSmallestObservables) {
  // D0 alone means L1, or L0 and L1, or L2: all have the same weight.
  for (const char *dem : {"error(0.1) D0 L1\nerror(0.1) D0 L0 L1\nerror(0.1) D0 L2\n",
                          "error(0.1) D0 L2\nerror(0.1) D0 L0 L1\nerror(0.1) D0 L1\n"})
    EXPECT_EQ(decode(*make_or_throw("lookup", dem), {0}).observables, bits(3, {1}));
}

class LookupGolden : public testing::TestWithParam<std::string> {};

TEST_P(LookupGolden, EqualsPyMatchingsPredictionsAtDistance3) {
  const shot_set set = load_committed(shot_set_name(3, GetParam()));
  const auto with = make_or_throw("lookup", set.dem_text);
  std::vector<std::uint64_t> events(set.num_detectors);
  for (std::uint64_t shot = 0; shot < set.shots; ++shot) {
    const std::size_t count = unpack_events(set.detection_row(shot), set.num_detectors, events).count;
    std::uint8_t out = 0;
    ASSERT_EQ(with->decode(std::span(events).first(count), {&out, 1}), decode_status::ok);
    EXPECT_EQ(out, set.prediction_row(shot)[0]) << "shot " << shot;
  }
}

INSTANTIATE_TEST_SUITE_P(Noise, LookupGolden, testing::Values("0.003", "0.005"), kind_name);

class LookupAllSyndromes : public testing::TestWithParam<std::string> {};

TEST_P(LookupAllSyndromes, AgreeWithExactWeightsAndDifferFromPyMatchingOnlyOnTies) {
  constexpr double kRounding = 1e-4;
  const shot_set set = load_committed(shot_set_name(3, GetParam()));
  const auto lookup = make_or_throw("lookup", set.dem_text);
  const auto other = make_or_throw("auto", set.dem_text); // PyMatching if it was built in
  const relaxed_weights exact(*parse_dem(set.dem_text));
  ASSERT_EQ(exact.detectors.size(), 16U);
  int ties = 0;
  for (std::uint64_t row = 0; row < 1U << 16; ++row) {
    std::vector<std::uint64_t> events;
    for (const std::uint64_t bit : indices_of(row))
      events.push_back(exact.detectors[bit]);
    const auto [without, with] = exact.of(row);
    const bool tie = std::abs(without - with) < kRounding;
    ties += tie;
    if (tie)
      continue;
    const answer expected{decode_status::ok,
                          bits(1, with < without ? std::vector<std::uint64_t>{0} : std::vector<std::uint64_t>{})};
    ASSERT_EQ(decode(*lookup, events), expected) << "row " << row;
    ASSERT_EQ(decode(*other, events), expected) << "row " << row;
  }
  RecordProperty("ties", ties);
}

INSTANTIATE_TEST_SUITE_P(Noise, LookupAllSyndromes, testing::Values("0.003", "0.005"), kind_name);

TEST(LookupDecoder, RefusesACodeThatIsTooLargeAndSaysWhatToDo) {
  const decoder_result made = make_decoder("lookup", load_committed(shot_set_name(5, "0.003")).dem_text);
  EXPECT_FALSE(made);
  EXPECT_NE(made.error.find("a table holds at most 20 detectors"), std::string::npos) << made.error;
  EXPECT_NE(made.error.find("use the pymatching decoder"), std::string::npos) << made.error;
}

TEST(LookupDecoder, ByDepthGivesTheAnswerOfTheWholeTableOrNone) {
  const shot_set set = load_committed(shot_set_name(3, "0.005"));
  const auto whole = make_or_throw("lookup", set.dem_text), by_depth = make_or_throw("lookup:depth=2", set.dem_text);
  const relaxed_weights exact(*parse_dem(set.dem_text));
  int answered = 0, others = 0;
  for (std::uint64_t row = 0; row < 1U << 16; row += 3) {
    std::vector<std::uint64_t> events;
    for (const std::uint64_t bit : indices_of(row))
      events.push_back(exact.detectors[bit]);
    const answer found = decode(*by_depth, events);
    if (found.status != decode_status::ok) {
      ASSERT_EQ(found.status, decode_status::not_converged);
      continue;
    }
    ++answered;
    others += found != decode(*whole, events);
  }
  EXPECT_GT(answered, 300);
  EXPECT_LT(others, answered / 10) << "three errors may be likelier than two";
  for (const std::uint64_t detector : exact.detectors)
    EXPECT_EQ(decode(*by_depth, {detector}), decode(*whole, {detector}));
}

TEST(LookupDecoder, ByDepthRefusesMoreSetsThanATableHolds) {
  const std::string dem = load_committed(shot_set_name(5, "0.003")).dem_text;
  EXPECT_EQ(decode(*make_or_throw("lookup:depth=1", dem), {}).status, decode_status::ok);
  EXPECT_NE(make_decoder("lookup:depth=16", dem).error.find("use a smaller depth"), std::string::npos);
  EXPECT_NE(make_decoder("lookup:depth=17", dem).error.find("depth"), std::string::npos);
}

TEST(LookupDecoder, RefusesMorePartsThanAViewHolds) {
  std::string dem;
  for (int k = 0; k < 17; ++k)
    dem += "error(0.1) D" + std::to_string(k) + " L" + std::to_string(k) + "\n";
  EXPECT_FALSE(make_decoder("lookup", dem));
}

} // namespace
} // namespace cudaq::qec::realtime::test
