// SPDX-License-Identifier: Apache-2.0
// The host dispatch loop on the thread of the caller, for both forms of cudaq_host_dispatcher_loop.
#pragma once

#include "lib/api/back_end.h"

namespace cudaq::realtime::detail {

/// Everything that the loop uses. The references and pointers belong to the caller.
struct host_loop {
  const cudaq_dispatcher_config_t &config;
  const cudaq_ringbuffer_t &ring;
  const cudaq_function_table_t &table;
  std::vector<cudaq_host_worker_t> workers;
  const cudaq_dispatcher_options_t *options = nullptr; ///< NULL: the defaults
  volatile int *shutdown_flag = nullptr;
  std::uint64_t *stats = nullptr;
  void **mailbox = nullptr;
  upstream_words words;
  bool finds_device_views = false; ///< of the wiring
};

/// Returns when the shutdown flag is set and the run is over, or with the reason why it did not begin.
expected<> run_loop_here(const host_loop &what);

} // namespace cudaq::realtime::detail
