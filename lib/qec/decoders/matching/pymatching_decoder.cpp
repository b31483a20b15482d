// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/decoders/confidence/confident_decoder.h"
#include "lib/qec/decoders/decoder_factories.h"
#include "lib/qec/decoders/matching/matching_graph.h"
#include "lib/qec/decoders/matching/shot_weights.h"
#include "lib/qec/decoders/matching/wide_matcher.h"
#include "lib/qec/decoding/event_bits.h"
#include "lib/qec/decoding/split_errors/component_errors.h"
#include "lib/qec/decoding/split_errors/decompose_errors.h"
#include "lib/qec/decoding/split_errors/needed_events.h"

#include "pymatching/sparse_blossom/driver/mwpm_decoding.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <exception>
#include <optional>
#include <stdexcept>

namespace cudaq::qec::realtime {
namespace {

/// PyMatching keeps at most this number of observables in a mask. For more it searches the paths after the matching.
constexpr std::uint64_t kMaskObservables = 64;

void store_mask(std::uint64_t mask, std::span<std::uint8_t> observables) noexcept {
  for (std::size_t byte = 0; byte < observables.size(); ++byte)
    observables[byte] = static_cast<std::uint8_t>(mask >> (8 * byte));
}

/// What a pymatching_decoder does besides matching.
struct matching_options {
  bool correlated = false; ///< two passes: the first finds edges, the second has their consequences as weights
  bool edges = false;      ///< gives the edges of the correction
  double smallest = 0;     ///< probability; 0: the default, and nothing is prepared for shots that replace some
  bool confidence = false; ///< gives gaps; not correlated
};

/// A graph and its matcher.
struct engine {
  matching_graph *graph = nullptr;    ///< kept to build the matcher again
  std::unique_ptr<pm::Mwpm> mwpm;     ///< null if `wide` does everything
  std::unique_ptr<wide_matcher> wide; ///< with has_wide_mask(): all that needs no edges
};

class pymatching_decoder final : public decoder {
public:
  pymatching_decoder(detector_error_model model, matching_options options)
      : decoder(model.num_detectors, model.num_observables),
        graph_(options.correlated ? make_correlated_graph(model) : make_matching_graph(model)), options_(options),
        model_(std::move(model)), now_(&of_model_) {
    of_model_.graph = &graph_;
    if (num_observables() > kMaskObservables)
      bits_.resize(static_cast<std::size_t>(num_observables()));
    if (!options_.correlated)
      needed_.emplace(model_);
    if (needed_ && !needed_->drops_some())
      needed_.reset();
    build();
    warm();
    if (options_.smallest == 0)
      return;
    prepare_replacing();
    now_ = &of_shots_;
    warm();
    now_ = &of_model_;
  }

  const char *name() const noexcept override { return options_.correlated ? "pymatching-correlated" : "pymatching"; }
  bool gives_edges() const noexcept override { return options_.edges; }
  const char *refuses_probabilities() const noexcept override { return nullptr; }
  double smallest_probability() const noexcept override {
    return options_.smallest != 0 ? options_.smallest : kSmallestProbability;
  }
  const char *fault() const noexcept override { return fault_; }

protected:
  decode_status replace_probabilities(shot_probabilities probabilities) noexcept override {
    fault_ = "";
    try {
      prepare_replacing();
      if (!shot_weights_->replace(probabilities)) {
        fault_ = shot_weights_->fault();
        return decode_status::bad_probability;
      }
      now_ = &of_shots_;
      return decode_status::ok;
    } catch (const std::exception &failure) {
      // Out of memory: the matcher has weights of this shot, so the next one gets another.
      of_shots_ = {};
      shot_weights_.reset();
      std::snprintf(fault_text_.data(), fault_text_.size(), "the weights of the shot: %s", failure.what());
      fault_ = fault_text_.data();
      return decode_status::internal_error;
    }
  }

  void restore_probabilities() noexcept override {
    now_ = &of_model_;
    try {
      shot_weights_->restore();
    } catch (const std::exception &) {
      of_shots_ = {};
      shot_weights_.reset();
    }
  }

