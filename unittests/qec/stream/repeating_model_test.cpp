// SPDX-License-Identifier: Apache-2.0
// Models with a loop of any count, in texts that are written and in texts drawn at random.
#include "lib/qec/decoding/split_errors/component_errors.h"
#include "lib/qec/stream/code_distance.h"
#include "lib/qec/stream/window_set.h"
#include "unittests/qec/equal_models.h"
#include "unittests/qec/stream/stream_test_support.h"

namespace cudaq::qec::realtime::test {
namespace {

using sizes = std::vector<std::uint64_t>;

/// The model with this count in the loop that begins with `loop`, read as a whole.
detector_error_model flattened(std::string text, std::uint64_t repetitions, const std::string &loop = "repeat ") {
  const std::size_t at = text.find(loop) + 7;
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

// Models with loops drawn at random: nested, one after another, with shifts in several places, and errors that reach
// into later repetitions. The parser unrolls a text; the splitter must agree with it at every length.

/// Draws texts. The longest loop stands at the top, and its count is the only "repeat 777".
class random_model {
public:
  explicit random_model(std::uint32_t seed) : random_(seed), per_round_(1 + draw(3)) {}

  std::string text() {
    std::string made;
    for (std::uint64_t k = draw(3); k != 0; --k)
      made += draw(2) == 0 ? round() : loop(2);
    made += "repeat 777 {\n" + body(2) + "}\n";
    for (std::uint64_t k = draw(3); k != 0; --k)
      made += draw(2) == 0 ? round() : loop(1);
    return made + last_rounds();
  }
  std::uint64_t per_round() const { return per_round_; }

private:
  std::uint64_t draw(std::uint64_t below) { return random_() % below; }
  std::string detector(std::uint64_t k) { return " D" + std::to_string(k); }

  /// One round: its detectors, errors in it and to at most two rounds ahead, and the shift to the next one.
  std::string round() {
    std::string made;
    for (std::uint64_t k = 0; k < per_round_; ++k)
      made += "detector(" + std::to_string(k) + ",0)" + detector(k) + "\n";
    for (std::uint64_t k = 0; k < per_round_; ++k) {
      made += "error(0.0" + std::to_string(1 + draw(9)) + ")" + detector(k);
      if (draw(3) != 0)
        made += detector(k + per_round_ * draw(3) + (k + 1 < per_round_ ? 1 : per_round_));
      if (draw(4) == 0)
        made += " L" + std::to_string(draw(2));
      if (draw(5) == 0)
        made += " ^" + detector(draw(per_round_)) + " L1";
      made += "\nerror(0.02)" + detector(k) + (k == 0 ? " L0\n" : "\n");
    }
    // The shift in one piece or in two.
    const std::uint64_t first = draw(per_round_ + 1);
    if (first != 0)
      made += "shift_detectors " + std::to_string(first) + "\n";
    return made + "shift_detectors(0,1) " + std::to_string(per_round_ - first) + "\n";
  }
  std::string body(std::uint64_t depth) {
    std::string made;
    for (std::uint64_t k = 1 + draw(2); k != 0; --k)
      made += depth != 0 && draw(3) == 0 ? loop(depth - 1) : round();
    return made;
  }
  std::string loop(std::uint64_t depth) {
    return "repeat " + std::to_string(1 + draw(4)) + " {\n" + body(depth) + "}\n";
  }
  /// The detectors that errors before the end name.
  std::string last_rounds() {
    std::string made;
    for (std::uint64_t r = 0; r < 4; ++r)
      for (std::uint64_t k = 0; k < per_round_; ++k)
        made += "detector(" + std::to_string(k) + "," + std::to_string(r) + ")" + detector(k + r * per_round_) +
                "\nerror(0.01)" + detector(k + r * per_round_) + "\n";
    return made;
  }

  std::mt19937 random_;
  std::uint64_t per_round_;
};

TEST(RandomLoops, AreForEveryLengthTheModelThatTheParserUnrolls) {
  std::mt19937 random(99);
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    random_model draw(seed);
    const std::string text = draw.text();
    SCOPED_TRACE("seed " + std::to_string(seed) + ":\n" + text);
    const repeating_model model = repeating_or_throw(text);
    ASSERT_EQ(model.repetitions(), 777U);
    const auto by_index = repeating_or_throw(text, "index:" + std::to_string(draw.per_round()));
    EXPECT_EQ(by_index.body(), model.body()) << "both rules find the same rounds";
    for (const std::uint64_t length : std::initializer_list<std::uint64_t>{0, 1, 2, 3, 3 + random() % 40}) {
      const detector_error_model whole = flattened(text, length, "repeat 777");
      const auto unrolled = model.unrolled(length);
      ASSERT_TRUE(unrolled.ok()) << unrolled.text();
      ASSERT_EQ(unrolled->num_detectors, whole.num_detectors);
      ASSERT_EQ(unrolled->targets, whole.targets);
      ASSERT_EQ(unrolled->components.size(), whole.components.size());
      for (std::size_t k = 0; k < whole.components.size(); ++k) {
        ASSERT_EQ(unrolled->components[k].probability, whole.components[k].probability);
        ASSERT_EQ(unrolled->components[k].mechanism, whole.components[k].mechanism);
        ASSERT_EQ(unrolled->components[k].first_target, whole.components[k].first_target);
      }
      const std::vector<std::uint64_t> rounds = model.rounds(length);
      ASSERT_EQ(rounds.size(), whole.num_detectors);
      EXPECT_TRUE(std::ranges::is_sorted(rounds));
    }
  }
}

TEST(RandomLoops, GiveWindowsThatCommitEveryErrorOnce) {
  int tested = 0;
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    const std::string text = random_model(seed).text();
    SCOPED_TRACE("seed " + std::to_string(seed) + ":\n" + text);
    const repeating_model repeating = repeating_or_throw(text);
    const auto placed = place_observables(*repeating.unrolled(12));
    if (placed.failed())
      continue; // matching does not take it
    ++tested;
    const std::vector<std::uint64_t> rounds = repeating.rounds(12);
    const window_source source(*placed, rounds, error_form::joined);
    const connected_parts parts(*placed, false);
    std::size_t all = 0;
    for (const dem_component &c : placed->components)
      all += c.detectors != 0 && parts.parts[parts.part_of[placed->detectors_of(c)[0]]].flips_observables ? 1 : 0;
    for (const bool parallel : {false, true}) {
      const std::uint64_t commit = std::max<std::uint64_t>(repeating.reach(), 2);
      const window_layout layout{commit, repeating.reach(), parallel};
      const std::uint64_t end = source.num_rounds(), windows = layout.complete(end - repeating.tail().size());
      std::size_t committed = 0;
      for (std::uint64_t j = 0; j <= windows; ++j) {
        const window_rounds here = j < windows ? layout.rounds_of(j) : window_rounds{j * commit, j * commit, end, end};
        const window_model window = source.window(here);
        const auto *const parsed = &window.errors;
        for (const dem_component &c : parsed->components)
          committed += std::ranges::any_of(parsed->detectors_of(c), [&](std::uint64_t d) {
            const std::uint64_t round = rounds[window.first_detector + d];
            return round >= here.commit_begin && round < here.commit_end;
          });
      }
      EXPECT_EQ(committed, all) << (parallel ? "parallel" : "sequential");
    }
  }
  EXPECT_GE(tested, 30);
}

} // namespace
} // namespace cudaq::qec::realtime::test
