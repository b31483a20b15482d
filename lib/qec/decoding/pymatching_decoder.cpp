// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/decoding/decoder.h"
#include "lib/qec/decoding/dem.h"

#include "pymatching/sparse_blossom/driver/mwpm_decoding.h"
#include "pymatching/sparse_blossom/driver/user_graph.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <map>
#include <stdexcept>
#include <utility>

namespace cudaq::qec::realtime {
namespace {

constexpr std::uint64_t kMaskObservables = 64; ///< PyMatching's fast path has one 64-bit mask

void store_mask(std::uint64_t mask, std::span<std::uint8_t> observables) noexcept {
  for (std::size_t byte = 0; byte < observables.size(); ++byte)
    observables[byte] = static_cast<std::uint8_t>(mask >> (8 * byte));
}

/// The matching graph of a model. It is PyMatching's own graph, unless errors with the same detectors flip different
/// observables. PyMatching merges such errors under the observables of the first; the least set needs the likeliest,
/// so this function replaces the edge by the likeliest. (Such errors make a code of distance 2 or less; graphs of
/// other codes are not changed.)
pm::UserGraph matching_graph(const detector_error_model &parsed, const stim::DetectorErrorModel &model) {
  using index_list = std::vector<std::size_t>;
  auto graph = pm::detector_error_model_to_user_graph(model, false, pm::NUM_DISTINCT_WEIGHTS);
  std::map<std::pair<std::size_t, std::size_t>, std::map<index_list, double>> variants;
  for (const dem_component &c : parsed.components) {
    if (c.detectors == 0)
      continue;
    const auto detectors = parsed.detectors_of(c);
    const auto observables = parsed.observables_of(c);
    double &p = variants[{detectors.front(), c.detectors == 2 ? detectors.back() : SIZE_MAX}]
                        [index_list(observables.begin(), observables.end())];
    p = p * (1 - c.probability) + c.probability * (1 - p);
  }
  for (auto &edge : graph.edges) {
    const auto &found = variants.at(std::minmax(edge.node1, edge.node2));
    if (found.size() == 1)
      continue;
    const auto likeliest = std::ranges::max_element(found, {}, [](const auto &variant) { return variant.second; });
    edge.observable_indices = likeliest->first;
    edge.error_probability = likeliest->second;
    edge.weight = std::log((1 - likeliest->second) / likeliest->second);
  }
  return graph;
}

class pymatching_decoder final : public decoder {
public:
  pymatching_decoder(const detector_error_model &parsed, const stim::DetectorErrorModel &model)
      : decoder(model.count_detectors(), model.count_observables()), graph_(matching_graph(parsed, model)) {
    if (num_observables() > kMaskObservables)
      bits_.resize(static_cast<std::size_t>(num_observables()));
    build();
    warm();
  }

  const char *name() const noexcept override { return "pymatching"; }

protected:
  decode_status decode_checked(const std::vector<std::uint64_t> &events,
                               std::span<std::uint8_t> observables) noexcept override {
    try {
      if (mwpm_ == nullptr)
        build();
      if (num_observables() > kMaskObservables)
        decode_many(events, observables);
      else
        store_mask(pm::decode_detection_events_for_up_to_64_observables(*mwpm_, events, false).obs_mask, observables);
      return decode_status::ok;
    } catch (const std::invalid_argument &) {
      // The indices were checked, so this syndrome has no perfect matching. PyMatching resets itself in this case; a
      // second reset costs little and does not depend on that.
      mwpm_->reset();
      return decode_status::no_solution;
    } catch (...) {
      // Out of memory in the middle of a decode. The pools may list objects that were never made, so the matcher can
      // neither be used nor destroyed: it is leaked, and the next decode makes a new one.
      static_cast<void>(mwpm_.release());
      return decode_status::internal_error;
    }
  }

private:
  void build() { mwpm_ = std::make_unique<pm::Mwpm>(graph_.to_mwpm(pm::NUM_DISTINCT_WEIGHTS, false)); }

  void decode_many(const std::vector<std::uint64_t> &events, std::span<std::uint8_t> observables) {
    std::fill(bits_.begin(), bits_.end(), std::uint8_t{0}); // PyMatching XORs into it
    pm::total_weight_int weight = 0;
    pm::decode_detection_events(*mwpm_, events, bits_.data(), weight, false);
    for (std::size_t k = 0; k < bits_.size(); ++k)
      observables[k / 8] = static_cast<std::uint8_t>(observables[k / 8] | (bits_[k] << (k % 8)));
  }

  /// Decodes shots with about 1% errors to fill PyMatching's pools. Each shot is solvable because it is a sum of
  /// edges. The pools keep their memory, so later shots find it allocated and in the cache.
  void warm() {
    constexpr int kShots = 32;
    constexpr std::uint32_t kOneIn = 100;
    std::uint32_t random = 2463534242U; // Marsaglia's xorshift32: the same warm-up in every run
    std::vector<std::uint8_t> fired(static_cast<std::size_t>(num_detectors()));
    std::vector<std::uint64_t> events;
    std::vector<std::uint8_t> out(observable_bytes());
    for (int shot = 0; shot < kShots; ++shot) {
      std::fill(fired.begin(), fired.end(), std::uint8_t{0});
      for (const auto &edge : graph_.edges) {
        random ^= random << 13;
        random ^= random >> 17;
        random ^= random << 5;
        if (random % kOneIn != 0)
          continue;
        fired[edge.node1] ^= 1;
        if (edge.node2 != SIZE_MAX)
          fired[edge.node2] ^= 1;
      }
      events.clear();
      for (std::size_t k = 0; k < fired.size(); ++k)
        if (fired[k] != 0)
          events.push_back(k);
      std::fill(out.begin(), out.end(), std::uint8_t{0});
      if (decode_checked(events, out) != decode_status::ok)
        throw std::runtime_error("a warm-up shot failed");
    }
  }

  pm::UserGraph graph_; ///< kept to build the matcher again
  std::unique_ptr<pm::Mwpm> mwpm_;
  std::vector<std::uint8_t> bits_; ///< one byte per observable, only above 64 observables
};

/// Finds errors that PyMatching would ignore silently, or refuse without a line number.
std::string refusal(const detector_error_model &model) {
  for (const dem_component &c : model.components) {
    const std::string line = "line " + std::to_string(c.line) + ": ";
    if (c.detectors > 2)
      return line + "a component has " + std::to_string(c.detectors) +
             " detectors, matching takes one or two: make the model with decompose_errors=True";
    if (c.detectors > 0 && c.probability >= 1)
      return line + "an error of probability 1 has no finite weight";
  }
  return {};
}

} // namespace

decoder_result make_pymatching_decoder(std::string_view dem_text) {
  try {
    // Our parser runs first: it limits the size of the model and names the line of an error.
    const auto parsed = parse_dem(dem_text);
    const std::string error = parsed ? refusal(*parsed) : parsed.error;
    if (!error.empty())
      return {nullptr, "pymatching decoder: " + error};
    const stim::DetectorErrorModel model(dem_text);
    if (model.count_detectors() != parsed->num_detectors || model.count_observables() != parsed->num_observables)
      return {nullptr, "pymatching decoder: Stim and the built-in parser read different models from this text"};
    return {std::make_unique<pymatching_decoder>(*parsed, model), {}};
  } catch (const std::exception &failure) {
    return {nullptr, std::string("pymatching decoder: ") + failure.what()};
  }
}

bool pymatching_available() noexcept { return true; }
const char *pymatching_version() noexcept { return CUDAQ_PYMATCHING_VERSION; }

} // namespace cudaq::qec::realtime
