// SPDX-License-Identifier: Apache-2.0
// The handler's side, as the program in C++ sees it.
#pragma once

#include <cuda_runtime_api.h>
#include <cudaq/realtime/daemon/dispatcher/cudaq_realtime.h>

/// The table with the one handler, on the device until the process ends. `stream`: a non-blocking one.
cudaError_t handler_table(cudaStream_t stream, cudaq_function_table_t *out_table);
