// SPDX-License-Identifier: Apache-2.0
// Launches the graphs of a host dispatcher's workers. Each worker has one stream. A stream-memory write after the graph
// signals its end; this costs less than an event, a query or a signal kernel (docs/graph_dispatch.md).
#pragma once

#include "cudaq/realtime/daemon/dispatcher/host_dispatcher_types.h"
#include "lib/api/manager.h"
#include "lib/host_dispatcher/graph_launcher.h"

#include <memory>
#include <vector>

namespace cudaq::realtime::detail {

struct graph_launch_setup {
  int device_id = 0;
  slot_ring host_ring;       ///< the ring as the host sees it
  cudaq_ringbuffer_t ring{}; ///< for the device's addresses
  void **mailbox = nullptr;  ///< the caller's, one word per worker, or NULL
  std::vector<cudaq_host_worker_t> workers;
  bool mailbox_gets_context = false; ///< options.mailbox_content
  bool own_contexts = false;         ///< the workers have no io_ctx, and get contexts of the launcher
};

/// Sets the views of the device that are NULL, as far as graphs need them: those of mapped memory, found by the host's.
/// Memory that the device cannot use keeps the host's address, and the launcher refuses it. `contexts`: some worker has
/// a context.
void find_device_views(cudaq_ringbuffer_t &ring, bool contexts);

/// Makes the launcher and uploads every graph. Destroy the launcher before the manager, and only when none of its
/// graphs runs.
expected<> make_cuda_graph_launcher(cudaq_dispatch_manager_t &manager, const graph_launch_setup &setup,
                                    std::shared_ptr<graph_launcher> &out);

} // namespace cudaq::realtime::detail
