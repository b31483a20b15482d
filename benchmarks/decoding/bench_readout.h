// SPDX-License-Identifier: Apache-2.0
// What shots of `decoding` know beside their events: soft values and flags that are drawn from a table, or heralds.
#pragma once

#include "lib/qec/decoders/readout/readout_sampler.h"
#include "lib/qec/decoding/dem.h"
#include "tools/shots/recorded_readout.h"

#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace cudaq::realtime::tools {

/// The options. Heralds are flags here: each is 2 if its herald has fired.
struct bench_readout_options : readout_files {
  std::string heralds;  ///< a file of heralds, instead of a table; "": none
  double erased = 0.05; ///< the share of the heralds that fire

  [[nodiscard]] bool any() const noexcept { return !readout.empty() || !heralds.empty(); }
};

/// The table, and shots that fit it. It does not change: any thread may use it.
class bench_readout {
public:
  /// Throws usage_error.
  bench_readout(const bench_readout_options &options, const std::string &dem_text,
                const qec::detector_error_model &model);

  /// The text of the model of a decoder that knows nothing of a shot: errors of flags have their average probability.
  [[nodiscard]] const std::string &average_dem() const noexcept { return average_dem_; }
  [[nodiscard]] const qec::readout_table &table() const noexcept { return *table_; }
  [[nodiscard]] std::size_t soft_bytes() const noexcept { return table_->soft_bytes(kind_); }
  /// "9 soft values and 8 flags, drawn"
  [[nodiscard]] std::string text() const;
  [[nodiscard]] qec::readout_sampler sampler() const;
  /// Draws a shot with its row of flags. All bytes but those are 0 on entry.
  void sample(qec::readout_sampler &from, std::mt19937_64 &random, const qec::readout_sampler::shot_room &shot,
              std::span<std::uint8_t> flags) const;
  /// The probabilities of a shot, until the next call with this list.
  void list_of(std::span<const std::uint8_t> soft, std::span<const std::uint8_t> flags,
               std::vector<qec::error_probability> &list) const;

private:
  [[nodiscard]] double probability_of(unsigned value) const noexcept;
  void find_averages(const std::string &dem_text);

  const bool is_of_heralds_;
  const qec::soft_kind kind_;
  const double leaked_;
  const qec::detector_error_model &model_;
  std::unique_ptr<qec::readout_table> table_;
  std::string average_dem_;
};

} // namespace cudaq::realtime::tools
