// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/device/bench_session.h"

#include "tools/common/machine.h"

#include <algorithm>

namespace cudaq::realtime::tools {
namespace {

constexpr std::size_t kControlBytes = 512; ///< stop word and report, each in cache lines of its own
constexpr std::size_t kReportAt = 256;
constexpr std::size_t kFewestCoresToPin = 4;
constexpr unsigned kMaxAnyOrderThreads = 12;

} // namespace

stop_signal::stop_signal() {
  void *memory = nullptr;
  require_cuda(cudaHostAlloc(&memory, sizeof *ones_, cudaHostAllocDefault), "cudaHostAlloc");
  ones_ = static_cast<std::uint32_t *>(memory);
  *ones_ = UINT32_MAX;
}
stop_signal::~stop_signal() { cudaFreeHost(ones_); }

void stop_signal::send(std::uint32_t *word_dev, std::uint64_t limit_ns) const {
  require_cuda(cudaMemcpyAsync(word_dev, ones_, sizeof *ones_, cudaMemcpyHostToDevice, stream_.get()),
               "stopping a kernel");
  if (!stream_.wait(limit_ns))
    abandon("a copy to the GPU did not end");
}

controlled_kernel::controlled_kernel(const stop_signal &signal, std::uint64_t timeout_ns)
    : signal_(signal), timeout_ns_(timeout_ns), memory_(kControlBytes, stream_) {}

controlled_kernel::~controlled_kernel() {
  try {
    if (running_)
      stop();
  } catch (const std::exception &e) {
    abandon(e.what());
  }
}

kernel_control controlled_kernel::prepare() {
  require_cuda(cudaMemsetAsync(memory_.as<void>(), 0, kControlBytes, stream_.get()), "clearing a stop word");
  require_cuda(cudaStreamSynchronize(stream_.get()), "clearing a stop word");
  running_ = true;
  return {memory_.as<std::uint32_t>(), reinterpret_cast<kernel_report *>(memory_.as<std::uint8_t>() + kReportAt),
          // Longer than the host waits: the host ends the run first, and reports the reason.
          2 * timeout_ns_};
}

void controlled_kernel::start_floor(const floor_plan &plan, const bare_ring &ring) {
  ring.reset(stream_);
  const kernel_control control = prepare();
  require_cuda(launch_floor(plan, ring.ring(), control, stream_.get()), "launching a floor kernel");
}

void controlled_kernel::start_producer(const producer_plan &plan, const cudaq_ringbuffer_t &ring) {
  const kernel_control control = prepare();
  require_cuda(launch_producer(plan, ring, control, stream_.get()), "launching the producer kernel");
}

kernel_report controlled_kernel::stop() {
  signal_.send(memory_.as<std::uint32_t>(), timeout_ns_);
  if (!stream_.wait(timeout_ns_))
    abandon("a floor kernel did not end after its stop word was set");
  running_ = false;
  kernel_report report{};
  require_cuda(cudaMemcpyAsync(&report, memory_.as<std::uint8_t>() + kReportAt, sizeof report, cudaMemcpyDeviceToHost,
                               stream_.get()),
               "reading a kernel's report");
  if (!stream_.wait(timeout_ns_))
    abandon("a copy from the GPU did not end");
  return report;
}

bench_session::bench_session(const bench_options &options)
    : options_(options), timeout_ns_(static_cast<std::uint64_t>(options.timeout_s * 1e9)), seed_(options.seed),
      cores_(options.cores), server_(signal_, timeout_ns_), producer_(signal_, timeout_ns_) {
  require_cuda(preload_bench_floors(), "loading the floor kernels");
  require_cuda(preload_bench_handlers(), "loading the handlers");
  const std::vector<int> allowed = allowed_cores();
  allowed_ = allowed.size();
  if (cores_.empty() && allowed_ >= kFewestCoresToPin) // without the first core: it serves the interrupts
    cores_.assign(allowed.begin() + 1, allowed.end());
  any_order_threads_ =
      std::clamp(static_cast<unsigned>(cores_.empty() ? allowed_ : cores_.size()), 1u, kMaxAnyOrderThreads);
  if (!cores_.empty())
    if (const std::string why = pin_this_thread(cores_.front()); !why.empty())
      throw usage_error("--cores: cannot pin the measuring thread to " + why);
}

exchange_config bench_session::client(std::uint32_t slots, unsigned threads) {
  const round_size size = size_of_round(options_, slots);
  exchange_config c;
  c.exchanges = size.exchanges;
  c.warm_up = size.warm_up;
  c.seed = next_seed();
  c.timeout_ns = timeout_ns_;
  c.share_core = threads > (cores_.empty() ? allowed_ : cores_.size());
  return c;
}

} // namespace cudaq::realtime::tools
