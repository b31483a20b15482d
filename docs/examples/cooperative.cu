// SPDX-License-Identifier: Apache-2.0
// A handler that all threads of several blocks run together, one request at a time: the weight of a long shot.
#include "device_session.h"

#include <cudaq/realtime/daemon/dispatcher/dispatch_kernel.cuh>

using namespace cudaq::realtime;

__device__ std::uint32_t weight;

/// Every thread reaches every barrier, also if the request is refused: its status is that of thread 0 of block 0.
__device__ int weight_rpc(const void *input, void *output, std::uint32_t arg_len, std::uint32_t max_result_len,
                          std::uint32_t *result_len) {
  const std::uint32_t me = blockIdx.x * blockDim.x + threadIdx.x, all = gridDim.x * blockDim.x;
  if (me == 0)
    weight = 0;
  CooperativeKernel::sync(); // of the whole grid
  std::uint32_t mine = 0;
  for (std::uint32_t k = me; k < arg_len; k += all)
    mine += static_cast<std::uint32_t>(__popc(static_cast<const std::uint8_t *>(input)[k]));
  atomicAdd(&weight, mine);
  CooperativeKernel::sync();
  if (me == 0 && max_result_len >= sizeof(weight)) {
    std::memcpy(output, &weight, sizeof(weight));
    *result_len = sizeof(weight);
  }
  return max_result_len >= sizeof(weight) ? 0 : 1;
}

static cudaError_t launch(const cudaq_dispatch_launch_params_t *params) {
  using handlers = handler_list<static_handler<fnv1a_hash("weight"), weight_rpc>>;
  return launch_dispatch_kernel<CooperativeKernel, handlers>(*params);
}

int main() {
  if (const int status = example::status_without_gpu())
    return status;
  constexpr std::uint32_t kCount = 1000, kBytes = 8000;
  int wrong = 0;
  {
    example::shape shape;
    shape.slot_size = 8192;
    shape.kernel = CUDAQ_KERNEL_COOPERATIVE;
    shape.blocks = 4;
    shape.threads = 128;
    example::device_session session(launch, {nullptr, 0}, shape);
    for (std::uint32_t n = 1; n <= kCount; ++n) {
      std::vector<std::uint8_t> events(kBytes);
      for (std::uint32_t k = 0; k < n; ++k)
        events[k * 7919 % kBytes] = 0x11; // 7919 is prime, so these are n bytes
      const example::answer got = session.call(fnv1a_hash("weight"), events, n);
      std::uint32_t found = 0;
      if (got.result.size() == sizeof(found))
        std::memcpy(&found, got.result.data(), sizeof(found));
      wrong += got.header.status != 0 || found != 2 * n;
    }
  }
  std::printf("cooperative: %u requests, each by 512 threads, %d wrong\n", kCount, wrong);
  return wrong == 0 ? 0 : 1;
}
