// SPDX-License-Identifier: Apache-2.0
// The last kernel of a worker's graph in the form that the specification prints. Plain C++.
#pragma once

#include <cuda_runtime_api.h>

namespace cudaq::realtime::test {

/// Sets the flag to 1 after all work before it on the stream. `flag`: a device address.
cudaError_t launch_signal_kernel(volatile int *flag, cudaStream_t stream);

} // namespace cudaq::realtime::test
