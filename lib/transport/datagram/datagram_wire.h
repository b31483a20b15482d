// SPDX-License-Identifier: Apache-2.0
// How frames (docs/message_protocol.md) travel in UDP datagrams. Each provider over datagrams has a wire of its own;
// the rest is the same for all of them: slots, replay window, threads, batches of system calls.
#pragma once

#include "lib/base/error_text.h"
#include "lib/transport/datagram/udp_address.h"

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <sys/uio.h>

namespace cudaq::realtime::detail {

class udp_socket;

inline constexpr std::uint32_t kUdpBatch = 32; ///< most datagrams, or frames, of one batch

/// A frame as it was received.
struct received_frame {
  const udp_address *from = nullptr;   ///< NULL: there is no frame
  std::span<const std::uint8_t> bytes; ///< at most slot_size
  bool cut = false;                    ///< it was longer than that
};

/// One thread uses it.
class frame_receiver {
public:
  virtual ~frame_receiver() = default;
  /// Where frame i may be received to, so that it need not be copied. It stays set.
  void set_target(std::uint32_t i, std::uint8_t *target, std::size_t size) { targets_[i] = {target, size}; }
  /// Receives the datagrams that have arrived, at most `max_count`. -1: the system reported an error.
  virtual int receive(const udp_socket &socket, std::uint32_t max_count) = 0;
  /// The frame that ends with datagram i. Call it once for each datagram, in their order. The frame is valid until the
  /// next call.
  virtual received_frame frame(std::uint32_t i) = 0;
  /// Datagrams that the system has dropped since the last call, because the socket's buffer was full.
  virtual std::uint32_t dropped_by_system() = 0;

protected:
  std::array<iovec, kUdpBatch> targets_{}; ///< not virtual calls: a poll sets all of them
};

/// One thread uses it.
class frame_sender {
public:
  virtual ~frame_sender() = default;
  virtual std::uint32_t count() const = 0;
  /// The frame must stay as it is until flush. At most slot_size bytes, and at most kUdpBatch frames.
  virtual void add(const udp_address &to, std::span<std::uint8_t> frame) = 0;
  struct result {
    std::uint32_t done = 0;   ///< the first `done` frames were sent or refused; for the others the system has no room
    std::uint32_t failed = 0; ///< of these `done` frames, those that were refused
    bool port_unreachable =
        false; ///< of a connected socket: the system has reported that no program has the peer's port
  };
  /// Sends, and empties the batch.
  virtual result flush(const udp_socket &socket) = 0;
};

/// Its receiver and its senders share state: one thread uses all of them at a time. The wire outlives them.
class datagram_wire {
public:
  virtual ~datagram_wire() = default;
  /// Prepares a socket that is bound to its address. Call it once, before the receiver and the senders are used.
  virtual expected<> prepare(udp_socket &socket) = 0;
  virtual std::unique_ptr<frame_receiver> make_receiver() = 0;
  virtual std::unique_ptr<frame_sender> make_sender() = 0;
};

} // namespace cudaq::realtime::detail
