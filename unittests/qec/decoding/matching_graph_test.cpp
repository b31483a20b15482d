// SPDX-License-Identifier: Apache-2.0
// The matching graph is the one that PyMatching makes, where PyMatching keeps every error of the model.
#include "lib/qec/decoders/matching/matching_graph.h"
#include "unittests/qec/qec_test_support.h"

#include <bit>
#include <random>
#include <tuple>

namespace cudaq::qec::realtime::test {
namespace {

using edge_bits = std::tuple<std::size_t, std::size_t, std::vector<std::size_t>, std::uint64_t>;

std::vector<edge_bits> bits_of(const pm::UserGraph &graph) {
  std::vector<edge_bits> edges;
  for (const pm::UserEdge &e : graph.edges) {
    const auto [low, high] = std::minmax(e.node1, e.node2);
    std::vector<std::size_t> observables = e.observable_indices;
    std::sort(observables.begin(), observables.end());
    edges.emplace_back(low, high, observables, std::bit_cast<std::uint64_t>(e.weight));
  }
  return edges;
}

void expect_pymatchings_graph(const std::string &dem) {
  const auto model = parse_dem(dem);
  ASSERT_TRUE(model.ok()) << model.text();
  matching_graph ours = make_matching_graph(*model);
  auto theirs = pm::detector_error_model_to_user_graph(stim::DetectorErrorModel(dem), false, pm::NUM_DISTINCT_WEIGHTS);
  EXPECT_EQ(bits_of(ours.graph), bits_of(theirs)) << dem;
  EXPECT_EQ(ours.graph.get_num_nodes(), theirs.get_num_nodes());
  EXPECT_EQ(ours.graph.get_num_observables(), theirs.get_num_observables());
  EXPECT_TRUE(ours.always_flipped.empty());
}

TEST(MatchingGraph, EqualsPyMatchingsOfEveryCommittedModel) {
  for (const std::string &name : committed_sets())
    expect_pymatchings_graph(load_committed(name).dem_text);
}

// Edges repeat, with the same observables: PyMatching merges their weights one after the other. The bits of the result
// depend on the order.
TEST(MatchingGraph, EqualsPyMatchingsOfRandomModelsBitByBit) {
  std::mt19937 random(7);
  for (int model = 0; model < 300 && !HasFailure(); ++model) {
    std::string dem;
    for (int k = 0; k < 40; ++k) {
      const unsigned a = random() % 8, b = random() % 8;
      dem +=
          "error(" + std::to_string(std::uniform_real_distribution(0.001, 0.999)(random)) + ") D" + std::to_string(a);
      if (a != b)
        dem += " D" + std::to_string(b);
      for (unsigned o = 0; o < 4; ++o) // a function of the edge
        if (((a + b + a * b) >> o & 1U) != 0)
          dem += " L" + std::to_string(o);
      dem += k % 5 == 0 ? " ^ D9\n" : "\n";
    }
    expect_pymatchings_graph(dem);
  }
}

using joint_bits = std::tuple<std::size_t, std::size_t, std::uint64_t>;

std::vector<std::pair<edge_bits, std::vector<joint_bits>>> correlated_bits_of(const pm::UserGraph &graph) {
  const std::vector<edge_bits> edges = bits_of(graph);
  std::vector<std::pair<edge_bits, std::vector<joint_bits>>> all;
  for (std::size_t k = 0; const pm::UserEdge &e : graph.edges) {
    std::vector<joint_bits> joint;
    for (const pm::ImpliedWeightUnconverted &other : e.implied_weights_for_other_edges)
      joint.emplace_back(other.node1, other.node2, std::bit_cast<std::uint64_t>(other.implied_weight));
    all.emplace_back(edges[k++], std::move(joint));
  }
  return all;
}

void expect_pymatchings_correlated_graph(const std::string &dem) {
  const auto model = parse_dem(dem);
  ASSERT_TRUE(model.ok()) << model.text();
  const auto theirs =
      pm::detector_error_model_to_user_graph(stim::DetectorErrorModel(dem), true, pm::NUM_DISTINCT_WEIGHTS);
  EXPECT_EQ(correlated_bits_of(make_correlated_graph(*model).graph), correlated_bits_of(theirs));
}

TEST(CorrelatedGraph, EqualsPyMatchingsOfACommittedModel) {
  expect_pymatchings_correlated_graph(load_committed("surface_z_d3_p0.005").dem_text);
}

// Those of D0, D1 and D2 have up to 200: their search has an index.
TEST(CorrelatedGraph, EqualsPyMatchingsWhereAnEdgeHasManyPartners) {
  std::mt19937 random(7);
  std::string dem;
  for (int k = 0; k < 4000; ++k) {
    const auto probability = std::to_string(std::uniform_real_distribution(0.001, 0.01)(random));
    dem += "error(" + probability + ") D" + std::to_string(random() % 3) + " ^ D" + std::to_string(3 + random() % 200) +
           " D300\n";
  }
  expect_pymatchings_correlated_graph(dem);
}

} // namespace
} // namespace cudaq::qec::realtime::test
