// SPDX-License-Identifier: Apache-2.0
// An instance of the ucx provider: a node that serves requests of routers. The unified shape only: the loop of the
// dispatcher moves UCX's data itself, in rx_poll, so there is one thread, and slots become free in any order.
#pragma once

#include "cudaq/realtime/daemon/bridge/bridge_types.h"
#include "lib/base/runner.h"
#include "lib/transport/route/node_sessions.h"
#include "lib/transport/ucx/ucx_options.h"
#include "lib/transport/ucx/ucx_worker.h"

#include <memory>
#include <mutex>
#include <string>

namespace cudaq::realtime::detail {

class ucx_node final : private node_port {
public:
  ucx_node() = default;
  ~ucx_node() override;

  expected<> open(const ucx_options &options);
  [[nodiscard]] const ucx_options &options() const noexcept { return options_; }
  [[nodiscard]] const std::string &endpoint() const noexcept { return endpoint_; }
  [[nodiscard]] cudaq_cpu_dataplane_t dataplane() noexcept;

  // By the loop's thread; disconnect may run on another one meanwhile.
  cudaq_rx_status_t poll(std::uint32_t &slot);
  expected<> publish(std::uint32_t slot);
  void launch();
  /// Answers the requests that were not taken, says bye, and sends waiting messages. From now on poll returns no
  /// request.
  void disconnect();

private:
  void send(std::uint64_t connection, const route_header &header, std::span<const std::uint8_t> payload) override;
  void close(std::uint64_t connection) override { worker_.close(connection); }
  node_sessions::time read_clock();
  void move(bool with_clock);

  ucx_options options_;
  std::string endpoint_;
  cudaq_ringbuffer_memory_t *memory_ = nullptr;
  cudaq_ringbuffer_t ring_{};
  std::mutex mutex_;
  shared_word<std::uint32_t> stopped_; ///< poll leaves the mutex to disconnect
  bool bye_sent_ = false;
  std::uint32_t empty_polls_ = 0;
  node_sessions::time now_{};
  std::unique_ptr<node_sessions> sessions_;
  ucx_worker worker_; ///< destroyed before the sessions
};

} // namespace cudaq::realtime::detail