  decode_status decode_checked(const std::vector<std::uint64_t> &events, std::span<std::uint8_t> observables,
                               decode_details *details) noexcept override {
    fault_ = "";
    try {
      if (now_->mwpm == nullptr && now_->wide == nullptr)
        build();
      if (details != nullptr && now_ == &of_shots_)
        shot_weights_->replace_idle();
      if (options_.correlated)
        reweight(events, details != nullptr || num_observables() > kMaskObservables);
      decode_status status = decode_status::ok;
      // The weight of the second pass is not that of the model, which the edges have.
      if (details != nullptr && (options_.correlated || !details->edges.empty()))
        status = decode_to_edges(events, observables, *details);
      else
        decode_to_observables(needed_ && details == nullptr ? needed(events) : events, observables, details);
      undo_reweight();
      return status;
    } catch (const std::invalid_argument &) {
      // The indices were checked, so this syndrome has no perfect matching. PyMatching resets itself in this case; a
      // second reset costs little and does not depend on that.
      if (now_->wide != nullptr)
        now_->wide->reset();
      if (now_->mwpm != nullptr)
        now_->mwpm->reset();
      undo_reweight();
      return decode_status::no_solution;
    } catch (const std::exception &failure) {
      return abandon(failure.what());
    } catch (...) {
      return abandon("an unknown exception");
    }
  }

private:
  /// After an exception in the middle of a decode, such as of too little memory. The pools may list objects that were
  /// never made, so the matcher can neither be used nor destroyed: it is leaked, and the next decode makes a new one.
  decode_status abandon(const char *why) noexcept {
    static_cast<void>(now_->mwpm.release());
    if (now_->wide != nullptr)
      now_->wide->abandon();
    now_->wide.reset();
    std::snprintf(fault_text_.data(), fault_text_.size(), "the matching: %s", why);
    fault_ = fault_text_.data();
    return decode_status::internal_error;
  }

  /// The events of parts that flip observables. If the others have no solution, this throws what PyMatching does.
  const std::vector<std::uint64_t> &needed(const std::vector<std::uint64_t> &events) {
    if (const auto *const some = needed_->of(events))
      return *some;
    throw std::invalid_argument("a part without a boundary has an odd number of events");
  }

  /// Correlated matching has no wide form: its first pass finds edges, and needs their correlations.
  [[nodiscard]] bool has_wide_mask() const noexcept {
    return num_observables() > kMaskObservables && num_observables() <= wide_matcher::kMaxObservables &&
           !options_.correlated;
  }

  /// The matcher of the model.
  void build() {
    if (!has_wide_mask() || options_.edges)
      now_->mwpm = make_matcher(graph_, options_.correlated || options_.edges);
    if (!has_wide_mask())
      return;
    std::vector<wide_matcher::edge> edges;
    for (const pm::UserEdge &e : graph_.graph.edges)
      edges.push_back({e.node1, e.node2, e.observable_indices, e.weight, e.error_probability});
    const std::vector<std::size_t> always(graph_.always_flipped.begin(), graph_.always_flipped.end());
    now_->wide = std::make_unique<wide_matcher>(num_detectors(), num_observables(), edges, always);
  }

  /// The matcher of shots that replace probabilities. It is another one, because all of its weights have another scale.
  void prepare_replacing() {
    if (shot_weights_ == nullptr) {
      shot_weights_ = std::make_unique<shot_weights>(model_, options_.correlated, smallest_probability(),
                                                     needed_ ? needed_->dropped() : std::vector<bool>());
    }
    if (of_shots_.mwpm != nullptr)
      return;
    of_shots_.graph = &shot_weights_->graph();
    of_shots_.mwpm = make_matcher(shot_weights_->graph(), options_.correlated || options_.edges);
    shot_weights_->attach(*of_shots_.mwpm);
  }

  /// The first pass of correlated matching. The second reads the search graph only if it decodes to edges, or has more
  /// observables than a mask.
  void reweight(const std::vector<std::uint64_t> &events, bool reads_search_graph) {
    edges_.clear();
    pm::decode_detection_events_to_edges(*now_->mwpm, events, edges_);
    if (now_ == &of_shots_)
      shot_weights_->set_implied_weights(edges_);
    now_->mwpm->flooder.graph.reweight_for_edges(edges_);
    if (reads_search_graph)
      now_->mwpm->search_flooder.graph.reweight_for_edges(edges_);
  }
  void undo_reweight() {
    if (!options_.correlated)
      return;
    now_->mwpm->flooder.graph.undo_reweights();
    now_->mwpm->search_flooder.graph.undo_reweights();
  }

  double real_weight(pm::total_weight_int weight) const {
    const double unit =
        now_->wide != nullptr ? now_->wide->normalising_constant() : now_->mwpm->flooder.graph.normalising_constant;
    return now_->graph->constant_weight + static_cast<double>(weight) / unit;
  }

