// SPDX-License-Identifier: Apache-2.0
// Three kernels run at the same time on one GPU: RX writes requests, the dispatch kernel serves them, TX collects the
// answers. RX and TX take the place of the kernels of a network interface. The ring is in device memory; requests and
// answers do not pass through the CPU.
#include "device_session.h"

#include <cudaq/realtime/daemon/dispatcher/device_arguments.h>
#include <cudaq/realtime/daemon/dispatcher/device_function_table.cuh>
#include <cudaq/realtime/daemon/dispatcher/device_ring.cuh>
#include <cudaq/realtime/daemon/dispatcher/dispatch_kernel.cuh>

using namespace cudaq::realtime;

constexpr std::uint32_t kSum = fnv1a_hash("sum"), kWords = 64, kRequests = 100000;
constexpr std::uint64_t kDeadlineNs = 15'000'000'000;
using nic_ring = device_ring<one_warp, cuda::thread_scope_device>; // all sides are on this device

struct traffic_report {
  std::uint32_t sent, answered, wrong;
};

CUDAQ_REALTIME_HOST_DEVICE constexpr cudaq_handler_schema_t sum_schema() {
  return make_schema({make_type_desc(TYPE_ARRAY_INT32, kWords)}, {make_type_desc(TYPE_INT32, 1)});
}

__device__ int sum_rpc(const void *input, void *output, std::uint32_t arg_len, std::uint32_t max_result_len,
                       std::uint32_t *result_len) {
  constexpr cudaq_handler_schema_t schema = sum_schema();
  argument_reader arguments(schema, input, arg_len);
  result_writer results(schema, output, max_result_len);
  std::int32_t sum = 0;
  for (std::uint32_t k = 0; k < kWords; ++k)
    sum += arguments.get<std::int32_t>(0, k);
  results.set(0, sum);
  return arguments.ok() && results.finish(result_len) ? 0 : 1;
}

__device__ std::int32_t word_of(std::uint32_t request, std::uint32_t k) {
  return static_cast<std::int32_t>((request + k) % 1000003u);
}

/// One warp fills the slots in ring order.
__global__ void rx_kernel(nic_ring ring, traffic_report *report) {
  __shared__ alignas(8) std::int32_t payload[kWords];
  const device_deadline deadline(kDeadlineNs);
  for (std::uint32_t n = 0, slot = 0; n < kRequests; ++n, slot = ring.next(slot)) {
    for (std::uint32_t k = threadIdx.x; k < kWords; k += 32)
      payload[k] = word_of(n, k);
    __syncwarp();
    if (!ring.wait_available(slot, deadline) || !ring.write_request(slot, kSum, payload, sizeof(payload), n))
      return;
    ring.signal(slot);
    if (threadIdx.x == 0)
      report->sent = n + 1;
  }
}

/// One warp collects the answers in ring order and checks them.
__global__ void tx_kernel(nic_ring ring, traffic_report *report) {
  const device_deadline deadline(kDeadlineNs);
  for (std::uint32_t n = 0, slot = 0; n < kRequests; ++n, slot = ring.next(slot)) {
    if (ring.wait_answer(slot, deadline) != CUDAQ_TX_READY)
      return;
    cudaq_rpc_response_t header;
    const bool framed = ring.read_response(slot, header);
    const auto result = *reinterpret_cast<const std::int32_t *>(ring.result(slot)); // aligned to 8
    std::int32_t expected = 0;
    for (std::uint32_t k = 0; k < kWords; ++k)
      expected += word_of(n, k);
    ring.clear(slot);
    if (threadIdx.x == 0) {
      report->answered = n + 1;
      if (!framed || header.status != 0 || header.request_id != n || header.result_len != 4 || result != expected)
        ++report->wrong;
    }
  }
}

static cudaError_t launch_dispatch(const cudaq_dispatch_launch_params_t *params) {
  return launch_dispatch_kernel<RegularKernel, table_handlers>(*params);
}

int main() {
  if (const int status = example::status_without_gpu())
    return status;
  traffic_report *report = nullptr;
  cudaStream_t rx_stream = nullptr, tx_stream = nullptr;
  TRY(cudaHostAlloc(reinterpret_cast<void **>(&report), sizeof(*report), cudaHostAllocMapped));
  *report = {};
  // RX and TX must not wait for each other or for the dispatch kernel. So their streams are non-blocking, and all
  // kernels are loaded before one of them runs.
  TRY(cudaStreamCreateWithFlags(&rx_stream, cudaStreamNonBlocking));
  TRY(cudaStreamCreateWithFlags(&tx_stream, cudaStreamNonBlocking));
  TRY(preload_kernels(rx_kernel, tx_kernel));
  {
    device_function_table table(rx_stream);
    if (table.add(kSum, device_handler<sum_rpc>(), sum_schema()) != cudaSuccess || table.upload() != cudaSuccess)
      example::fail("function table", table.error_text().c_str());
    constexpr example::shape shape{CUDAQ_MEMORY_DEVICE, 64, CUDAQ_RPC_HEADER_SIZE + 4 * kWords, 2};
    example::device_session session(launch_dispatch, table.view(), shape);
    const nic_ring ring(session.ring, shape.num_slots, shape.slot_size);
    tx_kernel<<<1, 32, 0, tx_stream>>>(ring, report);
    TRY(cudaGetLastError());
    rx_kernel<<<1, 32, 0, rx_stream>>>(ring, report);
    TRY(cudaGetLastError());
    const bool ended = example::eventually([&] {
      return cudaStreamQuery(rx_stream) != cudaErrorNotReady && cudaStreamQuery(tx_stream) != cudaErrorNotReady;
    });
    TRY(ended ? cudaStreamQuery(rx_stream) : cudaErrorLaunchTimeout);
    TRY(cudaStreamQuery(tx_stream));
  }
  const traffic_report r = *report;
  TRY(cudaFreeHost(report));
  TRY(cudaStreamDestroy(rx_stream));
  TRY(cudaStreamDestroy(tx_stream));
  std::printf("three_kernels: %u requests sent, %u answered, %u wrong\n", r.sent, r.answered, r.wrong);
  return r.sent == kRequests && r.answered == kRequests && r.wrong == 0 ? 0 : 1;
}
