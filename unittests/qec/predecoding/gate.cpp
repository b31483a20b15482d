// SPDX-License-Identifier: Apache-2.0
#include "unittests/qec/predecoding/gate.h"

#include "unittests/qec/predecoding/surface_code_graph.h"
#include "unittests/qec/qec_test_support.h"
#include "unittests/support/program_paths.h"

#include <algorithm>
#include <sstream>

namespace cudaq::qec::realtime::test {
gate_model::gate_model(int distance, const std::string &weights, std::uint32_t unlikely) : distance_(distance) {
  const bool equal = weights == "uniform_weights";
  const surface_code_graph graph =
      make_surface_code_graph(static_cast<std::uint32_t>(distance), equal ? "uniform" : weights);
  num_detectors_ = graph.num_detectors;
  edges_of_.resize(std::size_t{num_detectors_} + 1);
  std::ostringstream text;
  text.precision(12);
  for (const auto &[place, probability] : graph.probabilities) {
    const auto &[detectors, flips] = place;
    const edge e{detectors.front(), detectors.size() == 2 ? detectors.back() : num_detectors_, flips};
    edges_of_[e.a].push_back(edges_.size());
    edges_of_[e.b].push_back(edges_.size());
    edges_.push_back(e);
    text << "error(" << (equal ? 0.003 : probability) << ") D" << e.a;
    if (e.b != num_detectors_)
      text << " D" << e.b;
    text << (e.flips ? " L0\n" : "\n");
  }
  std::mt19937_64 random(20261122);
  for (std::uint32_t i = 0; i < unlikely; ++i) {
    const std::uint64_t a = random() % num_detectors_, b = random() % num_detectors_;
    if (a != b)
      text << "error(1e-9) D" << std::min(a, b) << " D" << std::max(a, b) << (random() % 2 == 0 ? "\n" : " L0\n");
    else
      text << "error(1e-9) D" << a << "\n";
  }
  dem_ = text.str();
}

int gate_model::layer_of(std::uint32_t detector) const {
  const int each = distance_ * distance_ - 1; // the first and the last layer have half of them
  return (static_cast<int>(detector) + each / 2) / each;
}

std::set<std::size_t> gate_model::cluster(std::uint32_t edges, std::mt19937_64 &random) const {
  std::set<std::size_t> chosen{static_cast<std::size_t>(random() % edges_.size())};
  for (std::uint32_t i = 1; i < edges; ++i) {
    std::set<std::uint32_t> reached, near;
    for (const std::size_t e : chosen)
      for (const std::uint32_t v : {edges_[e].a, edges_[e].b})
        if (v != num_detectors_)
          reached.insert(v);
    near = reached;
    for (const std::uint32_t v : reached)
      for (const std::size_t e : edges_of_[v])
        near.insert(edges_[e].a == v ? edges_[e].b : edges_[e].a);
    near.erase(num_detectors_); // the boundary is no way from one place to another
    std::vector<std::size_t> candidates;
    for (const std::uint32_t v : near)
      candidates.insert(candidates.end(), edges_of_[v].begin(), edges_of_[v].end());
    chosen.insert(candidates[random() % candidates.size()]);
  }
  return chosen;
}

void gate_model::draw_operator(std::mt19937_64 &random) {
  // Breadth first from the boundary, on two copies of the graph: the copy says whether the observable is flipped.
  std::vector<std::size_t> came_by(2 * std::size_t{num_detectors_} + 2, SIZE_MAX);
  std::vector<std::uint32_t> open{2 * num_detectors_};
  for (std::size_t i = 0; i < open.size() && came_by[2 * std::size_t{num_detectors_} + 1] == SIZE_MAX; ++i) {
    const std::uint32_t at = open[i];
    std::vector<std::size_t> ways = edges_of_[at / 2];
    for (std::size_t k = ways.size(); k > 1; --k)
      std::swap(ways[k - 1], ways[random() % k]);
    for (const std::size_t e : ways) {
      const std::uint32_t to = 2 * (edges_[e].a == at / 2 ? edges_[e].b : edges_[e].a) + ((at & 1) ^ edges_[e].flips);
      if (to == open.front() || came_by[to] != SIZE_MAX)
        continue;
      came_by[to] = e;
      open.push_back(to);
    }
  }
  operator_.clear();
  for (std::uint32_t at = 2 * num_detectors_ + 1; at != 2 * num_detectors_;) {
    const edge &e = edges_[came_by[at]];
    operator_.push_back(came_by[at]);
    at = 2 * (e.a == at / 2 ? e.b : e.a) + ((at & 1) ^ e.flips);
  }
}

std::set<std::size_t> gate_model::part_of_operator(std::uint32_t edges, std::mt19937_64 &random) const {
  std::set<std::size_t> chosen;
  while (chosen.size() < edges)
    chosen.insert(operator_[random() % operator_.size()]);
  return chosen;
}

void gate_model::judge(const std::set<std::size_t> &errors, offline_decoder &alone, offline_decoder &with,
                       gate_verdict &verdict) const {
  std::vector<std::uint8_t> shot((num_detectors_ + 7) / 8);
  std::uint8_t truth = 0;
  bool reaching = false;
  for (const std::size_t at : errors) {
    const edge &e = edges_[at];
    for (const std::uint32_t v : {e.a, e.b})
      if (v != num_detectors_)
        shot[v / 8] ^= static_cast<std::uint8_t>(1U << v % 8);
    truth ^= static_cast<std::uint8_t>(e.flips);
    reaching = reaching || e.b == num_detectors_ || layer_of(e.a) != layer_of(e.b);
  }
  const auto right = [&](offline_decoder &d) {
    return d.decode(shot) == decode_status::ok && d.observables()[0] == truth;
  };
  ++verdict.sets;
  verdict.reaching += reaching;
  if (!right(alone))
    return;
  ++verdict.corrected;
  if (right(with))
    return;
  if (verdict.broken++ == 0)
    for (const std::size_t e : errors)
      verdict.first_broken += "D" + std::to_string(edges_[e].a) +
                              (edges_[e].b == num_detectors_ ? " " : "-D" + std::to_string(edges_[e].b) + " ");
}

offline_decoder make_offline(const std::string &dem) { return {nullptr, make_or_throw("pymatching", dem)}; }

offline_decoder make_offline(const std::string &dem, local_rule rule) {
  return {std::move(*make_predecoder("local", dem, rule)), make_or_throw("pymatching", dem)};
}

} // namespace cudaq::qec::realtime::test
