// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/stream/window_model.h"
#include "unittests/qec/stream/stream_test_support.h"

#include <map>

namespace cudaq::qec::realtime::test {
namespace {

/// A chain of four rounds with one detector each: D0 - D1 - D2 - D3, boundary edges at both ends, L0 in the middle.
struct chain {
  detector_error_model model = *parse_dem("error(0.1) D0\nerror(0.2) D0 D1 L1\nerror(0.3) D1 D2 L0\nerror(0.25) D2 D3\n"
                                          "error(0.15) D3 L1\n");
  std::vector<std::uint64_t> rounds{0, 1, 2, 3};
};

/// The errors of a window as text: "D.. L..", without its parities.
std::map<std::string, double> errors_of(const window_model &window) {
  std::map<std::string, double> errors;
  const auto *const parsed = &window.errors;
  for (const dem_component &c : parsed->components) {
    std::string text;
    for (const std::uint64_t d : parsed->detectors_of(c))
      text += " D" + std::to_string(d);
    for (const std::uint64_t k : parsed->observables_of(c))
      if (k < window.num_observables + window.crossings.size())
        text += " L" + std::to_string(k);
    errors[text] = c.probability;
  }
  return errors;
}

window_model make_window_model(const detector_error_model &model, const std::vector<std::uint64_t> &rounds,
                               window_rounds window, error_form form) {
  return window_source(model, rounds, form).window(window);
}

TEST(WindowModel, CommitsTheErrorsOfTheCommittedRoundsAndOpensTheFarSide) {
  const chain c;
  const window_model window = make_window_model(c.model, c.rounds, {0, 0, 2, 3}, error_form::components);
  EXPECT_EQ(window.num_detectors, 3U);
  EXPECT_EQ(window.crossings, std::vector<std::uint64_t>{2}) << "the error over the line leaves an event after it";
  const std::map<std::string, double> expected = {
      {" D0", 0.1}, {" D0 D1 L1", 0.2}, {" D1 D2 L0 L2", 0.3}, {" D2", 0.25}};
  EXPECT_EQ(errors_of(window), expected) << "D2 D3 leaves the window: an edge to the boundary that commits nothing";
}

TEST(WindowModel, ClosesTheNearSideUnlessItIsOpen) {
  const chain c;
  EXPECT_EQ(errors_of(make_window_model(c.model, c.rounds, {2, 2, 4, 4}, error_form::components)),
            (std::map<std::string, double>{{" D0 D1", 0.25}, {" D1 L1", 0.15}}));
  const window_model open = make_window_model(c.model, c.rounds, {1, 2, 3, 4, true}, error_form::components);
  EXPECT_EQ(errors_of(open),
            (std::map<std::string, double>{{" D0", 0.2}, {" D0 D1 L0 L2", 0.3}, {" D1 D2 L3", 0.25}, {" D2", 0.15}}));
  EXPECT_EQ(open.crossings, (std::vector<std::uint64_t>{0, 2})) << "artificial events on both sides";
}

TEST(WindowModel, LeavesADecidedErrorOutWholeOrByComponent) {
  const auto model = *parse_dem("error(0.1) D0 ^ D1 D2 L0\n");
  const std::vector<std::uint64_t> rounds{0, 1, 2};
  EXPECT_EQ(errors_of(make_window_model(model, rounds, {1, 1, 3, 3}, error_form::components)),
            (std::map<std::string, double>{{" D0 D1 L0", 0.1}}));
  EXPECT_TRUE(errors_of(make_window_model(model, rounds, {1, 1, 3, 3}, error_form::whole)).empty());
  EXPECT_EQ(errors_of(make_window_model(model, rounds, {0, 0, 3, 3}, error_form::whole)),
            (std::map<std::string, double>{{" D0 D1 D2 L0", 0.1}}));
}

TEST(WindowModel, TheWindowsOfAModelCommitEachErrorExactlyOnce) {
  const repeating_model repeating = repeating_or_throw(surface_dem());
  const auto model = *repeating.unrolled(9);
  const std::vector<std::uint64_t> rounds = repeating.rounds(9);
  const std::uint64_t end = rounds.back() + 1;
  for (const std::uint64_t commit : {1U, 2U, 3U, 5U, 30U}) {
    std::size_t committed = 0;
    for (std::uint64_t line = 0; line < end; line += commit) {
      const std::uint64_t next = std::min(line + commit, end);
      const window_model window =
          make_window_model(model, rounds, {line, line, next, std::min(next + 3, end)}, error_form::joined);
      const auto *const parsed = &window.errors;
      for (const dem_component &c : parsed->components)
        committed += std::ranges::any_of(parsed->detectors_of(c),
                                         [&](std::uint64_t d) { return rounds[window.first_detector + d] < next; });
    }
    EXPECT_EQ(committed, model.components.size()) << "commit " << commit;
  }
}

TEST(WindowModel, LeavesOutPartsThatFlipNoObservable) {
  const auto model = *parse_dem("error(0.1) D0 L0\nerror(0.1) D0 D2 L0 ^ D1 D3\nerror(0.1) D2\nerror(0.1) D3\n");
  const std::vector<std::uint64_t> rounds{0, 0, 1, 1};
  const window_model apart = make_window_model(model, rounds, {0, 0, 1, 2}, error_form::components);
  EXPECT_EQ(apart.is_needed, (std::vector<std::uint8_t>{1, 0, 1, 0}));
  EXPECT_EQ(errors_of(apart), (std::map<std::string, double>{{" D0 L0", 0.1}, {" D0 D2 L0 L1", 0.1}, {" D2", 0.1}}));
  const window_model joined = make_window_model(model, rounds, {0, 0, 1, 2}, error_form::joined);
  EXPECT_EQ(joined.is_needed, (std::vector<std::uint8_t>{1, 1, 1, 1})) << "correlated matching uses all of them";
}

TEST(WindowModel, ParitiesNoticeACorrectionThatDoesNotExplainTheEvents) {
  const chain c;
  const window_model window = make_window_model(c.model, c.rounds, {0, 0, 2, 3}, error_form::components);
  const auto *const parsed = &window.errors;
  for (const dem_component &one : parsed->components) {
    std::uint8_t of_events = 0, of_errors = 0;
    for (const std::uint64_t d : parsed->detectors_of(one))
      of_events ^= window.parities[d];
    for (const std::uint64_t k : parsed->observables_of(one))
      if (k >= window.num_observables + window.crossings.size())
        of_errors = static_cast<std::uint8_t>(of_errors ^ 1U << (k - window.num_observables - window.crossings.size()));
    EXPECT_EQ(of_events, of_errors);
    EXPECT_NE(of_events, 0) << "no set of detectors goes unnoticed here";
  }
}

} // namespace
} // namespace cudaq::qec::realtime::test
