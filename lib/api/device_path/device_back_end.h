// SPDX-License-Identifier: Apache-2.0
// The back end of the device path: streams, the device's copy of the function index, the shutdown words, and a kernel
// that the caller's launch function launches.
//
// Kernels run until they are stopped, so no call here may wait for a whole device: no legacy stream, no cudaMalloc,
// cudaFree or cudaFreeHost. A run is under way from a launch that may have succeeded until finish finds its stream
// empty. Until then no memory is freed that the kernel may touch.
//
// The only host thread of this path is the one that routes a shared ring (lib/shared_ring/device_member.h).
#pragma once

#include "cudaq/realtime/detail/kernel_abi/device_table.h"
#include "cudaq/realtime/detail/kernel_abi/launch_state.h"
#include "lib/api/back_end.h"
#include "lib/api/device_path/device_reports.h"
#include "lib/shared_ring/device_member.h"

namespace cudaq::realtime::detail {

class device_back_end final : public back_end {
public:
  device_back_end(cudaq_dispatch_manager_t &manager, const cudaq_dispatcher_config_t &config)
      : manager_(manager), config_(config), reports_(manager) {}
  ~device_back_end() override;

  expected<> check_ring(cudaq_ringbuffer_t &ring) const override;
  const char *missing_call(const wiring &w) const override;
  expected<> start(wiring &w) override;
  run_phase observe() const override;
  expected<> finish(std::uint64_t timeout_ns, steady_clock::time_point deadline) override;
  const char *caller_is_inside() const override;
  void read_stats(cudaq_dispatcher_stats_t &out) const override;
  expected<> processed(bool running, const std::uint64_t *stats, std::uint64_t &out) const override;
  std::string describe() const override;

private:
  bool unified() const { return config_.kernel_type == CUDAQ_KERNEL_UNIFIED; }
  bool cooperative() const { return config_.kernel_type == CUDAQ_KERNEL_COOPERATIVE; }
  bool launches_graphs() const { return config_.dispatch_mode == CUDAQ_DISPATCH_GRAPH_LAUNCH; }
  bool shared() const { return config_.shared_ring_mode != 0; }
  std::uint32_t blocks() const { return config_.num_blocks == 0 ? 1 : config_.num_blocks; }
  std::uint32_t threads() const { return config_.threads_per_block == 0 ? 32 : config_.threads_per_block; }

  expected<> acquire_streams();
  expected<> check_memory(const wiring &w);
  expected<> prepare(const wiring &w, cudaq_dispatch_launch_state_t &state);
  expected<> prepare_ring(const wiring &w, dispatch_params &params) const;
  expected<> prepare_words(const wiring &w);
  expected<> prepare_reports(const wiring &w, dispatch_params &params);
  expected<> prepare_grid(dispatch_params &params);
  // device_sharing.cpp: a ring that other dispatchers serve, too.
  expected<> take_ring(wiring &w);
  expected<> prepare_sharing(const wiring &w, dispatch_params &params);
  void make_placeholder_ring(const slot_ring &like, std::uint8_t *device, std::uint8_t *host);
  expected<> join_ring(const wiring &w);
  bool kernel_has_ended();
  std::uint64_t disposed_of_by_router() const { return member_.counts().dropped(); }
  std::string describe_sharing() const;
  // device_graphs.cpp: a scheduler of graphs instead of a kernel.
  expected<> prepare_graphs(const wiring &w, graph_launch_state &state);
  void take_made(const graph_launch_state &state);
  expected<> gave_up() const;
  std::string describe_graphs() const;
  std::vector<std::string> graph_names() const;
  steady_clock::time_point end_deadline(std::uint64_t timeout_ns, steady_clock::time_point deadline) const;
  std::string late_graph() const;
  expected<> launch(const wiring &w, cudaq_dispatch_launch_state_t &state);
  cudaError_t call_launch_fn(const wiring &w, cudaq_dispatch_launch_state_t &state);
  expected<> end_failed_launch(reason why);
  expected<> prove_running(const cudaq_dispatch_launch_state_t &state);
  expected<> copy_word(void *to, const void *from, std::size_t bytes) const;
  expected<> set_caller_flag(int value);
  expected<> raise_shutdown();
  bool end_kernel(steady_clock::time_point deadline, expected<> &result);
  cudaError_t stream_state(cudaStream_t stream) const;
  void release_ring();

  cudaq_dispatch_manager_t &manager_;
  const cudaq_dispatcher_config_t config_;
  device_reports reports_;

  // Set by the first start, then constant.
  cudaStream_t kernel_stream_ = nullptr;
  cudaStream_t control_stream_ = nullptr; ///< has another priority, so it shares no hardware queue with kernels

  // Used only by the serialised calls, except where stated.
  device_table table_;
  std::uint8_t *grid_memory_ = nullptr; ///< cooperative kernels: grid_command and staging
  volatile int *caller_flag_ = nullptr;
  volatile int *caller_flag_host_ = nullptr; ///< its host address; NULL if the host cannot write it directly
  int flag_before_ = 0;                      ///< its value before start
  const volatile void *held_ring_ = nullptr;
  std::shared_ptr<ring_router> router_; ///< of the shared ring; kept until a start after a new wiring
  device_member member_;
  void *inbox_memory_ = nullptr; ///< mapped, from the manager: the inbox, then the placeholder ring
  slot_ring placeholder_ring_;   ///< an always empty ring, given to launch functions on a shared ring
  std::uint64_t last_heartbeat_ =
      0; ///< for the member's thread: the kernel's last heartbeat, and the time when it was read
  steady_clock::time_point last_heartbeat_time_;
  std::vector<graph_binding> graphs_;
  cudaq_dispatch_manager_t::spare_graphs schedulers_; ///< of the present run, or of the last one

  shared_word<std::uint32_t> under_way_;          ///< 1: a kernel was launched, and its end was not seen yet
  shared_word<std::uint64_t> stats_base_;         ///< value of the wired counter before this dispatcher counted
  shared_word<std::uint32_t> started_;            ///< 1: a start has come as far as prepare_words
  shared_word<std::uint32_t> own_kernel_;         ///< 1: the present kernel is not the library's; it counts by itself
  shared_word<const std::uint64_t *> stats_host_; ///< host address of the wired counter, NULL if there is none

  /// What describe reports; it may run at the same time as start.
  struct account {
    cudaq_dispatcher_options_t options{};
    std::optional<cudaq_ringbuffer_t> ring;
    std::uint32_t graphs = 0, schedulers = 0;
    std::vector<std::string> graph_names;
    std::string fault;
  };
  mutable std::mutex reading_;
  account account_;
};

} // namespace cudaq::realtime::detail
