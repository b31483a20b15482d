// SPDX-License-Identifier: Apache-2.0
// This file sees PyMatching with wide masks, in the namespace pm_wide, which a macro calls pm.
#include "lib/qec/decoders/matching/wide_matcher.h"

#include "lib/qec/decoders/matching/new_matcher.h"
#include "lib/qec/decoders/matching/wide_mask.h"

#include "pymatching/sparse_blossom/driver/mwpm_decoding.h"
#include "pymatching/sparse_blossom/driver/user_graph.h"

namespace cudaq::qec::realtime {

static_assert(sizeof(pm::obs_int) * 8 == wide_matcher::kMaxObservables);

struct wide_matcher::matcher {
  std::unique_ptr<pm::Mwpm> mwpm;
};

wide_matcher::wide_matcher(std::size_t nodes, std::size_t observables, std::span<const edge> edges,
                           std::span<const std::size_t> always_flipped) {
  pm::UserGraph graph(nodes, observables);
  graph.loaded_from_dem_without_correlations = true;
  for (const edge &e : edges)
    graph.edges.push_back({e.first, e.second, e.observables, e.weight, e.probability, {}});
  matcher_ = std::make_unique<matcher>(new_matcher(graph, false));
  pm::GraphFlooder &flooder = matcher_->mwpm->flooder;
  for (const std::size_t observable : always_flipped)
    flooder.graph.update_negative_weight_observables({observable});
  flooder.sync_negative_weight_observables_and_detection_events();
}

wide_matcher::~wide_matcher() = default;

std::int64_t wide_matcher::decode(const std::vector<std::uint64_t> &events, std::span<std::uint8_t> observables) {
  const pm::MatchingResult found = pm::decode_detection_events_for_up_to_64_observables(*matcher_->mwpm, events, false);
  for (std::size_t byte = 0; byte < observables.size(); ++byte)
    observables[byte] = static_cast<std::uint8_t>(found.obs_mask.words[byte / 8] >> (byte % 8 * 8));
  return found.weight;
}

void wide_matcher::reset() noexcept { matcher_->mwpm->reset(); }
void wide_matcher::abandon() noexcept { static_cast<void>(matcher_.release()); }
double wide_matcher::normalising_constant() const noexcept {
  return matcher_->mwpm->flooder.graph.normalising_constant;
}

} // namespace cudaq::qec::realtime
