// SPDX-License-Identifier: Apache-2.0
// The interface of the handler for the C++ program.
#pragma once

#include <cuda_runtime_api.h>
#include <cudaq/realtime/daemon/dispatcher/cudaq_realtime.h>

/// The table with one handler; it stays on the device until the process ends. `stream` must be a non-blocking stream.
cudaError_t handler_table(cudaStream_t stream, cudaq_function_table_t *out_table);
