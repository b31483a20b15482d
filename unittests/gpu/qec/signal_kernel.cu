// SPDX-License-Identifier: Apache-2.0
#include "unittests/gpu/qec/signal_kernel.h"

namespace cudaq::realtime::test {
namespace {

__global__ void signal_kernel(volatile int *flag) {
  __threadfence_system();
  *flag = 1;
}

} // namespace

cudaError_t launch_signal_kernel(volatile int *flag, cudaStream_t stream) {
  signal_kernel<<<1, 1, 0, stream>>>(flag);
  return cudaGetLastError();
}

} // namespace cudaq::realtime::test
