// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/graph/bench_graph_floor.h"

#include <atomic>
#include <cmath>
#include <cstring>
#include <cuda.h>

namespace cudaq::realtime::tools {
namespace {

constexpr std::size_t kWordsPerLine = 8;
constexpr std::uint64_t kTimedEvery = 16;
using write_value_fn = CUresult (*)(CUstream, CUdeviceptr, cuuint64_t, unsigned int);

std::uint64_t elapsed_ns(const tick_scale &scale, std::uint64_t begin) {
  return static_cast<std::uint64_t>(std::llround(scale.ns(ticks() - begin)));
}

} // namespace

bare_graphs::bare_graphs(const graph_service_config &config)
    : config_(config), ring_(config.device, config.workers, (config.slot_bytes + 15) / 16 * 16, CUDAQ_MEMORY_MAPPED),
      graphs_(config) {
  void *block = nullptr, *device = nullptr;
  const std::size_t bytes = config.workers * kWordsPerLine * sizeof(std::uint64_t);
  require_cuda(cudaHostAlloc(&block, bytes, cudaHostAllocMapped | cudaHostAllocPortable), "cudaHostAlloc");
  std::memset(block, 0, bytes);
  done_ = static_cast<std::uint64_t *>(block);
  require_cuda(cudaHostGetDevicePointer(&device, block, 0), "cudaHostGetDevicePointer");
  done_dev_ = reinterpret_cast<std::uint64_t>(device);
  cudaDriverEntryPointQueryResult found{};
  require_cuda(
      cudaGetDriverEntryPointByVersion("cuStreamWriteValue64", &write_value_, 12000, cudaEnableDefault, &found),
      "cudaGetDriverEntryPointByVersion");
  if (found != cudaDriverEntryPointSuccess)
    throw gpu_error("the driver has no cuStreamWriteValue64");
  const cudaq_ringbuffer_t &ring = ring_.ring();
  for (std::uint32_t w = 0; w < config.workers; ++w) {
    streams_.push_back(std::make_unique<gpu_stream>());
    auto *const word = static_cast<std::uint64_t *>(device) + w * kWordsPerLine;
    graphs_.context(w) = {ring.rx_data + w * ring.rx_stride_sz, ring.tx_data + w * ring.tx_stride_sz, word, 0,
                          ring.tx_stride_sz};
  }
}

bare_graphs::~bare_graphs() {
  for (const auto &s : streams_)
    if (!s->wait(static_cast<std::uint64_t>(5e9)))
      abandon("a graph does not end");
  cudaFreeHost(done_);
}

void bare_graphs::launch(std::uint32_t w, std::uint64_t launch_number) {
  const cudaStream_t stream = streams_[w]->get();
  const cudaq_ringbuffer_t &ring = ring_.ring();
  if (config_.staged)
    require_cuda(cudaMemcpyAsync(graphs_.staged(w), ring.rx_data + w * ring.rx_stride_sz, graphs_.slot_bytes(),
                                 cudaMemcpyHostToDevice, stream),
                 "cudaMemcpyAsync");
  if (config_.completion == CUDAQ_WORKER_GRAPH_PUBLISHES)
    graphs_.context(w).tx_flag_value = launch_number;
  require_cuda(cudaGraphLaunch(graphs_.exec(w), stream), "cudaGraphLaunch");
  if (config_.completion == CUDAQ_WORKER_LIBRARY_PUBLISHES &&
      reinterpret_cast<write_value_fn>(write_value_)(stream, done_dev_ + w * kWordsPerLine * sizeof(std::uint64_t),
                                                     launch_number, 0) != CUDA_SUCCESS)
    throw gpu_error("cuStreamWriteValue64 failed");
}

bool bare_graphs::ended(std::uint32_t w, std::uint64_t launch_number) const {
  return std::atomic_ref<std::uint64_t>(done_[w * kWordsPerLine]).load(std::memory_order_acquire) == launch_number;
}

loop_result bare_graphs::one_by_one(const client_config &config, const tick_scale &scale) {
  loop_result result;
  poll_deadline deadline("bare graph: it does not end", config.timeout_ns, config.share_core);
  std::vector<std::uint64_t> payload(config.payload_bytes / sizeof(std::uint64_t));
  std::uint64_t begin = now_ns();
  for (std::uint64_t n = 0; n < config.warm_up + config.exchanges; ++n) {
    if (n == config.warm_up)
      begin = now_ns();
    for (std::size_t i = 0; i < payload.size(); ++i)
      payload[i] = random_word(config.seed, n * payload.size() + i);
    require_ok(cudaq_host_ringbuffer_write_rpc_request(&ring_.ring(), 0, kGraphFunctionId, payload.data(),
                                                       static_cast<std::uint32_t>(config.payload_bytes),
                                                       static_cast<std::uint32_t>(n), n),
               "cudaq_host_ringbuffer_write_rpc_request");
    const std::uint64_t launch_number = ++launches_;
    deadline.restart();
    const std::uint64_t t0 = ticks();
    launch(0, launch_number);
    while (!ended(0, launch_number))
      deadline.check();
    const std::uint64_t ns = elapsed_ns(scale, t0);
    if (n >= config.warm_up)
      result.per_exchange.record(ns);
    cudaq_rpc_response_t header;
    const void *reply = nullptr;
    const bool right = cudaq_host_ringbuffer_read_rpc_response(&ring_.ring(), 0, &header, &reply) == CUDAQ_OK &&
                       header.status == CUDAQ_RPC_OK && header.request_id == static_cast<std::uint32_t>(n) &&
                       header.result_len == config.payload_bytes &&
                       std::memcmp(reply, payload.data(), config.payload_bytes) == 0;
    result.wrong += right ? 0 : 1;
  }
  result.wall_ns = now_ns() - begin;
  result.exchanges = config.exchanges;
  return result;
}

loop_result bare_graphs::all_streams(const client_config &config, const tick_scale &scale) {
  struct instance {
    std::uint64_t launch_number = 0, n = 0, begin_ticks = 0;
  };
  loop_result result;
  poll_deadline deadline("bare graphs: none ends", config.timeout_ns, config.share_core);
  std::vector<instance> all(config_.workers);
  const std::vector<std::uint64_t> payload(config.payload_bytes / sizeof(std::uint64_t), config.seed);
  for (std::uint32_t w = 0; w < config_.workers; ++w)
    require_ok(cudaq_host_ringbuffer_write_rpc_request(&ring_.ring(), w, kGraphFunctionId, payload.data(),
                                                       static_cast<std::uint32_t>(config.payload_bytes), w, w),
               "cudaq_host_ringbuffer_write_rpc_request");
  const std::uint64_t total = config.warm_up + config.exchanges;
  std::uint64_t begin = now_ns(), sent = 0, seen = 0;
  for (std::uint32_t w = 0; seen < total; w = w + 1 == config_.workers ? 0 : w + 1) {
    instance &i = all[w];
    if (i.launch_number != 0) {
      if (!ended(w, i.launch_number)) {
        deadline.check();
        continue;
      }
      if (i.n >= config.warm_up && i.n % kTimedEvery == 0)
        result.per_exchange.record(elapsed_ns(scale, i.begin_ticks));
      i.launch_number = 0;
      deadline.restart();
      if (++seen == config.warm_up)
        begin = now_ns();
    }
    if (sent == total)
      continue;
    i = {++launches_, sent++, ticks()};
    launch(w, i.launch_number);
  }
  result.wall_ns = now_ns() - begin;
  result.exchanges = config.exchanges;
  for (std::uint32_t w = 0; w < config_.workers && w < total; ++w) {
    cudaq_rpc_response_t header;
    const void *reply = nullptr;
    result.wrong += cudaq_host_ringbuffer_read_rpc_response(&ring_.ring(), w, &header, &reply) == CUDAQ_OK &&
                            header.request_id == w && std::memcmp(reply, payload.data(), config.payload_bytes) == 0
                        ? 0
                        : 1;
  }
  return result;
}

} // namespace cudaq::realtime::tools
