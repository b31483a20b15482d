// SPDX-License-Identifier: Apache-2.0
// The gate of a predecoding rule: predecoder and matcher must correct every set of errors that the matcher alone
// corrects. Sets are deterministic. An error is an edge of the matching graph.
#pragma once

#include "lib/qec/decoders/offline_decoder.h"

#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace cudaq::qec::realtime::test {

struct gate_verdict {
  std::uint64_t sets = 0;
  std::uint64_t corrected = 0; ///< by the matcher alone
  std::uint64_t broken = 0;    ///< of these, not with the predecoder
  std::uint64_t reaching = 0;  ///< sets with a boundary edge, or with an edge between two rounds
  std::string first_broken;    ///< the first broken set, as edges "D1-D2"
};

/// The matching graph of a rotated surface code, memory in the Z basis, as many rounds as the distance.
class gate_model {
public:
  /// weights: "uniform_weights", or "uniform", "data", "measurement" (noise). unlikely: edges of 1e-9 to add, at
  /// random. They are in the model, and never in a set of errors: each of them happens less often than two others.
  gate_model(int distance, const std::string &weights, std::uint32_t unlikely);

  [[nodiscard]] const std::string &dem() const { return dem_; }
  [[nodiscard]] std::size_t num_edges() const { return edges_.size(); }
  [[nodiscard]] std::uint32_t half_distance() const { return static_cast<std::uint32_t>(distance_ - 1) / 2; }

  /// A cluster: the first edge uniform, each further one within two steps of the set, duplicates removed.
  [[nodiscard]] std::set<std::size_t> cluster(std::uint32_t edges, std::mt19937_64 &random) const;
  /// `edges` edges of a shortest logical operator, which is drawn at random once for each call of draw_operator.
  [[nodiscard]] std::set<std::size_t> part_of_operator(std::uint32_t edges, std::mt19937_64 &random) const;
  void draw_operator(std::mt19937_64 &random);

  void judge(const std::set<std::size_t> &errors, offline_decoder &alone, offline_decoder &with,
             gate_verdict &verdict) const;

private:
  struct edge {
    std::uint32_t a, b; ///< b: num_detectors_ for the boundary
    bool flips;
  };
  [[nodiscard]] int layer_of(std::uint32_t detector) const;

  int distance_;
  std::uint32_t num_detectors_ = 0;
  std::vector<edge> edges_;
  std::vector<std::vector<std::size_t>> edges_of_; ///< per detector, and of the boundary
  std::vector<std::size_t> operator_;
  std::string dem_;
};

/// The decoder alone, or after the local predecoder.
[[nodiscard]] offline_decoder make_offline(const std::string &dem);
[[nodiscard]] offline_decoder make_offline(const std::string &dem, local_rule rule);

} // namespace cudaq::qec::realtime::test
