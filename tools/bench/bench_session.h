// SPDX-License-Identifier: Apache-2.0
// What all cases of `bench device` share on the GPU: streams, stop words, and how a kernel is started, stopped and
// given up.
#pragma once

#include "tools/bench/bench_client.h"
#include "tools/bench/bench_plan.h"
#include "tools/bench/device/bench_gpu.h"
#include "tools/services/device_service.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace cudaq::realtime::tools {

/// A 4-byte word of ones in pinned memory and a stream to copy it by: beside a kernel that runs for ever nothing may
/// need a kernel of its own.
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

/// Where one floor or producer kernel runs.
class kernel_seat {
public:
  kernel_seat(const stop_signal &signal, std::uint64_t timeout_ns);
  ~kernel_seat();
  kernel_seat(const kernel_seat &) = delete;
  kernel_seat &operator=(const kernel_seat &) = delete;

  void start_floor(const floor_plan &plan, const bare_ring &ring);
  void start_producer(const producer_plan &plan, const cudaq_ringbuffer_t &ring);
  /// Waits for the kernel to end by itself.
  [[nodiscard]] bool wait(std::uint64_t limit_ns) const { return stream_.wait(limit_ns); }
  /// Ends the kernel, if it has not ended, and reads what it left. A kernel that does not end abandons the process.
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

/// Options, clocks, cores and kernel seats of one run of `bench device`.
class bench_session {
public:
  explicit bench_session(const bench_options &options);

  [[nodiscard]] const bench_options &options() const noexcept { return options_; }
  /// Other numbers of exchanges and rounds from now on.
  void use(const bench_options &options) { options_ = options; }
  [[nodiscard]] const tick_scale &scale() const noexcept { return scale_; }
  [[nodiscard]] std::uint64_t timeout_ns() const noexcept { return timeout_ns_; }
  [[nodiscard]] kernel_seat &server() noexcept { return server_; }
  [[nodiscard]] kernel_seat &producer() noexcept { return producer_; }
  /// Cores of client threads; the measuring thread is on the first. Empty: too few to pin.
  [[nodiscard]] const std::vector<int> &cores() const noexcept { return cores_; }
  [[nodiscard]] unsigned any_order_threads() const noexcept { return any_order_threads_; }
  /// A seed that no round before has had.
  std::uint64_t next_seed() noexcept { return seed_ += 64; }
  /// A client of a round of `slots` slots; the caller fills in what the requests are.
  client_config client(std::uint32_t slots, unsigned threads);

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
  kernel_seat server_;
  kernel_seat producer_;
};

} // namespace cudaq::realtime::tools
