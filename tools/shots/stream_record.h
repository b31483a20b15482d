// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/qec/stream/repeating_model.h"
#include "lib/qec/stream/stream_readout.h"
#include "tools/common/report.h"
#include "tools/shots/experiment_rounds.h"
#include "tools/shots/own_data.h"
#include "tools/shots/recorded_readout.h"

#include <cstdint>
#include <span>
#include <vector>

namespace cudaq::realtime::tools {

/// The files are at fault, not the decoder.
class record_error : public usage_error {
public:
  using usage_error::usage_error;
};

/// One experiment from files, as `decode --stream` reads them: events, soft values, flags and the observables at its
/// end. It is kept in memory, so that it can be played again and be compared; each experiment is this one.
class stream_record final : public experiment_rounds {
public:
  /// Keeps a reference to the model. `readout`: of its table; empty without one. Throws record_error: a file is
  /// missing, cannot be read, is not that of one experiment, or is too long to be kept.
  stream_record(const own_data &files, const readout_files &values, const qec::repeating_model &model,
                const qec::stream_readout &readout);

  void begin(std::uint64_t seed, std::uint64_t k) override;
  [[nodiscard]] std::span<const std::uint8_t> next_round() override;
  [[nodiscard]] std::span<const std::uint8_t> observables() const noexcept override { return observables_; }
  [[nodiscard]] std::uint64_t rounds() const noexcept override { return before_tail_ + model_.tail().size(); }
  [[nodiscard]] std::uint64_t rounds_before_tail() const noexcept override { return before_tail_; }
  void append_soft(std::uint64_t from, std::uint64_t to, std::vector<std::uint8_t> &bytes) const override;
  void append_flags(std::uint64_t from, std::uint64_t to, std::vector<std::uint8_t> &bytes) const override;

private:
  void read_rounds(const shot_source &in);
  void read_values(const readout_files &files, const qec::stream_readout &readout);
  void read_observables(const shot_source &in);

  const qec::repeating_model &model_;
  const unsigned soft_bits_;                ///< of a value
  std::vector<std::uint8_t> events_, tail_; ///< rows of whole bytes, for each round before the tail, and for the tail
  std::vector<std::uint8_t> soft_, flags_, observables_;
  std::uint64_t before_tail_ = 0;
  std::uint64_t next_round_ = 0;
  std::size_t next_row_ = 0;    ///< byte of events_
  std::uint64_t next_tail_ = 0; ///< bit of tail_
  std::vector<std::uint8_t> round_;
};

} // namespace cudaq::realtime::tools
