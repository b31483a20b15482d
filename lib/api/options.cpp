// SPDX-License-Identifier: Apache-2.0
// Option structs: their defaults, and the functions of the C API that fill them.
#include "lib/api/options.h"

#include "cudaq/realtime/daemon/dispatcher/cudaq_realtime.h"

using namespace cudaq::realtime::detail;

namespace cudaq::realtime::detail {

cudaq_dispatcher_options_t default_dispatcher_options() {
  cudaq_dispatcher_options_t o{};
  o.struct_size = sizeof(o);
  o.dispatcher_core = CUDAQ_CORE_ANY;
  o.handler_core_base = CUDAQ_CORE_ANY;
  o.numa_node = CUDAQ_NUMA_NODE_ANY;
  o.block_interval_ns = 500000;
  o.grace_period_ns = 5000000000u;
  return o;
}

cudaq_ringbuffer_options_t default_ringbuffer_options() {
  cudaq_ringbuffer_options_t o{};
  o.struct_size = sizeof(o);
  o.memory_kind = CUDAQ_MEMORY_HOST;
  o.numa_node = CUDAQ_NUMA_NODE_ANY;
  return o;
}

} // namespace cudaq::realtime::detail

extern "C" {

cudaq_status_t cudaq_dispatcher_options_init(cudaq_dispatcher_options_t *options, uint32_t struct_size) {
  return guarded(__func__, [&] { return write_sized("options", options, struct_size, default_dispatcher_options()); });
}

cudaq_status_t cudaq_ringbuffer_options_init(cudaq_ringbuffer_options_t *options, uint32_t struct_size) {
  return guarded(__func__, [&] { return write_sized("options", options, struct_size, default_ringbuffer_options()); });
}

} // extern "C"
