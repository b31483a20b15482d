// SPDX-License-Identifier: Apache-2.0
// TEST DOUBLE of the class GpuRoceTransceiver of the Holoscan sensor bridge, and of the few CUDA calls of the provider
// gpu-roce. The script says what it does; the log has the calls that it got.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace cudaq::realtime::test {

struct gpu_roce_log {
  std::string device, peer_ip;
  unsigned port = 0, remote_qp = 0, pages = 0;
  std::uint32_t gpu = 0;
  std::size_t frame_size = 0, page_size = 0;
  bool forward = false, rx_only = false, tx_only = false, cpu = false;
  std::size_t prepared_frame_size = 0;
  std::uint32_t prepared_key = 0, prepared_threads = 0;
};

struct gpu_roce_script {
  // What fails.
  bool construct_throws = false, construct_throws_number = false, start_fails = false, start_throws = false,
       prepare_fails = false;
  bool no_gpu_queue_pair = false, fewer_pages = false;
  std::atomic<bool> monitor_throws{false};
  std::string cuda_fails; ///< the name of a function
  // What waits until it is set to false.
  std::atomic<bool> start_waits{false}, monitor_stays{false}, destroy_waits{false};
  bool integrated = false;

  // What has happened.
  gpu_roce_log last; ///< of the newest object
  std::atomic<int> constructed{0}, starts{0}, starts_under_way{0}, monitors{0}, closes{0}, destroyed{0}, cuda_blocks{0};
  std::vector<void *> not_destroyed; ///< objects, also those whose start has failed
};

inline constexpr std::uint32_t kDoubleQueuePair = 0x1c7, kDoubleKey = 7700;

/// The script of the process. `reset` begins a new one, and frees the objects that the provider has not destroyed.
__attribute__((visibility("default"))) gpu_roce_script &gpu_roce_double();
__attribute__((visibility("default"))) void gpu_roce_double_reset();

} // namespace cudaq::realtime::test
