// SPDX-License-Identifier: Apache-2.0
#include "tools/services/client_log.h"

#include "tools/common/log_line.h"

#include <algorithm>

namespace cudaq::realtime::tools {

void client_log::poll() {
  const auto now = std::chrono::steady_clock::now();
  if (now < next_)
    return;
  next_ = now + std::chrono::seconds(1);
  client_counts counts = clients_of(transport_);
  // The transport counts on while its words are read one after the other.
  counts.came = std::max(counts.came, logged_.came);
  counts.went = std::max(counts.went, logged_.went);
  if (counts.came == logged_.came && counts.went == logged_.went)
    return;
  const bool has_new = counts.came != logged_.came && !counts.newest.empty();
  print_log("clients: {} came, {} went; {} now{}{}\n", counts.came - logged_.came, counts.went - logged_.went,
            counts.came - std::min(counts.came, counts.went), has_new ? "; the newest: " : "",
            has_new ? counts.newest : "");
  logged_ = counts;
}

} // namespace cudaq::realtime::tools
