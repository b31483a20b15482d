// SPDX-License-Identifier: Apache-2.0
#include "lib/api/device_path/idle_blocks.h"

#include "cudaq/realtime/detail/kernel_abi/device_params.h"
#include "lib/host_dispatcher/diagnostics.h"

namespace cudaq::realtime::detail {

std::string describe_idle_blocks(const cudaq_dispatcher_config_t &c, const cudaq_dispatcher_options_t &o) {
  const std::uint32_t blocks = c.num_blocks == 0 ? 1 : c.num_blocks;
  const std::uint32_t threads = c.threads_per_block == 0 ? 32 : c.threads_per_block;
  std::string text;
  if (c.dispatch_mode == CUDAQ_DISPATCH_GRAPH_LAUNCH) {
    if (blocks > 1)
      append(text, "num_blocks %u is not used: graph schedulers have one block each\n", blocks);
    return text;
  }
  if (c.kernel_type == CUDAQ_KERNEL_COOPERATIVE)
    return text;
  if (c.kernel_type == CUDAQ_KERNEL_REGULAR && o.ordering == CUDAQ_ORDERING_ANY) {
    const std::uint32_t warps = num_loops(true, blocks, threads), useful = (c.num_slots + 31) / 32;
    if (warps > useful)
      append(text, "%u of %u warps are not launched: a ring of %u slots keeps %u busy, 32 slots a warp\n",
             warps - useful, warps, c.num_slots, useful);
    return text;
  }
  if (blocks > 1)
    append(text, "%u of %u blocks are not launched: %s\n", blocks - 1, blocks,
           c.kernel_type == CUDAQ_KERNEL_UNIFIED
               ? "the unified kernel has one block"
               : "ordering FIFO, in which one warp serves the ring; see num_blocks in cudaq_realtime.h");
  return text;
}

} // namespace cudaq::realtime::detail
