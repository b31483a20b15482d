// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/qec/server/session/decoder_session.h"

namespace cudaq::qec::realtime {

/// A decoder of shots. A shot ends with the request that fills it: bits after its end are a bad_request. Values and
/// flags of its readout come with its bits or before them: a shot whose bits are complete without them is a
/// bad_request, too.
class shot_session final : public decoder_session {
public:
  shot_session(std::unique_ptr<decoding_unit> unit, bool sequence);
  [[nodiscard]] bool may_exchange() const noexcept override { return !inside_shot(); }

private:
  server_status append(const wire_request &request) noexcept override;
  void restart(bool) noexcept override {
    clear_shot();
    unread_ = false;
  }
  [[nodiscard]] bool inside_shot() const noexcept override {
    return shot_.size() + soft_.size() + leakage_.size() != 0;
  }
  [[nodiscard]] bool has_unread() const noexcept override { return unread_; }
  void corrections_read() noexcept override { unread_ = false; }
  server_answer decode_one(const wire_request &request, std::span<std::uint8_t> result) noexcept override;
  server_status decode_shot() noexcept;
  [[nodiscard]] bool take_readout(const wire_request &request) noexcept;
  void clear_shot() noexcept;
  [[nodiscard]] bool fits(const wire_request &one_shot) const noexcept;
  decode_status decode_payload(std::span<const std::uint8_t> payload, std::span<std::uint8_t> result) noexcept;
  decode_status decode_arrays(const wire_request &one_shot, std::span<std::uint8_t> result) noexcept;

  bit_buffer shot_;                       ///< so far
  bit_buffer soft_, leakage_;             ///< of its readout, so far: as bits, 2 of each flag
  soft_kind kind_ = soft_kind::f32;       ///< of soft_
  std::vector<std::uint8_t> observables_; ///< of the last shot
  bool unread_ = false;                   ///< a shot was decoded since the last read
};

} // namespace cudaq::qec::realtime
