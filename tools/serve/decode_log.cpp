// SPDX-License-Identifier: Apache-2.0
#include "tools/serve/decode_log.h"

#include "tools/common/log_line.h"

#include <algorithm>

namespace cudaq::realtime::tools {

using namespace std::chrono_literals;

std::chrono::nanoseconds long_decode(std::uint64_t deadline_ns) noexcept {
  constexpr std::uint64_t kFactor = 100;
  constexpr std::chrono::nanoseconds kAtLeast = 1s, kWithoutDeadline = 10s;
  return deadline_ns == 0 ? kWithoutDeadline
                          : std::max(kAtLeast, std::chrono::nanoseconds(static_cast<std::int64_t>(
                                                   std::min(deadline_ns, INT64_MAX / kFactor) * kFactor)));
}

decode_log::decode_log(cudaq::qec::realtime::decoding_server &server)
    : server_(server), decoders_(server.decoders().size()) {}

void decode_log::poll() {
  const clock::time_point now = clock::now();
  for (std::size_t k = 0; k < decoders_.size(); ++k)
    poll_decode(*server_.decoders()[k], decoders_[k], now);
  if (now - failures_logged_ >= 1s) // a decoder may fail in each shot
    poll_failures();
}

void decode_log::poll_failures() {
  for (std::size_t k = 0; k < decoders_.size(); ++k) {
    const auto &decoder = *server_.decoders()[k];
    const cudaq::qec::realtime::decode_failures found = decoder.failures();
    if (found.count == decoders_[k].failures)
      continue;
    const bool has_both = found.not_converged != 0 && found.not_converged != found.count;
    print_log("decoder {}: failed decodes: {}{}: {}\n", decoder.limits().id, found.count,
              has_both ? fmt::format(", {} of them not converged; the last of the others", found.not_converged)
                       : "; the last one",
              found.last);
    decoders_[k].failures = found.count;
    failures_logged_ = clock::now();
  }
}

/// The time counts from the first look that has seen the decode, so it is too short by the time between two looks.
void decode_log::poll_decode(cudaq::qec::realtime::served_decoder &decoder, seen &before, clock::time_point now) {
  const std::uint64_t begun = decoder.begun();
  if (begun != before.begun || !decoder.is_serving()) {
    before.begun = begun;
    before.serving_since.reset();
    before.reported = false;
    return;
  }
  if (!before.serving_since)
    before.serving_since = now;
  const std::chrono::nanoseconds taken = now - *before.serving_since;
  if (before.reported || taken < 1s)
    return;
  const std::uint64_t deadline_ns = decoder.identity()->deadline_ns;
  if (taken < long_decode(deadline_ns))
    return;
  const auto text = [](auto ns) { return format_ns(static_cast<double>(ns)); };
  print_log("decoder {}: the decode of a request has taken {} so far{}; later requests for this "
            "decoder wait\n",
            decoder.limits().id, text(taken.count()),
            deadline_ns == 0 ? "" : fmt::format(", its deadline is {}", text(deadline_ns)));
  before.reported = true; // after the line: without memory it comes later
}

} // namespace cudaq::realtime::tools
