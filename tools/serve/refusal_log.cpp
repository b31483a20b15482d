// SPDX-License-Identifier: Apache-2.0
#include "tools/serve/refusal_log.h"

#include "tools/common/log_line.h"

namespace cudaq::realtime::tools {

using namespace std::chrono_literals;

std::string refusal_line(const refusal_counts &before, const refusal_counts &now) {
  std::string text;
  const auto add = [&text](std::uint64_t earlier, std::uint64_t count, const char *what) {
    if (count > earlier) // a transport counts on while its words are read
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count - earlier, what);
  };
  add(before.busy, now.busy, "answered BUSY by a decoder");
  add(before.no_slot, now.no_slot, "answered BUSY by the transport");
  add(before.noise, now.noise, "dropped because they are no requests");
  return text.empty() ? text : "messages that were not taken: " + text;
}

refusal_counts refusal_log::read() const {
  refusal_counts counts;
  for (const auto &decoder : server_.decoders())
    counts.busy += decoder->counts().by_status[static_cast<std::size_t>(cudaq::qec::realtime::server_status::busy)];
  const untaken_counts untaken = untaken_by(transport_);
  counts.no_slot = untaken.no_slot;
  counts.noise = untaken.noise + transport_.stats().dropped_bad_magic;
  return counts;
}

void refusal_log::poll_at_end() {
  const refusal_counts now = read();
  const std::string line = refusal_line(logged_, now);
  if (line.empty())
    return;
  print_log("{}\n", line);
  logged_ = now; // after the line: without memory it comes later
  next_ = std::chrono::steady_clock::now() + 60s;
}

void refusal_log::poll() {
  const auto now = std::chrono::steady_clock::now();
  if (now < next_)
    return;
  next_ = now + 1s;
  poll_at_end();
}

} // namespace cudaq::realtime::tools
