// SPDX-License-Identifier: Apache-2.0
// What the loops of a dispatcher's kernel report: one mapped block per run, and the sums over all runs. Reading is safe
// from any thread at any time.
#pragma once

#include "cudaq/realtime/detail/kernel_abi/device_params.h"
#include "lib/api/manager.h"

namespace cudaq::realtime::detail {

class device_reports {
public:
  explicit device_reports(cudaq_dispatch_manager_t &manager) : manager_(manager) {}
  ~device_reports();
  device_reports(const device_reports &) = delete;
  device_reports &operator=(const device_reports &) = delete;

  /// Keeps the counts of the last run and provides `loops` fresh reports, with the cursor at `first_slot`. While no
  /// kernel runs.
  status_or_reason renew(std::uint32_t loops, std::uint32_t first_slot);
  /// As the current device addresses them; after renew.
  status_or_reason device_address(loop_report *&out) const;

  /// A loop of the present run is running, or has been.
  bool heard() const;
  /// Why no scheduler of graphs could go on, of the present run, or of the last one.
  cudaError_t fault() const;
  std::uint32_t cursor() const;
  void read(cudaq_dispatcher_stats_t &out) const;
  /// Requests answered or disposed of in all runs.
  std::uint64_t processed() const;
  /// Relaunches of graph schedulers with nobody there to go on.
  std::uint64_t unrelieved() const;
  /// A line for each loop that has done something in the present run.
  std::string describe_loops() const;

private:
  struct counts {
    cudaq_dispatcher_stats_t stats{};
    std::uint64_t refused = 0, unrelieved = 0;
  };
  static void add(const loop_report &from, counts &to);
  counts sum() const;

  cudaq_dispatch_manager_t &manager_;
  mutable std::mutex mutex_; ///< reading against renew
  loop_report *reports_ = nullptr;
  std::uint32_t loops_ = 0;    ///< of the present run
  std::uint32_t capacity_ = 0; ///< of the block
  counts before_;              ///< of earlier runs
};

} // namespace cudaq::realtime::detail
