// SPDX-License-Identifier: Apache-2.0
// The decode kernel's side of `demo --device gpu`; plain C++, so that host files include it as well.
#pragma once

#include "cudaq/realtime/daemon/dispatcher/cudaq_realtime.h"

#include "lib/qec/decoding/lookup_table.h"

namespace cudaq::realtime::tools {

/// The table that the handler reads from now on; its pointers are device addresses. While no dispatcher runs: there is
/// one for all dispatchers of the program.
cudaError_t set_decode_table(const cudaq::qec::realtime::lookup_table_view &table, cudaStream_t stream);

/// Fills an entry, in device memory, with the DEVICE_CALL handler: bit-packed detection events in, bit-packed
/// observables out, a decode_status as status.
cudaError_t fill_decode_entry(cudaq_function_entry_t *entry, std::uint32_t function_id,
                              const cudaq_handler_schema_t &schema, cudaStream_t stream);

} // namespace cudaq::realtime::tools
