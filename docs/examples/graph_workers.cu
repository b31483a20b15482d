// SPDX-License-Identifier: Apache-2.0
// A handler that is a CUDA graph, launched by the host dispatcher. There are four workers, each with a graph of its
// own. A graph adds the words of a request and publishes the answer.
#include "device_session.h"

#include <cuda/atomic>
#include <cudaq/realtime/daemon/dispatcher/dispatch_kernel_launch.h>
#include <cudaq/realtime/daemon/dispatcher/graph_capture.h>
#include <cudaq/realtime/daemon/dispatcher/host_dispatcher.h>

using namespace cudaq::realtime;

constexpr std::uint32_t kSum = fnv1a_hash("sum"), kWorkers = 4, kSlots = 16;

// One warp. `io` is in mapped memory; the dispatcher writes it before each launch.
__global__ void sum_kernel(const GraphIOContext *io) {
  const auto *slot = static_cast<const std::uint8_t *>(io->rx_slot);
  if (slot == nullptr) // the warm-up run of capture_graph
    return;
  const auto *request = reinterpret_cast<const RPCHeader *>(slot);
  const auto *words = reinterpret_cast<const std::uint32_t *>(slot + CUDAQ_RPC_HEADER_SIZE);
  std::uint32_t sum = 0;
  for (std::uint32_t i = threadIdx.x; i < request->arg_len / 4; i += 32)
    sum += words[i];
  sum = __reduce_add_sync(0xffffffff, sum);
  if (threadIdx.x != 0)
    return;
  const RPCResponse response{RPC_MAGIC_RESPONSE, 0, sizeof(sum), request->request_id, request->ptp_timestamp};
  memcpy(io->tx_slot + CUDAQ_RPC_HEADER_SIZE, &sum, sizeof(sum));
  memcpy(io->tx_slot, &response, sizeof(response));
  // The flag after the frame: it publishes the answer.
  cuda::atomic_ref<std::uint64_t, cuda::thread_scope_system>(const_cast<std::uint64_t &>(*io->tx_flag))
      .store(io->tx_flag_value, cuda::memory_order_release);
}

int main() {
  if (const int status = example::status_without_gpu())
    return status;

  // The graphs, each with its own context.
  GraphIOContext *contexts = nullptr, *contexts_dev = nullptr;
  TRY(cudaHostAlloc(reinterpret_cast<void **>(&contexts), kWorkers * sizeof(GraphIOContext), cudaHostAllocMapped));
  TRY(cudaHostGetDevicePointer(reinterpret_cast<void **>(&contexts_dev), contexts, 0));
  std::vector<captured_graph> graphs(kWorkers);
  std::vector<cudaq_host_worker_t> workers(kWorkers);
  for (std::uint32_t w = 0; w < kWorkers; ++w) {
    contexts[w] = GraphIOContext{};
    const graph_capture_result captured =
        capture_graph(graphs[w], [&](cudaStream_t stream) { sum_kernel<<<1, 32, 0, stream>>>(contexts_dev + w); });
    if (!captured)
      example::fail("capture_graph", captured.text.c_str());
    workers[w].struct_size = sizeof(workers[w]);
    workers[w].graph_exec = graphs[w].exec();
    workers[w].function_id = kSum;
    workers[w].completion = CUDAQ_WORKER_GRAPH_PUBLISHES;
    workers[w].io_ctx = &contexts[w];
  }

  // The dispatcher on a ring in mapped memory.
  cudaq_ringbuffer_options_t memory_kind;
  cudaq_ringbuffer_memory_t *memory = nullptr;
  cudaq_ringbuffer_t ring{};
  TRY(cudaq_ringbuffer_options_init(&memory_kind, sizeof(memory_kind)));
  memory_kind.memory_kind = CUDAQ_MEMORY_MAPPED;
  memory_kind.num_slots = kSlots;
  memory_kind.slot_size = 256;
  TRY(cudaq_ringbuffer_create(&memory_kind, &memory, &ring));
  cudaq_dispatcher_config_t config{};
  config.num_slots = kSlots;
  config.slot_size = 256;
  config.dispatch_path = CUDAQ_DISPATCH_PATH_HOST;
  config.dispatch_mode = CUDAQ_DISPATCH_GRAPH_LAUNCH;
  cudaq_dispatch_manager_t *manager = nullptr;
  cudaq_dispatcher_t *dispatcher = nullptr;
  volatile int shutdown = 0;
  std::uint64_t processed = 0;
  TRY(cudaq_dispatch_manager_create(&manager));
  TRY(cudaq_dispatcher_create(manager, &config, &dispatcher));
  TRY(cudaq_dispatcher_set_ringbuffer(dispatcher, &ring));
  TRY(cudaq_dispatcher_set_control(dispatcher, &shutdown, &processed));
  TRY(cudaq_dispatcher_set_host_workers(dispatcher, workers.data(), workers.size()));
  TRY(cudaq_dispatcher_start(dispatcher));

  // The control system's side: one request at a time, in ring order.
  std::uint32_t wrong = 0;
  for (std::uint32_t n = 0; n < 1000; ++n) {
    const std::uint32_t slot = n % kSlots;
    const std::uint32_t payload[3] = {n, 2 * n, 7};
    if (!example::eventually([&] { return cudaq_host_ringbuffer_slot_available(&ring, slot) == 1; }))
      example::fail("slot", "it did not become free");
    TRY(cudaq_host_ringbuffer_write_rpc_request(&ring, slot, kSum, payload, sizeof(payload), n, 0));
    cudaq_host_ringbuffer_signal_slot(&ring, slot);
    if (!example::eventually(
            [&] { return cudaq_host_ringbuffer_poll_tx_flag(&ring, slot, nullptr) == CUDAQ_TX_READY; }))
      example::fail("request", "no answer");
    cudaq_rpc_response_t header;
    const void *result = nullptr;
    std::uint32_t sum = 0;
    TRY(cudaq_host_ringbuffer_read_rpc_response(&ring, slot, &header, &result));
    std::memcpy(&sum, result, sizeof(sum));
    wrong += header.status != 0 || header.request_id != n || sum != 3 * n + 7;
    cudaq_host_ringbuffer_clear_slot(&ring, slot);
  }

  TRY(cudaq_dispatcher_stop(dispatcher)); // after this no graph runs
  TRY(cudaq_dispatcher_destroy(dispatcher));
  TRY(cudaq_dispatch_manager_destroy(manager));
  TRY(cudaq_ringbuffer_destroy(memory));
  graphs.clear();
  TRY(cudaFreeHost(contexts));
  std::printf("1000 requests, %u wrong answers\n", wrong);
  return wrong == 0 ? 0 : 1;
}
