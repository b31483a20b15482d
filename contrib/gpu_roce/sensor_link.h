// SPDX-License-Identifier: Apache-2.0
// The queue pair, the pages and the kernels of the Holoscan sensor bridge: its class GpuRoceTransceiver, which does the
// work. The only file of the provider's host part that names a type of the sensor bridge is sensor_link.cpp.
#pragma once

#include "contrib/gpu_roce/gpu_roce_context.h"
#include "contrib/gpu_roce/gpu_roce_options.h"

#include <memory>

namespace hololink::operators {
class GpuRoceTransceiver;
}

namespace cudaq::realtime::detail {

class sensor_link {
public:
  sensor_link(const sensor_link &) = delete;
  sensor_link &operator=(const sensor_link &) = delete;
  /// Waits for the kernels of the sensor bridge. They look at their end only after a frame has arrived: this may take
  /// any time.
  ~sensor_link();

  /// Opens adapter and GPU, connects the queue pair to `remote_qp` of `peer_ip`, and posts the receive requests:
  /// frames that arrive from now on wait in the queue. The calls of the driver have no deadline. Leaves the current
  /// device of the thread as it is. If the sensor bridge fails half-way, its object is not destroyed: its destructor
  /// reads members that only a complete start sets.
  static expected<> open(const gpu_roce_options &options, const std::string &peer_ip, std::uint32_t remote_qp,
                         std::unique_ptr<sensor_link> &out);

  /// Launches the kernels and watches them until close. Keeps the calling thread busy. Throws what the sensor bridge
  /// throws.
  void monitor();
  /// Ends monitor. Any thread.
  void close();

  std::uint32_t queue_pair() const;
  std::uint32_t key() const;
  std::uint64_t buffer_address() const;
  /// Views of the GPU; with --cpu also of the host.
  cudaq_ringbuffer_t ring() const;
  /// With --unified.
  gpu_roce_context *context() const { return context_; }

private:
  explicit sensor_link(const gpu_roce_options &options) : options_(options) {}
  expected<> start(const std::string &peer_ip, std::uint32_t remote_qp);
  expected<> make_context();

  const gpu_roce_options options_;
  hololink::operators::GpuRoceTransceiver *transceiver_ = nullptr; ///< started
  gpu_roce_context *context_ = nullptr;
};

} // namespace cudaq::realtime::detail
