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
  std::vector<double> boundary;

  explicit weighted_nodes(std::size_t count)
      : pairs(count, std::vector<double>(count, kInfinite)), boundary(count, kInfinite) {}
  [[nodiscard]] std::size_t count() const { return boundary.size(); }
  void set(std::size_t a, std::size_t b, double weight) { pairs[a][b] = pairs[b][a] = weight; }
};

/// Of the first `count` nodes, by all matchings.
double least_of_all(const weighted_nodes &nodes, std::size_t count) {
  std::vector<double> least(std::size_t{1} << count, kInfinite);
  least[0] = 0;
  for (std::size_t set = 1; set < least.size(); ++set) {
    const auto first = static_cast<std::size_t>(std::countr_zero(set));
    const std::size_t rest = set & (set - 1);
    least[set] = nodes.boundary[first] + least[rest];
    for (std::size_t other = first + 1; other < count; ++other)
      if ((set >> other & 1) != 0)
        least[set] = std::min(least[set], nodes.pairs[first][other] + least[rest ^ std::size_t{1} << other]);
  }
  return least.back();
}

void expect_least(event_matching &matching, const weighted_nodes &nodes, const std::string &what) {
  const std::size_t count = nodes.count();
  matching.begin(count);
  for (std::size_t a = 0; a < count; ++a) {
    matching.set_boundary(a, nodes.boundary[a]);
    for (std::size_t b = 0; b < a; ++b)
      matching.set_pair(a, b, nodes.pairs[a][b]);
  }
  const auto found = matching.weigh();
  const double without = least_of_all(nodes, count - 1);
  ASSERT_EQ(found.has_value(), without < kInfinite) << what;
  if (found) {
    ASSERT_EQ((*found)[0], without) << what;
    ASSERT_EQ((*found)[1], least_of_all(nodes, count)) << what;
  }
}

// Few different weights: rings of odd length are everywhere, in each other, and break again.
TEST(EventMatching, HasTheLeastWeightOfAllMatchings) {
  struct {
    const char *what;
    int highest, boundary; ///< of half a weight
    unsigned missing;      ///< one pair in so many; 0: none
    bool no_boundary;
  } constexpr kCases[] = {{"few weights", 3, 6, 0, false},     {"many weights", 1000, 1500, 0, false},
                          {"far boundary", 20, 500, 0, false}, {"pairs only", 20, 0, 0, true},
                          {"few pairs", 9, 30, 2, false},      {"few pairs, no boundary", 9, 0, 3, true}};
  std::mt19937 random(44);
  event_matching matching(16);
  for (const auto &c : kCases)
    for (int round = 0; round < 800 && !testing::Test::HasFatalFailure(); ++round) {
      weighted_nodes nodes(1 + random() % 11);
      for (std::size_t a = 0; a < nodes.count(); ++a) {
        if (!c.no_boundary)
          nodes.boundary[a] = 2 * std::uniform_int_distribution(0, c.boundary)(random);
        for (std::size_t b = 0; b < a; ++b)
          if (c.missing == 0 || random() % c.missing != 0)
            nodes.set(a, b, 2 * std::uniform_int_distribution(0, c.highest)(random));
      }
      expect_least(matching, nodes, std::string(c.what) + ", round " + std::to_string(round));
    }
}

// Points in a box: the weights are distances, as those of events.
TEST(EventMatching, HasTheLeastWeightOfPointsInABox) {
  std::mt19937 random(45);
  event_matching matching(20);
  for (int round = 0; round < 80 && !testing::Test::HasFatalFailure(); ++round) {
    constexpr int kSide = 9;
    weighted_nodes nodes(10 + random() % 6);
    std::vector<std::array<int, 3>> at(nodes.count());
    for (std::size_t a = 0; a < nodes.count(); ++a) {
      for (int &x : at[a])
        x = static_cast<int>(random() % kSide);
      nodes.boundary[a] = 2 * (at[a][0] + 1);
      for (std::size_t b = 0; b < a; ++b)
        nodes.set(a, b,
                  2 * (std::abs(at[a][0] - at[b][0]) + std::abs(at[a][1] - at[b][1]) + std::abs(at[a][2] - at[b][2])));
    }
    const std::size_t last = nodes.count() - 1; // the other side of the box
    nodes.boundary[last] = 2 * (kSide + 1);
    for (std::size_t a = 0; a < last; ++a)
      nodes.set(a, last, 2 * (kSide - at[a][0]));
    expect_least(matching, nodes, "round " + std::to_string(round));
  }
}

} // namespace
} // namespace cudaq::qec::realtime::test
