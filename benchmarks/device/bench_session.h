// SPDX-License-Identifier: Apache-2.0
// What all cases of `device` and `graph` share: streams, stop words, cores, and how a floor kernel is
// started and stopped.
#pragma once

#include "benchmarks/common/bench_plan.h"
#include "benchmarks/device/bench_client.h"
#include "benchmarks/device/bench_gpu.h"
#include "tools/services/device_service.h"

#include <cstdint>
#include <vector>

namespace cudaq::realtime::tools {

/// Sets the stop word of a running kernel: copies a 4-byte word of ones from pinned memory, on a stream of its own. A
/// copy needs no kernel; a second kernel might wait for the running one. send() abandons the process if the copy does
/// not end within the limit.
class stop_signal {
public:
  stop_signal();
  ~stop_signal();
  stop_signal(const stop_signal &) = delete;
  stop_signal &operator=(const stop_signal &) = delete;
  void send(std::uint32_t *word_dev, std::uint64_t limit_ns) const;

private:
  gpu_stream stream_;
  std::uint32_t *ones_ = nullptr;
};

/// Runs one floor kernel or producer kernel at a time. Owns its stream, its stop word and its report.
class controlled_kernel {
public:
  controlled_kernel(const stop_signal &signal, std::uint64_t timeout_ns);
  ~controlled_kernel();
  controlled_kernel(const controlled_kernel &) = delete;
  controlled_kernel &operator=(const controlled_kernel &) = delete;

  /// Clears the ring's flags before the launch.
  void start_floor(const floor_plan &plan, const bare_ring &ring);
  void start_producer(const producer_plan &plan, const cudaq_ringbuffer_t &ring);
  /// Waits until the kernel ends by itself. Returns false if it has not ended within the limit.
  [[nodiscard]] bool wait(std::uint64_t limit_ns) const { return stream_.wait(limit_ns); }
  /// Ends the kernel if it still runs, and returns its report. If the kernel does not end within the timeout, the
  /// process is abandoned.
  kernel_report stop();
  [[nodiscard]] const gpu_stream &stream() const noexcept { return stream_; }

private:
  kernel_control prepare();

  const stop_signal &signal_;
  std::uint64_t timeout_ns_;
  gpu_stream stream_;
  gpu_memory memory_;
  bool running_ = false;
};

/// Options, clocks, cores and kernels of one run. The constructor pins the calling thread, which is the measuring
/// thread, to the first core.
class bench_session {
public:
  explicit bench_session(const bench_options &options);

  [[nodiscard]] const bench_options &options() const noexcept { return options_; }
  /// Replaces the options, for other numbers of exchanges and rounds.
  void use(const bench_options &options) { options_ = options; }
  [[nodiscard]] const tick_scale &scale() const noexcept { return scale_; }
  [[nodiscard]] std::uint64_t timeout_ns() const noexcept { return timeout_ns_; }
  [[nodiscard]] controlled_kernel &server() noexcept { return server_; }
  [[nodiscard]] controlled_kernel &producer() noexcept { return producer_; }
  /// Cores of the client threads; the measuring thread is on the first one. Empty: there are too few cores to pin.
  [[nodiscard]] const std::vector<int> &cores() const noexcept { return cores_; }
  [[nodiscard]] unsigned any_order_threads() const noexcept { return any_order_threads_; }
  /// A seed that no earlier round had.
  std::uint64_t next_seed() noexcept { return seed_ += 64; }
  /// Configuration of a client for one round on a ring of `slots` slots. `threads`: CPU threads that are busy during
  /// the round. The caller sets payload, function id and rule.
  exchange_config client(std::uint32_t slots, unsigned threads);

  double measured_clock_mhz = 0;

private:
  bench_options options_;
  std::uint64_t timeout_ns_;
  std::uint64_t seed_;
  tick_scale scale_;
  std::vector<int> cores_;
  unsigned any_order_threads_ = 1;
  std::size_t allowed_ = 1;
  stop_signal signal_;
  controlled_kernel server_;
  controlled_kernel producer_;
};

} // namespace cudaq::realtime::tools
