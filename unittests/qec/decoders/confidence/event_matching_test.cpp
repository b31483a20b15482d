// SPDX-License-Identifier: Apache-2.0
// Matchings of least weight between few nodes, against all matchings.
#include "lib/qec/decoders/confidence/event_matching.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace cudaq::qec::realtime::test {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

struct weighted_nodes {
  std::vector<std::vector<double>> pairs;
  std::vector<std::array<double, 2>> sides; ///< of each node: left, right
  double across = kInfinite;

  explicit weighted_nodes(std::size_t count)
      : pairs(count, std::vector<double>(count, kInfinite)), sides(count, {kInfinite, kInfinite}) {}
  [[nodiscard]] std::size_t count() const { return sides.size(); }
  void set(std::size_t a, std::size_t b, double weight) { pairs[a][b] = pairs[b][a] = weight; }
};

/// With an even and with an odd number at the right, by all matchings.
std::array<double, 2> least_of_all(const weighted_nodes &nodes) {
  std::vector<std::array<double, 2>> least(std::size_t{1} << nodes.count(), {kInfinite, kInfinite});
  least[0] = {0, nodes.across};
  for (std::size_t set = 1; set < least.size(); ++set) {
    const auto first = static_cast<std::size_t>(std::countr_zero(set));
    const std::size_t rest = set & (set - 1);
    for (std::size_t odd = 0; odd < 2; ++odd) {
      double &of = least[set][odd];
      of = std::min(nodes.sides[first][0] + least[rest][odd], nodes.sides[first][1] + least[rest][1 - odd]);
      for (std::size_t other = first + 1; other < nodes.count(); ++other)
        if ((set >> other & 1) != 0)
          of = std::min(of, nodes.pairs[first][other] + least[rest ^ std::size_t{1} << other][odd]);
    }
  }
  return least.back();
}

void expect_least(event_matching &matching, const weighted_nodes &nodes, const std::string &what) {
  const std::size_t count = nodes.count();
  matching.begin(count, nodes.across);
  for (std::size_t a = 0; a < count; ++a) {
    matching.set_boundaries(a, nodes.sides[a][0], nodes.sides[a][1]);
    for (std::size_t b = 0; b < a; ++b)
      matching.set_pair(a, b, nodes.pairs[a][b]);
  }
  const auto found = matching.weigh();
  const std::array<double, 2> least = least_of_all(nodes);
  ASSERT_EQ(found.has_value(), std::min(least[0], least[1]) < kInfinite) << what;
  if (found) {
    ASSERT_EQ(*found, least) << what;
  }
}

// Few different weights: rings of odd length are everywhere, in each other, and break again.
TEST(EventMatching, HasTheLeastWeightsOfAllMatchings) {
  struct {
    const char *what;
    int highest, boundary; ///< of half a weight
    unsigned missing;      ///< one pair in so many; 0: none
    unsigned sides;        ///< 0: no boundary, 1: the left alone, 2: both
  } constexpr kCases[] = {{"few weights", 3, 3, 0, 2},       {"many weights", 1000, 1500, 0, 2},
                          {"far boundaries", 20, 500, 0, 2}, {"pairs only", 20, 0, 0, 0},
                          {"few pairs", 9, 30, 2, 2},        {"few pairs, no boundary", 9, 0, 3, 0},
                          {"one boundary", 3, 6, 0, 1},      {"near boundaries", 9, 3, 0, 2}};
  std::mt19937 random(44);
  const auto weight = [&random](int highest) { return 2 * std::uniform_int_distribution(0, highest)(random); };
  event_matching matching(12);
  for (const auto &c : kCases)
    for (int round = 0; round < 800 && !testing::Test::HasFatalFailure(); ++round) {
      weighted_nodes nodes(1 + random() % 11);
      if (random() % 2 == 0)
        nodes.across = weight(3 * c.highest);
      for (std::size_t a = 0; a < nodes.count(); ++a) {
        for (unsigned side = 0; side < c.sides; ++side)
          if (c.missing == 0 || random() % c.missing != 0)
            nodes.sides[a][side] = weight(c.boundary);
        for (std::size_t b = 0; b < a; ++b)
          if (c.missing == 0 || random() % c.missing != 0)
            nodes.set(a, b, weight(c.highest));
      }
      expect_least(matching, nodes, std::string(c.what) + ", round " + std::to_string(round));
    }
}

// Points in a box: the weights are distances, as those of events.
TEST(EventMatching, HasTheLeastWeightsOfPointsInABox) {
  std::mt19937 random(45);
  event_matching matching(16);
  for (int round = 0; round < 80 && !testing::Test::HasFatalFailure(); ++round) {
    constexpr int kSide = 9;
    weighted_nodes nodes(10 + random() % 6);
    std::vector<std::array<int, 3>> at(nodes.count());
    for (std::size_t a = 0; a < nodes.count(); ++a) {
      for (int &x : at[a])
        x = static_cast<int>(random() % kSide);
      nodes.sides[a] = {2.0 * (at[a][0] + 1), 2.0 * (kSide - at[a][0])};
      for (std::size_t b = 0; b < a; ++b)
        nodes.set(a, b,
                  2 * (std::abs(at[a][0] - at[b][0]) + std::abs(at[a][1] - at[b][1]) + std::abs(at[a][2] - at[b][2])));
    }
    nodes.across = 2 * (kSide + 1);
    expect_least(matching, nodes, "round " + std::to_string(round));
  }
}

} // namespace
} // namespace cudaq::qec::realtime::test