  void decode_to_observables(const std::vector<std::uint64_t> &events, std::span<std::uint8_t> observables,
                             decode_details *details) {
    pm::total_weight_int weight = 0;
    if (now_->wide != nullptr) {
      weight = now_->wide->decode(events, observables);
    } else if (num_observables() > kMaskObservables) {
      std::fill(bits_.begin(), bits_.end(), std::uint8_t{0}); // PyMatching XORs into it
      pm::decode_detection_events(*now_->mwpm, events, bits_.data(), weight, false);
      for (std::size_t k = 0; k < bits_.size(); ++k)
        observables[k / 8] = static_cast<std::uint8_t>(observables[k / 8] | (bits_[k] << (k % 8)));
    } else {
      const pm::MatchingResult found = pm::decode_detection_events_for_up_to_64_observables(*now_->mwpm, events, false);
      store_mask(found.obs_mask, observables);
      weight = found.weight;
    }
    if (details != nullptr)
      details->weight = real_weight(weight);
  }

  /// Weight, and edges if there is room for some. The observables are those of the edges: of several corrections of
  /// least weight, decode_to_observables may take another one.
  decode_status decode_to_edges(const std::vector<std::uint64_t> &events, std::span<std::uint8_t> observables,
                                decode_details &details) {
    edges_.clear();
    pm::decode_detection_events_to_edges(*now_->mwpm, events, edges_);
    undo_reweight(); // the weight of the answer is that in the model
    const std::size_t count = edges_.size() / 2;
    const bool listed = !details.edges.empty();
    if (listed && count > details.edges.size())
      return decode_status::buffer_too_small;
    flip_bits(now_->graph->always_flipped, observables);
    auto &nodes = now_->mwpm->search_flooder.graph.nodes;
    pm::total_weight_int weight = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const std::int64_t second = edges_[2 * i + 1]; // -1: the boundary
      auto &from = nodes[static_cast<std::size_t>(edges_[2 * i])];
      const std::size_t at = from.index_of_neighbor(second < 0 ? nullptr : &nodes[static_cast<std::size_t>(second)]);
      flip_bits(from.neighbor_observable_indices[at], observables);
      const auto size = static_cast<pm::total_weight_int>(from.neighbor_weights[at]);
      weight += (from.neighbor_markers[at] & pm::WEIGHT_SIGN) != 0 ? -size : size;
      if (listed)
        details.edges[i] = {static_cast<std::uint64_t>(edges_[2 * i]),
                            second < 0 ? kBoundary : static_cast<std::uint64_t>(second)};
    }
    details.num_edges = listed ? count : 0;
    details.weight = real_weight(weight);
    return decode_status::ok;
  }

  /// Decodes shots with about 1% errors to fill PyMatching's pools. Each shot is solvable because it is a sum of
  /// edges. The pools keep their memory, so later shots find it allocated and in the cache. The shots of a large model
  /// hardly differ in size, so a few are enough. With thousands of edges at one detector a shot may take minutes: such
  /// a model is not warmed up.
  void warm() {
    constexpr int kShots = 32;
    constexpr std::size_t kErrors = 1500; ///< of all shots together
    std::size_t errors = 0;
    constexpr std::uint32_t kMaxEdgesToWarm = 5000;
    constexpr auto kLongest = std::chrono::milliseconds(500);
    const auto begin = std::chrono::steady_clock::now();
    constexpr std::size_t kOneIn = 100;
    std::uint32_t random = 2463534242U; // Marsaglia's xorshift32: the same warm-up in every run
    std::vector<std::uint8_t> fired(static_cast<std::size_t>(num_detectors()));
    std::vector<std::uint64_t> events;
    std::vector<std::uint8_t> out(observable_bytes());
    std::vector<correction_edge> edges(options_.edges ? graph_.graph.edges.size() : 0);
    decode_details details{.edges = edges};
    struct ends {
      std::size_t first, second;
    };
    std::vector<ends> edges_of_model; // the graph has a list, and reading it for each shot takes long
    edges_of_model.reserve(graph_.graph.edges.size());
    std::vector<std::uint32_t> degree(fired.size());
    for (const auto &edge : graph_.graph.edges) {
      edges_of_model.push_back({edge.node1, edge.node2});
      for (const std::size_t end : {edge.node1, edge.node2})
        if (end != SIZE_MAX && ++degree[end] > kMaxEdgesToWarm)
          return;
    }
    if (edges_of_model.empty())
      return;
    const auto below = [&random](std::size_t limit) {
      random ^= random << 13;
      random ^= random >> 17;
      random ^= random << 5;
      return random % limit;
    };
    for (int shot = 0; shot < kShots && errors < kErrors && std::chrono::steady_clock::now() - begin < kLongest;
         ++shot) {
      std::fill(fired.begin(), fired.end(), std::uint8_t{0});
      const std::size_t in_shot = 1 + below(1 + 2 * edges_of_model.size() / kOneIn);
      errors += in_shot;
      for (std::size_t k = 0; k < in_shot; ++k) {
        const ends &edge = edges_of_model[below(edges_of_model.size())];
        fired[edge.first] ^= 1;
        if (edge.second != SIZE_MAX)
          fired[edge.second] ^= 1;
      }
      events.clear();
      for (std::size_t k = 0; k < fired.size(); ++k)
        if (fired[k] != 0)
          events.push_back(k);
      std::fill(out.begin(), out.end(), std::uint8_t{0});
      decode_status status = decode_checked(events, out, nullptr);
      if (status == decode_status::ok && options_.edges)
        status = decode_checked(events, out, &details);
      if (status == decode_status::internal_error && std::string_view(fault_).ends_with(std::bad_alloc().what()))
        throw std::bad_alloc();
      if (status != decode_status::ok)
        throw std::runtime_error("a warm-up shot failed: " + decode_status_text(status, fault_));
    }
  }

