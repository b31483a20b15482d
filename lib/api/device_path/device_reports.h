// SPDX-License-Identifier: Apache-2.0
// The reports of the loops of a dispatcher's kernel: a mapped block with one report per loop, and the sums over all
// runs. Any thread may read at any time.
#pragma once

#include "cudaq/realtime/detail/kernel_abi/device_params.h"
#include "lib/api/manager.h"
#include "lib/kernel_abi/graph_params.h"

namespace cudaq::realtime::detail {

class device_reports {
public:
  explicit device_reports(cudaq_dispatch_manager_t &manager) : manager_(manager) {}
  ~device_reports();
  device_reports(const device_reports &) = delete;
  device_reports &operator=(const device_reports &) = delete;

  /// Adds the counts of the last run to the sums and provides `loops` fresh reports with the cursor at `first_slot`.
  /// Not while a kernel runs.
  expected<> renew(std::uint32_t loops, std::uint32_t first_slot);
  /// The address of the reports on the current device. Only after renew.
  expected<> device_address(loop_report *&out) const;

  /// True if the first loop of the present run has posted a heartbeat.
  bool has_heartbeat() const;
  /// Why no graph scheduler could continue, in the present or the last run. cudaSuccess: no such fault.
  cudaError_t fault() const;
  std::uint32_t cursor() const;
  void read(cudaq_dispatcher_stats_t &out) const;
  /// Requests answered or dropped in all runs.
  std::uint64_t processed() const;
  /// The report of the scheduler of graphs in the present or the last run. On the device it lies after the reports of
  /// the loops.
  graph_report graphs() const;
  /// Relaunches of graph schedulers that found no successor.
  std::uint64_t unrelieved() const;
  /// Text for dump_state: a line for loop 0 and for each loop that has taken a request in the present run; 64 at most.
  std::string describe_loops() const;

private:
  struct counts {
    cudaq_dispatcher_stats_t stats{};
    std::uint64_t refused = 0, unrelieved = 0;
  };
  static void add(const loop_report &from, counts &to);
  counts sum() const;

  cudaq_dispatch_manager_t &manager_;
  mutable std::mutex mutex_; ///< readers and renew exclude each other
  loop_report *reports_ = nullptr;
  std::uint32_t loops_ = 0;    ///< of the present run
  std::uint32_t capacity_ = 0; ///< of the block
  counts before_;              ///< of earlier runs
};

} // namespace cudaq::realtime::detail
