// SPDX-License-Identifier: Apache-2.0
#include "tools/common/api_objects.h"

#include "cudaq/realtime/daemon/dispatcher/cudaq_realtime.h"

namespace cudaq::realtime::tools {

void require_ok(cudaq_status_t status, const char *call) {
  if (status == CUDAQ_OK)
    return;
  // The message first: cudaq_status_string may be the "next call" that invalidates it.
  std::string text = cudaq_last_error_message();
  if (!text.starts_with(call))
    text = std::string(call) + ": " + text;
  text += std::string(" (") + cudaq_status_string(status) + ")";
  throw api_error(text);
}

cudaq_dispatcher_options_t default_options() {
  cudaq_dispatcher_options_t options{};
  require_ok(cudaq_dispatcher_options_init(&options, sizeof options), "cudaq_dispatcher_options_init");
  return options;
}

void create_ring(int device, std::uint32_t num_slots, std::uint32_t slot_bytes, cudaq_memory_kind_t kind, bool in_place,
                 cudaq_ringbuffer_memory_t **memory, cudaq_ringbuffer_t *ring) {
  cudaq_ringbuffer_options_t options{};
  require_ok(cudaq_ringbuffer_options_init(&options, sizeof options), "cudaq_ringbuffer_options_init");
  options.memory_kind = kind;
  options.num_slots = num_slots;
  options.slot_size = slot_bytes;
  options.in_place = in_place ? 1 : 0;
  options.device_id = device;
  require_ok(cudaq_ringbuffer_create(&options, memory, ring), "cudaq_ringbuffer_create");
}

} // namespace cudaq::realtime::tools
