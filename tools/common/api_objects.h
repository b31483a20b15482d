// SPDX-License-Identifier: Apache-2.0
// Calls of the C API that throw an exception on an error.
#pragma once

#include "cudaq/realtime/daemon/dispatcher/realtime_types.h"

#include <cstdint>
#include <stdexcept>
#include <string>

namespace cudaq::realtime::tools {

/// A call of the C API failed; the text names the call, the status and the library's reason.
class api_error : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// Throws api_error unless `status` is CUDAQ_OK. `call` is the name of the function.
void require_ok(cudaq_status_t status, const char *call);

/// Calls cudaq_ringbuffer_create with default options and these values; throws api_error.
void create_ring(int device, std::uint32_t num_slots, std::uint32_t slot_bytes, cudaq_memory_kind_t kind, bool in_place,
                 cudaq_ringbuffer_memory_t **memory, cudaq_ringbuffer_t *ring);

/// The options that cudaq_dispatcher_options_init sets; throws api_error.
cudaq_dispatcher_options_t default_options();

} // namespace cudaq::realtime::tools
