// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/qec/server/session/decoder_session.h"

namespace cudaq::qec::realtime {

/// A decoder of shots. A shot ends with the request that fills it: bits after its end are a bad_request.
class shot_session final : public decoder_session {
public:
  shot_session(std::unique_ptr<decoding_unit> unit, bool sequence);
  [[nodiscard]] bool may_exchange() const noexcept override { return shot_.size() == 0; }

private:
  server_status append(const wire_request &request) noexcept override;
  void restart(bool) noexcept override {
    shot_.clear();
    unread_ = false;
  }
  [[nodiscard]] bool inside_shot() const noexcept override { return shot_.size() != 0; }
  [[nodiscard]] bool has_unread() const noexcept override { return unread_; }
  void corrections_read() noexcept override { unread_ = false; }
  server_answer decode_one(const wire_request &request, std::span<std::uint8_t> result) noexcept override;
  server_status decode_shot() noexcept;

  bit_buffer shot_;                       ///< so far
  std::vector<std::uint8_t> observables_; ///< of the last shot
  bool unread_ = false;                   ///< a shot was decoded since the last read
};

} // namespace cudaq::qec::realtime
