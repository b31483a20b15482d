// SPDX-License-Identifier: Apache-2.0
// The rule `isolated`, clause by clause.
#include "lib/qec/decoding/detector_graph.h"
#include "unittests/qec/qec_test_support.h"

#include <algorithm>
#include <set>

namespace cudaq::qec::realtime::test {
namespace {

using detectors = std::set<std::uint32_t>;

/// What the rule leaves of the fired detectors. Checks that the two ends of each pair agree.
class rule_on {
public:
  explicit rule_on(const std::string &dem) : graph_(detector_graph::from_text(dem)) {
    if (graph_.failed())
      throw std::runtime_error(graph_.text());
  }
  detectors left(const detectors &fired) {
    const detector_graph_view view = graph_->view();
    std::vector<std::uint64_t> words(view.num_detectors / 64 + 1);
    for (const std::uint32_t d : fired)
      words[d / 64] |= std::uint64_t{1} << (d % 64);
    detectors left;
    std::size_t toggled = 0, matched = 0, boundary = 0;
    for (const std::uint32_t d : fired) {
      const local_decision decision = decide_locally(view, words.data(), d, local_rule::isolated);
      if (!decision.matched)
        left.insert(d);
      matched += decision.matched;
      toggled += decision.toggles;
      boundary += decision.toggles &&
                  decide_locally(view, words.data(), d, local_rule::isolated).observables == view.boundary[d] &&
                  is_alone(view, words.data(), d);
    }
    EXPECT_EQ((matched - boundary) % 2, 0u) << testing::PrintToString(fired);
    EXPECT_LE(toggled, matched);
    return left;
  }
  [[nodiscard]] detector_graph_view view() const { return graph_->view(); }

private:
  static bool is_alone(const detector_graph_view &view, const std::uint64_t *fired, std::uint32_t d) {
    return detail::only_fired_neighbour(view, fired, d, view.steps, single_lane{}).how == detail::only_neighbour::none;
  }
  expected<detector_graph> graph_;
};

/// A repetition code of distance n + 1: n detectors in a row, a boundary at both ends. The lightest logical operator
/// has n + 1 steps, so the limit is (n + 1) / 2 + 1 steps.
std::string row(int n, const std::string &more = "") {
  std::string dem = "error(0.01) D0 L0\nerror(0.01) D" + std::to_string(n - 1) + "\n";
  for (int d = 0; d + 1 < n; ++d)
    dem += "error(0.01) D" + std::to_string(d) + " D" + std::to_string(d + 1) + "\n";
  return dem + more;
}

TEST(IsolatedRule, APairIsMatchedIfEveryOtherWayWeighsMoreThanTheLimit) {
  rule_on d9(row(8)); // limit 5.5 steps
  EXPECT_EQ(d9.left({3, 4}), detectors{});
  EXPECT_EQ(d9.left({3, 4, 7}), detectors{7}) << "the other ways have 4 + 3, 4 + 4 and 4 + 3 steps";
  EXPECT_EQ(d9.left({3, 4, 6}), (detectors{3, 4, 6})) << "3 + 2 steps";
  EXPECT_EQ(d9.left({0, 1, 5}), (detectors{0, 1, 5})) << "0 to the boundary and 1 to 5: 1 + 4 steps";
  EXPECT_EQ(d9.left({0, 1, 6}), detectors{6}) << "1 + 5 steps";
  EXPECT_EQ(d9.left({2, 3, 4}), (detectors{2, 3, 4})) << "two fired neighbours";
}

TEST(IsolatedRule, TheBoundaryIsMatchedIfNothingElseFiredWithinTheLimit) {
  rule_on d9(row(8));
  EXPECT_EQ(d9.left({0}), detectors{});
  EXPECT_EQ(d9.left({0, 5}), (detectors{0, 5})) << "5 steps";
  EXPECT_EQ(d9.left({0, 6}), detectors{6}) << "6 steps, and 6 has no boundary edge";
  EXPECT_EQ(d9.left({3}), detectors{3}) << "no boundary edge";
}

TEST(IsolatedRule, TheLimitGrowsWithTheDistanceOfTheCode) {
  rule_on d5(row(4)), d13(row(12)); // limits 3.5 and 7.5 steps
  EXPECT_EQ(d5.left({1, 2}), detectors{});
  EXPECT_EQ(d13.left({4, 5, 9}), detectors{9}) << "5 + 4 steps";
  EXPECT_EQ(d13.left({4, 5, 8}), (detectors{4, 5, 8})) << "4 + 3 steps";
}

TEST(IsolatedRule, AnEdgeThatIsNotTheCheapestWayIsNotMatched) {
  const std::string dem = "error(0.2) D0 D1\nerror(0.2) D1 D2\n";
  rule_on cheap(dem + "error(0.1) D0 D2\n"), dear(dem + "error(0.01) D0 D2\n");
  EXPECT_EQ(cheap.left({0, 2}), detectors{});
  EXPECT_EQ(dear.left({0, 2}), (detectors{0, 2})) << "two errors of 0.2 are likelier than one of 0.01";
  rule_on boundary("error(0.01) D0 D1\nerror(0.2) D0\nerror(0.2) D1\n");
  EXPECT_EQ(boundary.left({0, 1}), (detectors{0, 1})) << "both to the boundary is likelier";
}

TEST(IsolatedRule, DistancesAreWeights) {
  // The same row with a light edge from 6 to 7: the distance from 4 to 7 is now less than three steps.
  rule_on equal(row(8)), light(row(8, "error(0.4) D5 D6\nerror(0.4) D6 D7\n"));
  EXPECT_EQ(equal.left({3, 4, 7}), detectors{7});
  EXPECT_EQ(light.left({3, 4, 7}), (detectors{3, 4, 7}));
}

// Known failure 41.
TEST(IsolatedRule, EdgesThatAreTooUnlikelyAreNotSeen) {
  rule_on without(row(8)), with(row(8, "error(1e-9) D0 D5\nerror(1e-9) D3 D7 L0\nerror(1e-9) D2\nerror(1e-9) D4 D6\n"));
  for (std::uint32_t syndrome = 0; syndrome < 256; ++syndrome) {
    detectors fired;
    for (std::uint32_t d = 0; d < 8; ++d)
      if ((syndrome >> d & 1) != 0)
        fired.insert(d);
    ASSERT_EQ(without.left(fired), with.left(fired)) << testing::PrintToString(fired);
  }
}

TEST(IsolatedRule, NothingIsMatchedInAPartWithAWeightThatIsNotPositive) {
  rule_on with(row(8, "error(0.6) D5 D6\nerror(0.1) D8 D9\n"));
  EXPECT_EQ(with.left({0, 2, 3}), (detectors{0, 2, 3}));
  EXPECT_EQ(with.left({8, 9}), detectors{}) << "another part";
}

TEST(IsolatedRule, EqualDetectorsWithOtherObservablesAreNotMatched) {
  rule_on with("error(0.1) D0 D1\nerror(0.1) D0 D1 L0\nerror(0.1) D2 D3\nerror(1e-8) D2 D3 L1\n");
  EXPECT_EQ(with.left({0, 1}), (detectors{0, 1}));
  EXPECT_EQ(with.left({2, 3}), detectors{}) << "the other error is too unlikely";
}

TEST(IsolatedRule, APartWithoutALogicalOperatorHasNoLimit) {
  std::string dem;
  for (int d = 0; d < 7; ++d)
    dem += "error(0.01) D" + std::to_string(d) + " D" + std::to_string(d + 1) + "\n";
  rule_on with(dem); // no boundary, no observable
  EXPECT_EQ(with.left({0, 1, 3, 4}), detectors{});
  EXPECT_EQ(with.left({0, 1, 2, 3}), (detectors{0, 1, 2, 3})) << "still no detector may have two partners";
}

TEST(IsolatedRule, TheEndsOfAnUnlikelyErrorAreLeftToTheMatcherThatMayUseIt) {
  EXPECT_EQ(rule_on(row(10)).left({0, 7}), (detectors{7}));
  EXPECT_EQ(rule_on(row(10, "error(1e-7) D0 D7\n")).left({0, 7}), (detectors{0, 7}));
}

TEST(IsolatedRule, ManyErrorsOfTheLeastProbabilityAreNotLeftOutInPart) {
  // 2000 rows, each with one error that is less likely than the others. All of these are 1 of 100 errors, two of them
  // are fewer than 1 of 100,000.
  std::string dem;
  for (int copy = 0; copy < 2000; ++copy)
    dem += row(10, "error(0.001) D0 D2\n") + "shift_detectors 10\n";
  const rule_on rule(dem);
  EXPECT_EQ(std::count(rule.view().steps, rule.view().steps + rule.view().edge_first[20000], edge_step::ignored), 0);
}

TEST(IsolatedRule, AnUnlikelyErrorThatWouldMakeALogicalOperatorBringsTheLimitBack) {
  // D10 to D19 are a row without a boundary and without an observable: every match is right. With an error of 1e-9
  // between D12 and D17, matching D14 with D15 makes the matcher take that error for D12 and D17, which flips L0. Alone
  // it takes the four errors D12-D13-D14 and D15-D16-D17, which are likelier.
  std::string dem = row(10);
  for (int d = 10; d < 19; ++d)
    dem += "error(0.01) D" + std::to_string(d) + " D" + std::to_string(d + 1) + "\n";
  const detectors fired{12, 14, 15, 17};
  EXPECT_EQ(rule_on(dem).left(fired), (detectors{12, 17}));
  dem += "error(1e-9) D12 D17 L0\n";
  EXPECT_EQ(rule_on(dem).left(fired), fired);
}

TEST(IsolatedRule, AClosedGraphHasTheLimitOfItsShortestLoop) {
  std::string dem; // a ring of 9 detectors
  for (int d = 0; d < 9; ++d)
    dem += "error(0.01) D" + std::to_string(std::min(d, (d + 1) % 9)) + " D" +
           std::to_string(std::max(d, (d + 1) % 9)) + (d == 3 ? " L0\n" : "\n");
  rule_on ring(dem); // limit 5.5 steps
  EXPECT_EQ(ring.left({0, 1}), detectors{});
  EXPECT_EQ(ring.left({0, 1, 4, 5}), detectors{}) << "4 + 3 steps each";
  EXPECT_EQ(ring.left({0, 1, 3, 4}), (detectors{0, 1, 3, 4})) << "3 + 2 steps";
}

TEST(IsolatedRule, ListsAreBounded) {
  for (const std::string &name : committed_sets()) {
    rule_on with(load_committed(name).dem_text);
    const detector_graph_view view = with.view();
    for (std::uint32_t v = 0; v < view.num_detectors; ++v) {
      ASSERT_LE(view.near_first[v + 1] - view.near_first[v], isolation_limits{}.near_detectors) << name;
      for (std::uint32_t i = view.near_first[v]; i + 1 < view.near_first[v + 1]; ++i)
        ASSERT_LE(view.near[i].distance, view.near[i + 1].distance) << name << ": nearest first";
    }
  }
}

TEST(IsolatedRule, OtherRulesNeedNoLists) {
  const auto graph = detector_graph::from_text(row(8), local_rule::guarded);
  EXPECT_EQ(graph->view().isolation, nullptr);
  const std::uint64_t fired = 3;
  EXPECT_FALSE(decide_locally(graph->view(), &fired, 0, local_rule::isolated).matched) << "without lists, no match";
  EXPECT_TRUE(decide_locally(graph->view(), &fired, 0, local_rule::guarded).matched);
}

} // namespace
} // namespace cudaq::qec::realtime::test
