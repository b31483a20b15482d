// SPDX-License-Identifier: Apache-2.0
#include "tools/serve/refusal_log.h"

#include "tools/common/log_line.h"

#include <algorithm>

namespace cudaq::realtime::tools {

using namespace std::chrono_literals;

std::string refusal_line(const refusal_counts &before, const refusal_counts &now) {
  std::string text;
  const auto add = [&text](std::uint64_t earlier, std::uint64_t count, const char *what) {
    if (count > earlier) // a transport counts on while its words are read
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count - earlier, what);
  };
  add(before.decoder_busy, now.decoder_busy, "answered BUSY by a decoder");
  add(before.transport_busy, now.transport_busy, "answered BUSY by the transport");
  add(before.dropped, now.dropped, "dropped because they are no requests");
  return text.empty() ? text : "messages that were not taken: " + text;
}

refusal_counts refusals_of(const cudaq::qec::realtime::decoding_server &server, const provider_service &transport) {
  refusal_counts counts;
  for (const auto &decoder : server.decoders())
    counts.decoder_busy +=
        decoder->counts().by_status[static_cast<std::size_t>(cudaq::qec::realtime::server_status::busy)];
  const message_refusals by_transport = refusals_of(transport);
  counts.transport_busy = by_transport.busy;
  counts.dropped = by_transport.dropped + transport.stats().dropped_bad_magic;
  return counts;
}

void refusal_log::poll_at_end(clock::time_point now) {
  const refusal_counts counts = read_();
  const std::string line = refusal_line(logged_, counts);
  if (line.empty())
    return;
  print_log("{}\n", line);
  // After the line: without memory it comes later.
  logged_ = {std::max(logged_.decoder_busy, counts.decoder_busy),
             std::max(logged_.transport_busy, counts.transport_busy), std::max(logged_.dropped, counts.dropped)};
  next_ = now + 60s;
}

void refusal_log::poll(clock::time_point now) {
  if (now < next_)
    return;
  next_ = now + 1s;
  poll_at_end(now);
}

} // namespace cudaq::realtime::tools
