// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cudaq/qec/decoding/decoder.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace cudaq::qec::realtime {

/// A matrix of bits by rows: row r has its ones in columns[first[r]] to columns[first[r + 1] - 1].
struct sparse_rows {
  std::vector<std::uint64_t> first{0};
  std::vector<std::uint64_t> columns;

  [[nodiscard]] std::size_t rows() const noexcept { return first.size() - 1; }
  [[nodiscard]] std::span<const std::uint64_t> row(std::size_t r) const noexcept {
    return std::span(columns).subspan(first[r], first[r + 1] - first[r]);
  }
};

/// One decoder of the server, with the converter of the bits of its stream into detection events. Not for two threads
/// at once.
class decoding_unit {
public:
  /// `from_measurements`: row d has the measurements whose XOR is detector d; without rows the bits of a shot are the
  /// detection events themselves. `bits_per_shot`: not below the columns that it names. Throws std::bad_alloc.
  /// `digest`: model_digest of the decoder's model.
  decoding_unit(std::unique_ptr<decoder> with, sparse_rows from_measurements, std::uint64_t bits_per_shot,
                std::uint64_t digest = 0);

  /// Bits of a whole shot in the stream.
  [[nodiscard]] std::uint64_t bits_per_shot() const noexcept { return bits_per_shot_; }
  [[nodiscard]] std::uint64_t num_detectors() const noexcept { return decoder_->num_detectors(); }
  [[nodiscard]] std::uint64_t num_observables() const noexcept { return decoder_->num_observables(); }
  [[nodiscard]] std::uint64_t digest() const noexcept { return digest_; }
  [[nodiscard]] const char *decoder_name() const noexcept { return decoder_->name(); }
  /// Whether the last decode wrote the observables of a solution: with ok, and perhaps with deadline.
  [[nodiscard]] bool has_solution() const noexcept { return decoder_->has_solution(); }
  [[nodiscard]] const deadline_counts &deadlines() const noexcept { return decoder_->deadlines(); }
  /// Whether another unit can take the place of this one: requests and answers have the same lengths.
  [[nodiscard]] bool same_shape(const decoding_unit &other) const noexcept;

  /// Decodes a shot of the stream. `bits`: bits_per_shot() bits, unused bits 0. `observables` as in decoder::decode.
  [[nodiscard]] decode_status decode_stream(std::span<const std::uint8_t> bits,
                                            std::span<std::uint8_t> observables) noexcept;
  /// Decodes detection events, one bit each.
  [[nodiscard]] decode_status decode_events(std::span<const std::uint8_t> events,
                                            std::span<std::uint8_t> observables) noexcept {
    return decoder_->decode_bits(events, observables);
  }

private:
  std::unique_ptr<decoder> decoder_;
  sparse_rows from_measurements_;
  std::uint64_t bits_per_shot_, digest_;
  std::vector<std::uint8_t> events_; ///< of one shot, if there are rows
};

} // namespace cudaq::qec::realtime
