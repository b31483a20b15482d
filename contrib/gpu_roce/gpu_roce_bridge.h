// SPDX-License-Identifier: Apache-2.0
// An instance of the gpu-roce provider: the order of its calls, the exchange of numbers, the monitor thread.
//
// Without --exchange-qp, the link to the sensor bridge starts in open. With it, the queue pair of the peer is not known
// then: the link starts in the first call that needs it, connect or ring or unified, after a peer has sent its numbers.
#pragma once

#include "contrib/gpu_roce/peer_exchange.h"
#include "contrib/gpu_roce/sensor_link.h"
#include "cudaq/realtime/daemon/bridge/bridge_types.h"

#include <mutex>

namespace cudaq::realtime::detail {

class gpu_roce_bridge {
public:
  explicit gpu_roce_bridge(gpu_roce_options options) : options_(std::move(options)) {}

  expected<> open();
  expected<> ring(cudaq_ringbuffer_t &out);
  expected<> unified(cudaq_unified_dispatch_ctx_t &out);
  /// Starts the link, if open has not, and the monitor thread; returns when that thread runs.
  expected<> connect();
  /// Verifies that the monitor thread still runs.
  expected<> launch();
  /// Ends the monitor thread. While connect runs on another thread: only cancels it.
  expected<> disconnect();
  /// Disconnects and ends the link. The object may be destroyed after success. CUDAQ_ERR_TIMEOUT: a kernel of the
  /// sensor bridge still runs; the call may be repeated.
  expected<> close();

  const std::string &endpoint() const { return endpoint_; }
  const gpu_roce_options &options() const { return options_; }

private:
  enum class phase { created, connected, launched, disconnected };

  expected<> start_link();
  expected<> start_monitor();
  expected<> stop_monitor();
  /// Starts the link for a context of this kind.
  expected<> prepare(cudaq_realtime_transport_context_t kind);

  const gpu_roce_options options_;
  std::string endpoint_;
  peer_exchange exchange_;
  std::unique_ptr<sensor_link> link_;

  std::mutex mutex_; ///< of the next three
  phase phase_ = phase::created;
  bool connecting_ = false;
  bool cancelled_ = false;

  shared_word<std::uint32_t> monitor_runs_{0};
  std::string monitor_failure_; ///< written by the monitor thread before it ends
  bool monitor_started_ = false, monitor_closed_ = false, link_ends_ = false;
  loop_thread monitor_, end_;
};

} // namespace cudaq::realtime::detail
