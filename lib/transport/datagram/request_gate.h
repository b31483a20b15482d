// SPDX-License-Identifier: Apache-2.0
// Decides about each datagram before it takes a slot: accept, answer without the dispatcher, or drop. It makes no
// system call, so that tests and the fuzzer call it with any bytes.
#pragma once

#include "lib/transport/datagram/datagram_options.h"
#include "lib/transport/datagram/datagram_wire.h"
#include "lib/transport/datagram/peer_windows.h"

#include <optional>

namespace cudaq::realtime::detail {

struct gate_decision {
  enum class action { accept, answer, drop } what = action::drop;
  request_key key{};                ///< of an accepted request
  cudaq_rpc_header_t header{};      ///< unless it is dropped
  std::int32_t status = 0;          ///< of an answer without a kept frame
  std::span<std::uint8_t> replay{}; ///< a kept frame; valid until the next answer is kept
};

/// One thread uses it.
class request_gate {
public:
  request_gate(const datagram_options &options, datagram_counters &counters);

  /// `room`: there is a slot for the request. An accepted request has begun: call answered or unanswered later.
  gate_decision judge(const received_frame &datagram, bool room, peer_windows::time now);

  /// Keeps the answer. BUSY is not kept: its request was not executed, and may be sent again with the same id.
  void answered(const request_key &key, std::span<const std::uint8_t> frame);
  void unanswered(const request_key &key) {
    counters_.unanswered.bump();
    if (windows_)
      windows_->close(key);
  }

private:
  gate_decision answer(gate_decision decision, counter &reason, std::int32_t status);
  gate_decision judge_once(gate_decision decision, const received_frame &datagram, bool room, peer_windows::time now);

  const std::uint32_t slot_size_;
  datagram_counters &counters_;
  std::optional<peer_windows> windows_;
};

} // namespace cudaq::realtime::detail
