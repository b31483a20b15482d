// SPDX-License-Identifier: Apache-2.0
#include "unittests/gpu/qec/resident_stages.h"

#include "cudaq/qec/realtime/resident_kernel.cuh"

namespace cudaq::realtime::test {
namespace {

struct add_one {
  const volatile int *release;
  __device__ void operator()(const cudaq::qec::realtime::gpu::resident_request &r) const {
    const std::uint64_t command = *reinterpret_cast<const std::uint64_t *>(r.frame + CUDAQ_RPC_HEADER_SIZE);
    if (command == kTrap)
      asm volatile("trap;");
    while (command >> 32 != 0 && *release == 0) {
    }
    if (threadIdx.x == blockDim.x - 1) // not the thread that sets the flag
      *reinterpret_cast<std::uint64_t *>(r.output) = command + 1;
  }
};

} // namespace

cudaq::qec::realtime::gpu::resident_launcher launch_add_one(const volatile int *release, unsigned threads,
                                                            std::size_t shared_bytes) {
  return cudaq::qec::realtime::gpu::resident_launch(add_one{release}, threads, shared_bytes);
}

} // namespace cudaq::realtime::test
