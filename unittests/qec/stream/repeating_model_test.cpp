// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/stream/code_distance.h"
#include "unittests/qec/equal_models.h"
#include "unittests/qec/stream/stream_test_support.h"

namespace cudaq::qec::realtime::test {
namespace {

using sizes = std::vector<std::uint64_t>;

/// The model with this count in its (only) loop, read as a whole.
detector_error_model flattened(std::string text, std::uint64_t repetitions) {
  const std::size_t at = text.find("repeat ") + 7;
  text.replace(at, text.find(' ', at) - at, std::to_string(repetitions));
  auto model = parse_dem(text);
  if (model.failed())
    throw std::runtime_error(model.text());
  return std::move(*model);
}

TEST(RepeatingModel, IsForEveryLengthTheModelOfThatLength) {
  for (const std::string &text : {repetition_dem(3, 0.01, 1, 7), repetition_dem(4, 0.01, 3, 7), surface_dem()}) {
    const repeating_model model = repeating_or_throw(text);
    for (std::uint64_t length = 0; length <= 50; ++length) {
      const detector_error_model whole = flattened(text, length);
      const auto unrolled = model.unrolled(length);
      ASSERT_TRUE(unrolled.ok());
      expect_equal(*unrolled, whole);
      const std::vector<std::uint64_t> rounds = model.rounds(length);
      ASSERT_EQ(rounds.size(), whole.num_detectors);
      const std::uint64_t endless = model.head().size() + length * model.body().size();
      for (std::uint64_t d = 0; d < rounds.size() && rounds[d] < endless; ++d) {
        ASSERT_EQ(model.round_of(d), rounds[d]);
        ASSERT_LE(model.first_detector(rounds[d]), d);
        ASSERT_GT(model.first_detector(rounds[d] + 1), d);
      }
    }
  }
}

TEST(RepeatingModel, FindsTheRoundsOfStimsLoopsAndTheirPeriod) {
  const repeating_model model = repeating_or_throw(surface_dem());
  EXPECT_EQ(model.head(), (sizes{4, 8}));
  EXPECT_EQ(model.body(), (sizes{8, 8})) << "Stim's shortest period has two rounds";
  EXPECT_EQ(model.tail(), (sizes{8, 8, 4}));
  EXPECT_EQ(model.reach(), 2U);
}

TEST(RepeatingModel, CountsRoundsByIndexWhereThereAreNoCoordinates) {
  const std::string text =
      "error(0.1) D0 D3\nrepeat 5 {\nerror(0.1) D0 D3 L0\nshift_detectors 3\n}\nerror(0.1) D0 D1 D2\n";
  EXPECT_NE(repeating_model::of(text, {}).text().find("rounds=index:N"), std::string::npos);
  const repeating_model model = repeating_or_throw(text, "index:3");
  EXPECT_EQ(model.body(), (sizes{3}));
  const auto uneven = repeating_model::of(text, *round_rule::parse("index:2"));
  EXPECT_NE(uneven.text().find("no whole rounds of 2"), std::string::npos) << uneven.text();
}

TEST(RepeatingModel, RepeatsTheLongestOfSeveralLoopsAndRunsTheOthersAsTheTextSays) {
  std::string text = repetition_dem(3, 0.01, 1, 900);
  text = "detector(0,-1) D0\ndetector(1,-1) D1\nerror(0.01) D0 D1\nshift_detectors(0,0) 2\nrepeat 3 {\ndetector(0,-1) "
         "D0\ndetector(1,-1) D1\nrepeat 2 {\nerror(0.02) D0 D1\n}\nshift_detectors(0,0) 2\n}\n" +
         text;
  const repeating_model model = repeating_or_throw(text);
  EXPECT_EQ(model.repetitions(), 900U);
  EXPECT_EQ(model.head(), (sizes{8, 2})) << "four parts with one coordinate are one round";
  expect_equal(*model.unrolled(900), *parse_dem(text));
}

TEST(RepeatingModel, TakesABodyWhoseErrorsReachTwoRepetitionsAhead) {
  const std::string text = "detector(0) D0\nrepeat 9 {\nerror(0.1) D0 D2\nshift_detectors(1) 1\ndetector(0) "
                           "D0\n}\ndetector(1) D1\nerror(0.1) D1 "
                           "L0\n";
  EXPECT_EQ(repeating_or_throw(text).reach(), 3U);
}

TEST(RepeatingModel, RefusesWhatHasNoRoundsWithAText) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"error(0.1) D0 L0\n", "no loop"},
      {"# nothing\n", "the model has no detectors"},
      {"repeat 5 {\nerror(0.1) D0 L0\n}\n", "moves no detectors"},
      {"repeat 5 {\ndetector(1) D0\ndetector(0) D1\nerror(0.1) D0 L0\nshift_detectors 2\n}\n", "order of rounds"},
      {"repeat 5 {\ndetector(1) D0\nerror(0.1) D0 D1 L0\nshift_detectors(1) 2\n}\n", "does not declare"},
      {"repeat 5 {\ndetector(0) D0\nerror(0.1) D0 D2000000 L0\nshift_detectors 1\n}\n", "too large"},
      {"repeat 5 {\nerror(0.1) D0", "no }"}};
  for (const auto &[text, wanted] : cases) {
    const auto model = repeating_model::of(text, {});
    ASSERT_TRUE(model.failed()) << text;
    EXPECT_NE(model.text().find(wanted), std::string::npos) << model.text();
  }
  for (const std::string rule : {"", "index", "index:0", "index:x", "index:3 ", "rounds"})
    EXPECT_TRUE(round_rule::parse(rule).failed()) << rule;
}

TEST(RepeatingModel, TheSearchForItsDistanceHasALimit) {
  for (const int d : {3, 5, 8}) {
    const auto model = *repeating_or_throw(repetition_dem(d, 0.01, 1, 9)).unrolled(6);
    EXPECT_EQ(code_distance(model), static_cast<std::uint64_t>(d));
    EXPECT_EQ(code_distance(model, 40), 0U) << "not known";
  }
}

TEST(RepeatingModel, TakesACountThatNoWholeShotCouldHave) {
  EXPECT_EQ(repeating_or_throw(repetition_dem(3, 0.01, 1, 1'000'000'000'000)).repetitions(), 1'000'000'000'000U);
}

} // namespace
} // namespace cudaq::qec::realtime::test
