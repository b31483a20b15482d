// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cudaq/qec/decoding/decoder_plugin.h"

#include "stim/dem/detector_error_model.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

namespace cudaq::qec::plugins {

/// An error of the model: what it flips (ascending, each once), and 0 < p <= 1/2.
struct error_column {
  std::vector<std::uint32_t> detectors;
  std::vector<std::uint32_t> observables;
  double p = 0;
};

/// The model as a matrix. A column is a whole error instruction: its components (joined by ^) are XORed. Equal columns
/// are one. If p > 1/2, the error counts as certain, and its column, of probability 1 - p, takes it back.
struct error_columns {
  std::size_t num_detectors = 0;
  std::vector<error_column> columns;             ///< each flips a detector: others are never in a likeliest correction
  std::vector<std::uint8_t> certain_detectors;   ///< one byte per detector
  std::vector<std::uint8_t> certain_observables; ///< as a decoder's answer: one bit per observable
};

/// The indices that stand in the list an odd number of times, ascending.
inline std::vector<std::uint32_t> odd_ones(std::vector<std::uint32_t> indices) {
  std::map<std::uint32_t, bool> odd;
  for (const std::uint32_t index : indices)
    odd[index] = !odd[index];
  indices.clear();
  for (const auto &[index, is_odd] : odd)
    if (is_odd)
      indices.push_back(index);
  return indices;
}

inline void flip_observables(const std::vector<std::uint32_t> &observables, std::uint8_t *bytes) {
  for (const std::uint32_t k : observables)
    bytes[k / 8] = static_cast<std::uint8_t>(bytes[k / 8] ^ 1U << k % 8);
}

/// Throws std::invalid_argument.
inline error_columns read_columns(const cudaq_qec_decoder_model_t &model) {
  // The decoders' indices are int, and some arrays have a byte per detector.
  constexpr std::uint64_t max_count = 1U << 24;
  if (model.num_detectors > max_count || model.num_observables > max_count)
    throw std::invalid_argument("at most 16777216 detectors and observables");
  error_columns out;
  out.num_detectors = static_cast<std::size_t>(model.num_detectors);
  out.certain_detectors.resize(out.num_detectors);
  out.certain_observables.resize(static_cast<std::size_t>((model.num_observables + 7) / 8));

  using flips = std::pair<std::vector<std::uint32_t>, std::vector<std::uint32_t>>;
  std::map<flips, double> merged;
  const stim::DetectorErrorModel parsed(std::string_view(model.dem_text, model.dem_size));
  parsed.iter_flatten_error_instructions([&merged](const stim::DemInstruction &error) {
    flips of;
    for (const stim::DemTarget &target : error.target_data)
      if (target.is_relative_detector_id())
        of.first.push_back(static_cast<std::uint32_t>(target.val()));
      else if (target.is_observable_id())
        of.second.push_back(static_cast<std::uint32_t>(target.val()));
    const double p = error.arg_data[0];
    double &sum = merged[{odd_ones(std::move(of.first)), odd_ones(std::move(of.second))}];
    sum = sum * (1 - p) + p * (1 - sum);
  });
  for (auto &[of, p] : merged) {
    if (p > 0.5) {
      for (const std::uint32_t d : of.first)
        out.certain_detectors[d] ^= 1;
      flip_observables(of.second, out.certain_observables.data());
    }
    const double rare = p > 0.5 ? 1 - p : p;
    if (rare > 0 && !of.first.empty())
      out.columns.push_back({of.first, of.second, rare});
  }
  if (out.columns.size() > max_count)
    throw std::invalid_argument("at most 16777216 different errors");
  return out;
}

} // namespace cudaq::qec::plugins
