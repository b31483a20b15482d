// SPDX-License-Identifier: Apache-2.0
// The decode handler of `demo --device gpu`. Plain C++: host files include it, too.
#pragma once

#include "cudaq/realtime/daemon/dispatcher/realtime_types.h"

#include "lib/qec/decoders/lookup_table.h"

#include <cuda_runtime_api.h>

namespace cudaq::realtime::tools {

/// Sets the table that the handler reads; its pointers are device addresses. Call it while no dispatcher runs, because
/// all dispatchers of the program share the table. Returns after the table is set.
cudaError_t set_decode_table(const cudaq::qec::realtime::lookup_table_view &table, cudaStream_t stream);

/// Fills an entry in device memory with the DEVICE_CALL handler. Input: bit-packed detection events. Output: bit-packed
/// observables. Status: a decode_status. Does not wait for the stream.
cudaError_t fill_decode_entry(cudaq_function_entry_t *entry, std::uint32_t function_id,
                              const cudaq_handler_schema_t &schema, cudaStream_t stream);

} // namespace cudaq::realtime::tools
