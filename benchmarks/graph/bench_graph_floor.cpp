// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/graph/bench_graph_floor.h"

#include "tools/common/machine.h"

#include <atomic>
#include <cstring>
#include <cuda.h>
#include <exception>
#include <thread>

namespace cudaq::realtime::tools {
namespace {

constexpr std::size_t kWordsPerLine = 8;
using write_value_fn = CUresult (*)(CUstream, CUdeviceptr, cuuint64_t, unsigned int);

std::uint64_t elapsed_ns(const tick_scale &scale, std::uint64_t begin) { return scale.whole_ns(ticks() - begin); }

} // namespace

bare_graphs::bare_graphs(const graph_service_config &config, std::uint32_t per_stream)
    : config_(config), per_stream_(per_stream),
      ring_(config.device, config.workers, (config.slot_bytes + 15) / 16 * 16, CUDAQ_MEMORY_MAPPED), graphs_(config) {
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
    if (w % per_stream == 0)
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
  const cudaStream_t stream = streams_[w / per_stream_]->get();
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

loop_result bare_graphs::one_by_one(const exchange_config &config, const tick_scale &scale) {
  loop_result result;
  poll_deadline deadline("bare graph: it does not end", config.timeout_ns, config.share_core);
  const ring_port port(ring_.ring());
  checked_payload payload(config);
  std::uint64_t begin = now_ns();
  for (std::uint64_t n = 0; n < config.warm_up + config.exchanges; ++n) {
    if (n == config.warm_up)
      begin = now_ns();
    const auto w = static_cast<std::uint32_t>(n % config_.workers);
    payload.make(n);
    payload.write(port, w, n);
    const std::uint64_t launch_number = ++launches_;
    deadline.restart();
    const std::uint64_t t0 = ticks();
    launch(w, launch_number);
    while (!ended(w, launch_number))
      deadline.check();
    const std::uint64_t ns = elapsed_ns(scale, t0);
    if (n >= config.warm_up)
      result.per_exchange.record(ns);
    result.wrong += payload.read(port, w, n) && payload.is_right() ? 0 : 1;
  }
  result.wall_ns = now_ns() - begin;
  result.exchanges = config.exchanges;
  return result;
}

void bare_graphs::keep_busy(share &part, const exchange_config &config, const tick_scale &scale) {
  struct instance {
    std::uint64_t launch_number = 0, n = 0, begin_ticks = 0;
  };
  poll_deadline deadline("bare graphs: none ends", config.timeout_ns, config.share_core);
  std::vector<instance> all(part.count);
  const std::uint64_t total = part.warm_up + part.exchanges;
  std::uint64_t number = part.first_launch, sent = 0, seen = 0;
  part.begin_ns = now_ns();
  for (std::uint32_t k = 0; seen < total; k = k + 1 == part.count ? 0 : k + 1) {
    instance &i = all[k];
    if (i.launch_number != 0) {
      if (!ended(part.first + k, i.launch_number)) {
        deadline.check();
        continue;
      }
      if (i.n >= part.warm_up && i.n % kTimedEvery == 0)
        part.latency.record(elapsed_ns(scale, i.begin_ticks));
      i.launch_number = 0;
      deadline.restart();
      if (++seen == part.warm_up)
        part.begin_ns = now_ns();
    }
    if (sent == total)
      continue;
    i = {++number, sent++, ticks()};
    launch(part.first + k, i.launch_number);
  }
  part.end_ns = now_ns();
}

void bare_graphs::keep_busy_by_threads(std::vector<share> &parts, const exchange_config &config,
                                       const tick_scale &scale, const std::vector<int> &cores) {
  std::vector<std::exception_ptr> errors(parts.size());
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < parts.size(); ++t)
    threads.emplace_back([&, t] {
      try {
        if (const std::string why = pin_this_thread(cores.empty() ? -1 : cores[t % cores.size()]); !why.empty())
          throw usage_error("--cores: cannot pin a client thread to " + why);
        require_cuda(cudaSetDevice(config_.device), "cudaSetDevice");
        keep_busy(parts[t], config, scale);
      } catch (...) {
        errors[t] = std::current_exception();
      }
    });
  for (std::thread &t : threads)
    t.join();
  for (const std::exception_ptr &e : errors)
    if (e)
      std::rethrow_exception(e);
}

loop_result bare_graphs::all_graphs(const exchange_config &config, const tick_scale &scale, std::uint32_t threads,
                                    const std::vector<int> &cores) {
  const ring_port port(ring_.ring());
  checked_payload payload(config);
  for (std::uint32_t w = 0; w < config_.workers; ++w) {
    payload.make(w);
    payload.write(port, w, w);
  }
  std::vector<share> parts(threads);
  const std::uint32_t graphs_each = config_.workers / threads;
  for (std::uint32_t t = 0; t < threads; ++t) {
    parts[t] = {.first = t * graphs_each,
                .count = graphs_each,
                .warm_up = config.warm_up / threads,
                .exchanges = (config.exchanges + threads - 1) / threads,
                .first_launch = launches_};
  }
  launches_ += parts[0].warm_up + parts[0].exchanges;
  if (threads == 1)
    keep_busy(parts[0], config, scale);
  else
    keep_busy_by_threads(parts, config, scale, cores);
  loop_result result;
  double per_ns = 0; // the sum of the threads' rates: each measures from the end of its own warm-up
  for (const share &part : parts) {
    per_ns += static_cast<double>(part.exchanges) / static_cast<double>(part.end_ns - part.begin_ns);
    result.per_exchange.merge(part.latency);
    result.exchanges += part.exchanges;
  }
  result.wall_ns = static_cast<std::uint64_t>(static_cast<double>(result.exchanges) / per_ns);
  for (std::uint32_t w = 0; w < config_.workers; ++w) {
    if (w % graphs_each >= parts[0].warm_up + parts[0].exchanges)
      continue; // it was not launched
    payload.make(w);
    result.wrong += payload.read(port, w, w) && payload.is_right() ? 0 : 1;
  }
  return result;
}

} // namespace cudaq::realtime::tools
