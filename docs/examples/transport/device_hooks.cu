// SPDX-License-Identifier: Apache-2.0
// The unified kernel over device hooks (ring_hooks.cu). A second kernel takes the place of the control system: it
// writes requests into a ring in device memory, and checks the answers. The CPU takes no part.
#include "../device_session.h"
#include "ring_hooks.h"

#include <cudaq/realtime/daemon/bridge/device_transport.cuh>
#include <cudaq/realtime/daemon/dispatcher/device_function_table.cuh>
#include <cudaq/realtime/daemon/dispatcher/device_ring.cuh>
#include <cudaq/realtime/daemon/dispatcher/dispatch_kernel.cuh>
#include <cudaq/realtime/daemon/dispatcher/upstream_interface.h>

using namespace cudaq::realtime;

constexpr std::uint32_t kAddOne = fnv1a_hash("add_one"), kSlots = 8, kSlotSize = 64, kRequests = 20000;
constexpr std::uint64_t kDeadlineNs = 15'000'000'000;

struct control_words {
  volatile int shutdown;
  std::uint64_t processed;
  std::uint32_t answered, wrong;
};

__device__ int add_one_rpc(const void *input, void *output, std::uint32_t arg_len, std::uint32_t max_result_len,
                           std::uint32_t *result_len) {
  if (arg_len != sizeof(std::uint32_t) || max_result_len < arg_len)
    return 1;
  std::uint32_t value;
  std::memcpy(&value, input, sizeof(value));
  ++value;
  std::memcpy(output, &value, sizeof(value));
  *result_len = sizeof(value);
  return 0;
}

/// One thread sends the requests one by one.
__global__ void control_system_kernel(device_ring<> ring, control_words *report) {
  const device_deadline deadline(kDeadlineNs);
  for (std::uint32_t n = 0, slot = 0; n < kRequests; ++n, slot = ring.next(slot)) {
    if (!ring.wait_available(slot, deadline) || !ring.write_request(slot, kAddOne, &n, sizeof(n), n))
      return;
    ring.signal(slot);
    if (ring.wait_answer(slot, deadline) != CUDAQ_TX_READY)
      return;
    cudaq_rpc_response_t header;
    const bool framed = ring.read_response(slot, header);
    std::uint32_t result;
    std::memcpy(&result, ring.result(slot), sizeof(result));
    ring.clear(slot);
    report->answered = n + 1;
    report->wrong += !framed || header.status != 0 || header.request_id != n || result != n + 1;
  }
}

int main() {
  if (const int status = example::status_without_gpu())
    return status;
  cudaq_ringbuffer_options_t options;
  TRY(cudaq_ringbuffer_options_init(&options, sizeof(options)));
  options.memory_kind = CUDAQ_MEMORY_DEVICE;
  options.num_slots = kSlots;
  options.slot_size = kSlotSize;
  example::ring_hooks_context context{{}, kSlots, 0};
  cudaq_ringbuffer_memory_t *memory = nullptr;
  TRY(cudaq_ringbuffer_create(&options, &memory, &context.ring));
  void *transport_ctx = nullptr;
  TRY(cudaMalloc(&transport_ctx, sizeof(context)));
  TRY(cudaMemcpy(transport_ctx, &context, sizeof(context), cudaMemcpyHostToDevice));
  control_words *control = nullptr;
  TRY(cudaHostAlloc(reinterpret_cast<void **>(&control), sizeof(*control), cudaHostAllocMapped));
  *control = {};
  cudaStream_t stream = nullptr;
  TRY(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  TRY(preload_kernels(control_system_kernel));
  {
    device_function_table table(stream);
    if (table.add(kAddOne, device_handler<add_one_rpc>(), {}) != cudaSuccess || table.upload() != cudaSuccess)
      example::fail("function table", table.error_text().c_str());
    const cudaq_function_table_t entries = table.view();

    cudaq_dispatch_manager_t *manager = nullptr;
    cudaq_dispatcher_t *dispatcher = nullptr;
    cudaq_dispatcher_config_t config{};
    config.kernel_type = CUDAQ_KERNEL_UNIFIED;
    config.slot_size = kSlotSize; // tx_stride_sz of the kernel
    TRY(cudaq_dispatch_manager_create(&manager));
    TRY(cudaq_dispatch_manager_reserve_blocks(manager, 0, 1)); // the control system's
    TRY(cudaq_dispatcher_create(manager, &config, &dispatcher));
    TRY(cudaq_dispatcher_set_unified_launch_upstream(dispatcher, cudaq_launch_unified_dispatch_device_upstream,
                                                     transport_ctx));
    TRY(cudaq_dispatcher_set_function_table(dispatcher, &entries));
    TRY(cudaq_dispatcher_set_control(dispatcher, &control->shutdown, &control->processed));
    TRY(cudaq_dispatcher_start(dispatcher));
    control_system_kernel<<<1, 1, 0, stream>>>(device_ring<>(context.ring, kSlots, kSlotSize), control);
    TRY(cudaGetLastError());
    const bool ended = example::eventually([&] { return cudaStreamQuery(stream) != cudaErrorNotReady; });
    TRY(ended ? cudaStreamQuery(stream) : cudaErrorLaunchTimeout);
    TRY(cudaq_dispatcher_destroy(dispatcher)); // stops it first
    TRY(cudaq_dispatch_manager_destroy(manager));
  }
  const std::uint32_t answered = control->answered, wrong = control->wrong;
  TRY(cudaq_ringbuffer_destroy(memory));
  TRY(cudaFree(transport_ctx));
  TRY(cudaFreeHost(control));
  TRY(cudaStreamDestroy(stream));
  std::printf("device_hooks: %u requests, %u answered, %u wrong\n", kRequests, answered, wrong);
  return answered == kRequests && wrong == 0 ? 0 : 1;
}
