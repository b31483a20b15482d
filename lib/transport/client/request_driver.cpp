// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/client/request_driver.h"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace cudaq::realtime::detail {
namespace {

constexpr std::uint64_t kNoRoomWait = 50'000; ///< ns until the link is asked again
constexpr int kMaxStrays = 1024;              ///< of one call: a peer that floods does not keep the caller in it

std::uint64_t now_ns() {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
}

std::uint64_t after(std::uint64_t time, std::uint64_t duration) {
  return duration > kNever - time ? kNever : time + duration;
}

/// Of a request whose time is over. One that was refused until the end has an answer.
request_news news_of(const open_requests::ended &last, request_news::event without_refusal) {
  return {
      last.refusal != 0 ? request_news::event::answered : without_refusal, last.id, last.attempts, last.refusal, {}};
}

} // namespace

expected<std::uint32_t> request_driver::send(std::uint32_t function, std::span<const std::uint8_t> head,
                                             std::span<const std::uint8_t> body, bool renews,
                                             std::uint64_t timeout_ns) {
  const std::size_t payload = head.size() + body.size();
  if (payload > frame_bytes_ - sizeof(cudaq_rpc_header_t))
    return make_reason(CUDAQ_ERR_INVALID_ARG, "the request has %zu bytes, and a slot holds %zu", payload,
                       frame_bytes_ - sizeof(cudaq_rpc_header_t));
  const std::uint64_t now = now_ns();
  if (requests_.size() == 0)
    if (expected<> result = link_->begin(); result.failed())
      return result.reason();
  cudaq_rpc_header_t header{CUDAQ_RPC_MAGIC_REQUEST, function, static_cast<std::uint32_t>(payload), 0, now};
  // After a request that was renewed, or that does not end, the places of some ids are in use.
  for (std::uint32_t tries = 0, id = requests_.last_id(); tries <= requests_.window(); ++tries) {
    id += id == UINT32_MAX ? 2 : 1; // 0 is no id
    header.request_id = id;
    if (requests_.begin(header, head, body, renews, after(now, timeout_ns))) {
      send_due(now);
      return id;
    }
  }
  if (requests_.size() < requests_.window() && !requests_.has_room_for_one_more())
    return make_reason(CUDAQ_ERR_STATE,
                       "the server remembers %u requests, and would forget an open one with the next: collect answers "
                       "first",
                       requests_.max_later() + 1);
  return make_reason(CUDAQ_ERR_STATE, "%u requests are open, and no more may be (max_open)", requests_.size());
}

/// False: the link has no room.
bool request_driver::send_due(std::uint64_t now) {
  while (const std::optional<std::uint32_t> place = requests_.due(now)) {
    if (!link_->send(requests_.frame(*place), now))
      return false;
    if (link_->changed_address()) // this frame has gone there; those before it have not
      requests_.send_again(now);
    requests_.mark_sent(*place, now);
  }
  return true;
}

std::optional<request_news> request_driver::handle(const arrival &arrived, std::uint64_t now) {
  if (arrived.dropped) {
    const auto last = requests_.drop(*arrived.dropped);
    return last ? std::optional(request_news{request_news::event::dropped, last->id, last->attempts, 0, {}})
                : std::nullopt;
  }
  cudaq_rpc_response_t header;
  if (arrived.frame.size() < sizeof(header)) {
    ++unexpected_;
    return std::nullopt;
  }
  std::memcpy(&header, arrived.frame.data(), sizeof(header));
  const std::span<const std::uint8_t> payload = arrived.frame.subspan(sizeof(header));
  const open_requests::result taken =
      header.result_len > payload.size() ? open_requests::result{} : requests_.handle(header, now);
  unexpected_ += taken.means == open_requests::meaning::stray ? 1 : 0;
  if (taken.means != open_requests::meaning::final)
    return std::nullopt;
  return request_news{request_news::event::answered, taken.id, taken.attempts, header.status,
                      payload.first(header.result_len)};
}

expected<request_news> request_driver::wait(std::uint64_t timeout_ns) {
  if (requests_.size() == 0)
    return make_reason(CUDAQ_ERR_STATE, "no request is open");
  const std::uint64_t end = after(now_ns(), timeout_ns);
  for (int strays = 0;;) {
    const std::uint64_t now = now_ns();
    const std::optional<arrival> arrived = link_->receive(now);
    if (arrived) {
      if (const std::optional<request_news> news = handle(*arrived, now))
        return *news;
      ++strays;
    }
    if (const auto last = requests_.expire(now))
      return news_of(*last, request_news::event::no_answer);
    if (link_->changed_address())
      requests_.send_again(now);
    const bool has_room = send_due(now);
    if (expected<> result = link_->check(); result.failed())
      return result.reason();
    if (arrived && strays < kMaxStrays)
      continue;
    if (now >= end && timeout_ns == 0) // a look, which may be frequent
      return reason(CUDAQ_ERR_TIMEOUT, "no answer yet");
    if (now >= end)
      return make_reason(CUDAQ_ERR_TIMEOUT, "no answer within %llu ns", static_cast<unsigned long long>(timeout_ns));
    const std::uint64_t next = std::max(now, requests_.next_time());
    link_->wait(std::min(end - now, has_room ? next - now : kNoRoomWait)); // without room a frame is due all the time
  }
}

} // namespace cudaq::realtime::detail
