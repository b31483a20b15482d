// SPDX-License-Identifier: Apache-2.0
#include "tools/services/long_message_log.h"

#include "tools/common/log_line.h"

namespace cudaq::realtime::tools {

void long_message_log::poll() {
  const auto now = std::chrono::steady_clock::now();
  if (now < next_)
    return;
  next_ = now + std::chrono::seconds(1);
  const std::uint64_t count = long_message_count(transport_);
  if (count <= logged_) // an endpoint line that cannot be read counts none
    return;
  const std::uint64_t needed = needed_();
  print_log("{} message{} longer than a slot of {} bytes {} not executed{}\n", count, count == 1 ? "" : "s",
            transport_.slot_bytes(), count == 1 ? "was" : "were",
            needed == 0
                ? ""
                : fmt::format("; the request of a whole shot needs {}: see --slot-size of the provider", needed));
  logged_ = count; // after the line: without memory it comes later
}

} // namespace cudaq::realtime::tools
