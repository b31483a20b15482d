// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/server/decoding_unit.h"

#include <algorithm>
#include <utility>

namespace cudaq::qec::realtime {

decoding_unit::decoding_unit(std::unique_ptr<decoder> with, sparse_rows from_measurements, std::uint64_t bits_per_shot,
                             std::uint64_t digest)
    : decoder_(std::move(with)), from_measurements_(std::move(from_measurements)), bits_per_shot_(bits_per_shot),
      digest_(digest), events_(from_measurements_.rows() == 0 ? 0 : decoder_->event_bytes()) {}

bool decoding_unit::same_shape(const decoding_unit &other) const noexcept {
  return bits_per_shot_ == other.bits_per_shot_ && num_detectors() == other.num_detectors() &&
         num_observables() == other.num_observables();
}

decode_status decoding_unit::decode_stream(std::span<const std::uint8_t> bits,
                                           std::span<std::uint8_t> observables) noexcept {
  if (from_measurements_.rows() == 0)
    return decoder_->decode_bits(bits, observables);
  std::fill(events_.begin(), events_.end(), std::uint8_t{0});
  for (std::size_t d = 0; d < from_measurements_.rows(); ++d) {
    unsigned parity = 0;
    for (const std::uint64_t m : from_measurements_.row(d))
      parity ^= static_cast<unsigned>(bits[m / 8]) >> (m % 8);
    events_[d / 8] = static_cast<std::uint8_t>(events_[d / 8] | (parity & 1U) << (d % 8));
  }
  return decoder_->decode_bits(events_, observables);
}

} // namespace cudaq::qec::realtime
