// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/client/open_requests.h"

#include "cudaq/qec/realtime/decoding_server_wire.h"

#include <algorithm>
#include <cstring>

namespace cudaq::realtime::detail {
namespace {

cudaq_rpc_header_t header_of(std::span<const std::uint8_t> frame) {
  cudaq_rpc_header_t header;
  std::memcpy(&header, frame.data(), sizeof(header));
  return header;
}

/// Without overflow.
std::uint64_t after(std::uint64_t time, std::uint64_t duration) {
  return duration > kNever - time ? kNever : time + duration;
}

} // namespace

open_requests::open_requests(std::uint32_t window, std::uint32_t frame_bytes, const repeat_rules &rules)
    : rules_(rules), frame_bytes_(frame_bytes), requests_(window), frames_(std::size_t{window} * frame_bytes),
      last_id_(rules.ids_after) {}

std::optional<std::uint32_t> open_requests::begin(const cudaq_rpc_header_t &header, std::span<const std::uint8_t> head,
                                                  std::span<const std::uint8_t> payload, bool renews,
                                                  std::uint64_t deadline) {
  const std::uint32_t place = place_of(header.request_id);
  request &r = requests_[place];
  const std::size_t length = sizeof(header) + head.size() + payload.size();
  if (r.open || length > frame_bytes_ || !has_room_for_one_more())
    return std::nullopt;
  r = {};
  r.open = true;
  r.number = ++begun_;
  r.renews = renews;
  r.id = r.first_id = last_id_ = header.request_id;
  r.length = static_cast<std::uint32_t>(length);
  r.deadline = deadline;
  std::uint8_t *const at = frame(place).data();
  std::memcpy(at, &header, sizeof(header));
  std::copy(head.begin(), head.end(), at + sizeof(header));
  std::copy(payload.begin(), payload.end(), at + sizeof(header) + head.size());
  ++open_;
  next_time_ = 0;
  return place;
}

bool open_requests::has_room_for_one_more() const {
  return rules_.after_ns == kNever || rules_.max_later == UINT32_MAX ||
         std::ranges::none_of(requests_,
                              [&](const request &r) { return r.open && begun_ + 1 - r.number > rules_.max_later; });
}

std::optional<std::uint32_t> open_requests::due(std::uint64_t now) {
  if (open_ == 0 || now < next_time_)
    return std::nullopt;
  std::uint64_t next = kNever;
  for (std::uint32_t place = 0; place < requests_.size(); ++place) {
    request &r = requests_[place];
    if (!r.open)
      continue;
    if (now >= r.due) {
      const bool forgotten = now - r.first_sent > rules_.for_ns || begun_ - r.number > rules_.max_later;
      if (!r.refused && r.frames > r.busy_frames && forgotten) {
        r.due = kNever;
      } else {
        if (r.refused)
          renew(place, now);
        return place;
      }
    }
    next = std::min({next, r.due, r.deadline});
  }
  next_time_ = next;
  return std::nullopt;
}

/// The same payload with another id and another time.
void open_requests::renew(std::uint32_t place, std::uint64_t now) {
  request &r = requests_[place];
  cudaq_rpc_header_t header = header_of(frame(place));
  do
    r.id += window(); // the same place
  while (r.id == 0);
  if (static_cast<std::int32_t>(r.id - last_id_) > 0)
    last_id_ = r.id;
  r.refused = false;
  r.number = ++begun_;
  r.frames = r.busy_frames = 0;
  header.request_id = r.id;
  header.ptp_timestamp = now;
  std::memcpy(frame(place).data(), &header, sizeof(header));
}

void open_requests::mark_sent(std::uint32_t place, std::uint64_t now) {
  request &r = requests_[place];
  repeated_ += r.attempts != 0 ? 1 : 0;
  ++r.attempts;
  if (r.frames++ == 0)
    r.first_sent = now;
  r.due = after(now, rules_.after_ns);
  next_time_ = std::min({next_time_, r.due, r.deadline});
}

void open_requests::send_again(std::uint64_t now) {
  for (request &r : requests_)
    if (r.open && !r.refused)
      r.due = std::min(r.due, now);
  next_time_ = std::min(next_time_, now);
}

bool open_requests::is_one_shot(std::uint32_t place) {
  const std::uint32_t function = header_of(frame(place)).function_id;
  return function == CUDAQ_QEC_DECODE || function == CUDAQ_QEC_DECODE_READOUT;
}

bool open_requests::is_server_busy(std::uint32_t place, std::int32_t status) {
  if (status != CUDAQ_QEC_SERVER_BUSY && status != -CUDAQ_QEC_SERVER_BUSY)
    return false;
  return (status < 0) == is_one_shot(place);
}

/// False: too late for another attempt.
bool open_requests::postpone(request &r, std::uint64_t now) {
  r.backoff.refused(now);
  const std::uint64_t due = std::min(r.backoff.until(), after(now, rules_.after_ns));
  if (after(due, kLastAttempt) >= r.deadline)
    return false;
  r.due = due;
  next_time_ = std::min(next_time_, due);
  return true;
}

open_requests::result open_requests::handle(const cudaq_rpc_response_t &answer, std::uint64_t now) {
  const std::uint32_t place = place_of(answer.request_id);
  request &r = requests_[place];
  if (answer.magic != CUDAQ_RPC_MAGIC_RESPONSE || !r.open || r.id != answer.request_id || r.frames == 0)
    return {};
  if (rules_.checks_time && header_of(frame(place)).ptp_timestamp != answer.ptp_timestamp)
    return {};
  if (r.refused) // a second answer to the request that was refused
    return {};
  result taken{meaning::final, r.first_id, r.attempts};
  const bool server_busy = r.renews && is_server_busy(place, answer.status);
  if (answer.status == CUDAQ_RPC_ERR_BUSY || server_busy)
    ++busy_;
  if (server_busy && postpone(r, now)) {
    r.refused = true;
    taken.means = meaning::passed;
  } else if (answer.status == CUDAQ_RPC_ERR_BUSY && rules_.repeats_busy) {
    ++r.busy_frames;
    const bool late = now - r.first_sent > rules_.for_ns || !postpone(r, now);
    // An earlier frame without an answer may be executed: then the refusal of this one is no answer.
    if (late && r.busy_frames < r.frames)
      r.due = kNever;
    if (!late || r.busy_frames < r.frames)
      taken.means = meaning::passed;
  }
  if (taken.means == meaning::final)
    close(r);
  return taken;
}

open_requests::ended open_requests::close(request &r) {
  ended last{r.first_id, r.attempts, 0};
  if (r.refused)
    last.refusal = is_one_shot(place_of(r.id)) ? -CUDAQ_QEC_SERVER_BUSY : CUDAQ_QEC_SERVER_BUSY;
  else if (r.busy_frames >= r.frames) // also if none was sent
    last.refusal = CUDAQ_RPC_ERR_BUSY;
  r.open = false;
  --open_;
  return last;
}

std::optional<open_requests::ended> open_requests::expire(std::uint64_t now) {
  if (open_ == 0 || now < next_time_)
    return std::nullopt;
  for (request &r : requests_)
    if (r.open && now >= r.deadline)
      return close(r);
  return std::nullopt;
}

std::optional<open_requests::ended> open_requests::give_up(std::uint32_t id) {
  request &r = requests_[place_of(id)];
  return r.open && r.first_id == id ? std::optional(close(r)) : std::nullopt;
}

std::optional<open_requests::ended> open_requests::drop(std::uint32_t id) {
  request &r = requests_[place_of(id)];
  return r.open && r.id == id ? std::optional(close(r)) : std::nullopt;
}

} // namespace cudaq::realtime::detail
