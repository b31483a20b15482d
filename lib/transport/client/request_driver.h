// SPDX-License-Identifier: Apache-2.0
// Open requests on a link, by the clock of this machine. One thread uses it.
#pragma once

#include "lib/transport/client/frame_link.h"
#include "lib/transport/client/open_requests.h"

namespace cudaq::realtime::detail {

/// What has happened to a request.
struct request_news {
  enum class event : std::uint8_t { answered, no_answer, dropped };
  event what = event::answered;
  std::uint32_t request = 0, attempts = 0;
  std::int32_t status = 0;
  std::span<const std::uint8_t> result; ///< valid until the next call
};

class request_driver {
public:
  request_driver(std::unique_ptr<frame_link> link, std::uint32_t max_open, std::uint32_t frame_bytes,
                 const repeat_rules &rules)
      : link_(std::move(link)), requests_(max_open, frame_bytes, rules), frame_bytes_(frame_bytes) {}

  /// Sends a request, if the link has room, and gives its number.
  expected<std::uint32_t> send(std::uint32_t function, std::span<const std::uint8_t> head,
                               std::span<const std::uint8_t> body, bool renews, std::uint64_t timeout_ns);
  /// News of any open request; none within `timeout_ns`: CUDAQ_ERR_TIMEOUT, with a fixed text if that is 0. Fails also
  /// if no answer can come any more. Frames are repeated in here.
  expected<request_news> wait(std::uint64_t timeout_ns);
  bool give_up(std::uint32_t request) { return requests_.give_up(request).has_value(); }

  [[nodiscard]] const open_requests &requests() const { return requests_; }
  [[nodiscard]] std::uint64_t unexpected() const { return unexpected_; }
  [[nodiscard]] std::uint64_t slot_size() const { return link_->slot_size(); }

private:
  bool send_due(std::uint64_t now);
  std::optional<request_news> handle(const arrival &arrived, std::uint64_t now);

  std::unique_ptr<frame_link> link_;
  open_requests requests_;
  std::uint32_t frame_bytes_;
  std::uint64_t unexpected_ = 0;
};

} // namespace cudaq::realtime::detail
