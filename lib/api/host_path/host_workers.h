// SPDX-License-Identifier: Apache-2.0
// The graph workers of a host dispatcher: those that the caller lists, or else one for each graph of the function
// table.
#pragma once

#include "lib/api/back_end.h"

namespace cudaq::realtime::detail {

/// Reads the caller's array, whose elements are workers[0].struct_size bytes apart, and checks each.
expected<> read_workers(const cudaq_host_worker_t *workers, std::size_t count, std::vector<cudaq_host_worker_t> &out);

/// The workers of a run: those that the caller has listed. If there are none, and the caller has set a mailbox or
/// config.dispatch_mode is GRAPH_LAUNCH, each GRAPH_LAUNCH entry of the table gets a worker: worker i is the i-th
/// entry.
expected<> workers_of_run(const wiring &w, const cudaq_dispatcher_config_t &config,
                          std::vector<cudaq_host_worker_t> &out);

/// Each of these workers has a context of the library, for the mailbox of the upstream form.
bool have_own_contexts(const wiring &w);

/// Refuses memory that the device cannot use. `what` names it in the reason. `pageable`: the device can use all host
/// memory.
expected<> check_reachable(const char *what, const volatile void *address, const cudaPointerAttributes &seen,
                           bool pageable);

/// Refuses a ring without the device addresses that graphs need. `contexts`: some worker has a context.
expected<> check_ring_for_graphs(const cudaq_ringbuffer_t &ring, bool contexts);

} // namespace cudaq::realtime::detail
