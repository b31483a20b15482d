// SPDX-License-Identifier: Apache-2.0
#include "lib/session/sequence_window.h"

#include <algorithm>

namespace cudaq::realtime::detail {

sequence_window::sequence_window(std::uint32_t window, std::uint32_t sessions, std::uint32_t answer_bytes)
    : window_(window), answer_bytes_(answer_bytes), numbers_(sessions), records_(std::size_t{sessions} * window),
      answers_(new std::uint8_t[std::size_t{sessions} * window * answer_bytes]) {} // not touched: no memory until used

sequence_window::found sequence_window::find(std::uint32_t session, std::uint32_t number, std::uint64_t content) {
  const numbers &n = numbers_[session];
  if (!n.any || static_cast<std::int32_t>(number - n.newest) > 0)
    return {};
  if (!holds(session, number))
    return {request_state::stale, {}};
  const std::size_t place = place_of(session, number);
  const record &r = records_[place];
  if (r.state != request_state::unseen && r.content != content)
    return {request_state::reused, {}};
  if (r.state == request_state::answered)
    return {r.state, {answer_at(place), r.length}};
  return {r.state, {}};
}

bool sequence_window::begin(std::uint32_t session, std::uint32_t number, std::uint64_t content) {
  numbers &n = numbers_[session];
  const bool newer = !n.any || static_cast<std::int32_t>(number - n.newest) > 0;
  if (newer) {
    if (n.any && number - n.newest >= window_)
      forget_all(session);
    else if (n.any)
      for (std::uint32_t skipped = n.newest + 1; skipped != number + 1; ++skipped) {
        record &r = records_[place_of(session, skipped)];
        r.state = after(r.state, request_event::forget);
      }
    n = {number, true};
  }
  record &r = records_[place_of(session, number)];
  r = {content, 0, after(r.state, request_event::begin)};
  return number != n.newest; // the newest one may begin again, after it was forgotten
}

void sequence_window::keep(std::uint32_t session, std::uint32_t number, std::span<const std::uint8_t> answer) {
  if (!holds(session, number))
    return;
  const std::size_t place = place_of(session, number);
  record &r = records_[place];
  std::copy(answer.begin(), answer.end(), answer_at(place));
  r.length = static_cast<std::uint32_t>(answer.size());
  r.state = after(r.state, request_event::answer);
}

void sequence_window::close(std::uint32_t session, std::uint32_t number) {
  if (!holds(session, number))
    return;
  record &r = records_[place_of(session, number)];
  r.state = after(r.state, request_event::close);
}

void sequence_window::forget(std::uint32_t session, std::uint32_t number) {
  if (!holds(session, number))
    return;
  record &r = records_[place_of(session, number)];
  r.state = after(r.state, request_event::forget);
}

void sequence_window::restart(std::uint32_t session) {
  numbers_[session] = {};
  forget_all(session);
}

void sequence_window::forget_all(std::uint32_t session) {
  const auto first = records_.begin() + static_cast<std::ptrdiff_t>(std::size_t{session} * window_);
  std::for_each(first, first + window_, [](record &r) { r.state = after(r.state, request_event::forget); });
}

} // namespace cudaq::realtime::detail
