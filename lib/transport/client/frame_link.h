// SPDX-License-Identifier: Apache-2.0
// The way of frames to one server and of its answers back. One thread uses it.
#pragma once

#include "lib/base/error_text.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace cudaq::realtime::detail {

/// What has come back.
struct arrival {
  std::span<const std::uint8_t> frame; ///< an answer; valid until the next call of the link
  /// In place of an answer: the server has dropped the frame of the request with this id.
  std::optional<std::uint32_t> dropped;
};

class frame_link {
public:
  virtual ~frame_link() = default;
  /// Sends a frame. False: there is no room at this moment. A frame that is lost on the way was sent. `now`: ns of a
  /// steady clock.
  virtual bool send(std::span<const std::uint8_t> frame, std::uint64_t now) = 0;
  /// Does not wait.
  virtual std::optional<arrival> receive(std::uint64_t now) = 0;
  /// Waits until something may have come, at most so long.
  virtual void wait(std::uint64_t time_ns) = 0;
  /// No request is open, and one begins: what was known of the server's absence may be over. Fails if it is known that
  /// no server listens; then the request is not sent.
  [[nodiscard]] virtual expected<> begin() { return {}; }
  /// True once after the last frames were refused, and the link has gone on to another address of the server.
  virtual bool changed_address() { return false; }
  /// Fails if no answer can come any more.
  [[nodiscard]] virtual expected<> check() = 0;
  /// Bytes of a slot of the server; 0: not known yet.
  [[nodiscard]] virtual std::uint64_t slot_size() const = 0;
};

/// UDP. For refusal_watch: a frame is repeated after `repeat_after_ns`, and refusals must go on for `patience_ns`.
expected<std::unique_ptr<frame_link>> make_udp_link(const char *host, std::uint16_t port, std::uint64_t repeat_after_ns,
                                                    std::uint64_t patience_ns);
/// The client's end of the provider shm.
expected<std::unique_ptr<frame_link>> make_shm_link(const char *name, std::uint64_t timeout_ns);

} // namespace cudaq::realtime::detail
