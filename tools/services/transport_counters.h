// SPDX-License-Identifier: Apache-2.0
// The counters of a provider, as Prometheus text. A provider exports them beside its table (udp_provider.h,
// roce_provider.h, cpu_roce_provider.h), under names that differ between providers.
#pragma once

#include "tools/services/provider_service.h"

#include <cstdint>
#include <string>

namespace cudaq::realtime::tools {

/// The families cudaq_transport_* of the service's provider; "" if the provider counts nothing. Both shapes.
std::string transport_counters_text(const provider_service &transport);

/// Clients since the start: peers of a connection (cpu_roce), or addresses that are remembered (udp and roce with a
/// replay window). 0 for a provider that does not know them.
struct client_counts {
  std::uint64_t came = 0, went = 0;
  std::string newest{}; ///< its address, and its port over UDP and RoCE; "": not known
};
client_counts clients_of(const provider_service &transport);

/// Messages since the start that the provider did not give to the dispatcher. 0: it does not count them.
struct message_refusals {
  std::uint64_t busy = 0;    ///< requests that were answered BUSY: no slot was free
  std::uint64_t dropped = 0; ///< no requests: too short, without the magic number, of cpu_roce without a slot
};
message_refusals refusals_of(const provider_service &transport);

/// Messages that were longer than a slot and not executed, as the provider counts them: in its statistics, or as the
/// word too_long of its endpoint line, which a provider of the user may have. 0: it counts none.
std::uint64_t long_message_count(const provider_service &transport);

} // namespace cudaq::realtime::tools
