// SPDX-License-Identifier: Apache-2.0
// Which graph workers a host dispatcher has: those that the caller lists, or else one for each graph of his table.
#pragma once

#include "lib/api/back_end.h"

namespace cudaq::realtime::detail {

/// Reads the caller's array, whose elements are workers[0].struct_size bytes apart, and checks each.
status_or_reason read_workers(const cudaq_host_worker_t *workers, std::size_t count,
                              std::vector<cudaq_host_worker_t> &out);

/// The workers of a run. A table's graphs get workers of their own where the caller has listed none and asks for
/// graphs: by a mailbox, or by config.dispatch_mode. Worker i is the i-th graph of the table then.
status_or_reason workers_of_run(const wiring &w, const cudaq_dispatcher_config_t &config,
                                std::vector<cudaq_host_worker_t> &out);

/// Whether a device can use what the caller says is memory of `what`. `pageable`: the device reads any memory of the
/// host.
status_or_reason check_reachable(const char *what, const volatile void *address, const cudaPointerAttributes &seen,
                                 bool pageable);

/// What graphs need to see of a ring.
status_or_reason check_ring_for_graphs(const cudaq_ringbuffer_t &ring, const std::vector<cudaq_host_worker_t> &workers);

} // namespace cudaq::realtime::detail