  std::optional<needed_events> needed_; ///< if it drops some
  matching_graph graph_;
  matching_options options_;
  const detector_error_model model_; ///< for shot_weights_
  engine of_model_;
  std::unique_ptr<shot_weights> shot_weights_; ///< null before the first shot that replaces probabilities
  engine of_shots_;                            ///< of shots that do
  engine *now_;                                ///< one of the two, of the decode that runs
  const char *fault_ = "";
  std::array<char, 160> fault_text_{};
  std::vector<std::uint8_t> bits_;  ///< one byte per observable, if they fit into no mask
  std::vector<std::int64_t> edges_; ///< pairs of detectors, as PyMatching gives them
};

matching_options options_of(decoder_settings &settings, bool correlated) {
  return {.correlated = correlated,
          .edges = settings.flag("edges"),
          .smallest = smallest_of(settings, 0),
          .confidence = !correlated && settings.flag("confidence")};
}

decoder_result make_with(const decoder_model &model, const char *name, matching_options options,
                         const decoder_settings &settings) {
  const auto failed = [&](const std::string &why) { return decoder_result{nullptr, name + (" decoder: " + why)}; };
  try {
    if (const expected<> result = settings.check(); result.failed())
      return failed(result.text());
    const auto given = model.errors();
    if (given.failed())
      return failed(given.text());
    auto parsed = component_errors(**given);
    if (parsed.failed())
      return failed(parsed.text());
    parsed = decompose_errors(std::move(*parsed));
    if (expected<> result = options.correlated ? check_correlated_graph(*parsed) : check_matching_graph(*parsed);
        result.failed())
      return failed(result.text());
    auto made = std::make_unique<pymatching_decoder>(*parsed, options);
    if (!options.confidence)
      return {std::move(made), {}};
    const auto make_forced = [&](const decoder_model &forced) -> decoder_result {
      const detector_error_model &errors = **forced.errors();
      if (const expected<> result = check_matching_graph(errors); result.failed())
        return {nullptr, result.text()};
      return {std::make_unique<pymatching_decoder>(errors, matching_options{.smallest = options.smallest}), {}};
    };
    const auto edges_of = [](const detector_error_model &errors) {
      std::vector<weighted_edge> edges;
      for (const pm::UserEdge &e : make_matching_graph(errors).graph.edges)
        edges.push_back({e.node1, e.node2, e.weight});
      return edges;
    };
    decoder_result confident = make_confident_decoder(std::move(made), *parsed, make_forced, edges_of);
    return confident ? std::move(confident) : failed(confident.error);
  } catch (const std::invalid_argument &failure) {
    // PyMatching's rule for correlated weights has no result for some probabilities near to 0 and to 1/2.
    return failed(options.correlated ? "the model has no correlated weights; the decoder pymatching takes it "
                                       "(PyMatching: " +
                                           std::string(failure.what()) + ")"
                                     : failure.what());
  } catch (const std::exception &failure) {
    return failed(failure.what());
  }
}

} // namespace

decoder_result make_pymatching_decoder(const decoder_model &model, decoder_settings &settings) {
  return make_with(model, "pymatching", options_of(settings, false), settings);
}

decoder_result make_correlated_decoder(const decoder_model &model, decoder_settings &settings) {
  return make_with(model, "pymatching-correlated", options_of(settings, true), settings);
}

bool pymatching_available() noexcept { return true; }
const char *pymatching_version() noexcept { return CUDAQ_PYMATCHING_VERSION; }

} // namespace cudaq::qec::realtime
