// SPDX-License-Identifier: Apache-2.0
#include "contrib/gpu_roce/gpu_roce_bridge.h"

#include "lib/transport/provider/provider_entries.h"

#include <arpa/inet.h>
#include <cstdio>

namespace cudaq::realtime::detail {
namespace {

std::string address_text(std::uint32_t address) {
  const in_addr network{htonl(address)};
  char text[INET_ADDRSTRLEN] = "";
  inet_ntop(AF_INET, &network, text, sizeof(text));
  return text;
}

std::uint32_t address_number(const std::string &text) {
  in_addr network{};
  return inet_pton(AF_INET, text.c_str(), &network) == 1 ? ntohl(network.s_addr) : 0;
}

expected<> cancelled_by_disconnect() { return {CUDAQ_ERR_STATE, "connect was cancelled by disconnect"}; }

} // namespace

expected<> gpu_roce_bridge::open() {
  if (!options_.exchange_qp)
    return start_link();
  if (expected<> result = exchange_.listen(options_.exchange_port); result.failed())
    return result;
  char line[128];
  std::snprintf(line, sizeof(line), "transport=gpu_roce exchange_port=%u frame_size=%u page_size=%u", exchange_.port(),
                options_.frame_size(), options_.page_size);
  endpoint_ = line + options_.ignored_words;
  return {};
}

expected<> gpu_roce_bridge::start_link() {
  if (link_)
    return {};
  std::uint32_t remote_qp = options_.remote_qp;
  std::string peer_ip = options_.peer_ip;
  if (options_.exchange_qp) {
    peer_numbers peer;
    const steady_clock::time_point deadline = steady_clock::now() + std::chrono::seconds(options_.timeout_s);
    if (expected<> result = exchange_.wait(address_number(options_.peer_ip), deadline, peer); result.failed())
      return result;
    remote_qp = peer.queue_pair;
    peer_ip = address_text(peer.address);
  }
  std::unique_ptr<sensor_link> link;
  if (expected<> result = sensor_link::open(options_, peer_ip, remote_qp, link); result.failed())
    return result;
  // The queue pair receives before the peer learns its number.
  if (options_.exchange_qp)
    if (expected<> result = exchange_.reply(link->queue_pair(), link->key()); result.failed())
      return result;
  char line[256];
  std::snprintf(line, sizeof(line),
                "transport=gpu_roce qp=0x%x rkey=%u buffer_addr=0x%llx peer_ip=%s frame_size=%u page_size=%u",
                link->queue_pair(), link->key(), static_cast<unsigned long long>(link->buffer_address()),
                peer_ip.c_str(), options_.frame_size(), options_.page_size);
  endpoint_ = line + options_.ignored_words;
  link_ = std::move(link);
  return {};
}

expected<> gpu_roce_bridge::prepare(cudaq_realtime_transport_context_t kind) {
  if (options_.forward)
    return {CUDAQ_ERR_UNSUPPORTED, "the provider was created with --forward: the GPU returns each frame, and there is "
                                   "nothing to dispatch"};
  if (expected<> result = need_shape(kind, options_.unified); result.failed())
    return result;
  if (link_ends_)
    return {CUDAQ_ERR_STATE, "destroy has been called"};
  return start_link();
}

expected<> gpu_roce_bridge::ring(cudaq_ringbuffer_t &out) {
  if (expected<> result = prepare(RING_BUFFER); result.failed())
    return result;
  out = link_->ring();
  return {};
}

expected<> gpu_roce_bridge::unified(cudaq_unified_dispatch_ctx_t &out) {
  if (expected<> result = prepare(UNIFIED); result.failed())
    return result;
  out = {};
  out.transport_ctx = link_->context();
  return {};
}

expected<> gpu_roce_bridge::start_monitor() {
  if (!monitor_started_) {
    if (expected<> result = monitor_.start("cudaq-gpu-roce", {},
                                           [this] {
                                             monitor_runs_.store(1);
                                             try {
                                               link_->monitor();
                                             } catch (const std::exception &e) {
                                               monitor_failure_ = e.what();
                                             } catch (...) {
                                               monitor_failure_ = "an exception that is not a std::exception";
                                             }
                                           });
        result.failed())
      return result;
    monitor_started_ = true;
  }
  if (!wait_until(steady_clock::now() + std::chrono::seconds(options_.timeout_s),
                  [this] { return monitor_runs_.load() != 0; }))
    return {CUDAQ_ERR_TIMEOUT, "the monitor thread did not run within --timeout"};
  return {};
}

expected<> gpu_roce_bridge::connect() {
  {
    const std::lock_guard lock(mutex_);
    if (cancelled_)
      return cancelled_by_disconnect();
    if (phase_ != phase::created || connecting_)
      return {CUDAQ_ERR_STATE, "the provider is connected: an instance connects once"};
    connecting_ = true;
  }
  expected<> result;
  try {
    result = start_link();
    if (result.ok())
      result = start_monitor();
  } catch (const std::exception &e) { // nothing may leave the block: connecting_ would stay true
    result = make_reason(CUDAQ_ERR_INTERNAL, "%s", e.what());
  } catch (...) {
    result = make_reason(CUDAQ_ERR_INTERNAL, "the sensor bridge threw an exception that is not a std::exception");
  }
  const std::lock_guard lock(mutex_);
  connecting_ = false;
  if (cancelled_) {
    phase_ = phase::disconnected;
    result = stop_monitor();
    return result.failed() ? result : cancelled_by_disconnect();
  }
  if (result.ok())
    phase_ = phase::connected;
  return result;
}

expected<> gpu_roce_bridge::launch() {
  const std::lock_guard lock(mutex_);
  if (phase_ != phase::connected)
    return {CUDAQ_ERR_STATE,
            phase_ == phase::created ? "launch before connect" : "launch is called once, after connect"};
  if (monitor_.ended())
    return make_reason(CUDAQ_ERR_INTERNAL, "the monitor of the sensor bridge has ended: %s",
                       monitor_failure_.empty() ? "without a reason" : monitor_failure_.c_str());
  phase_ = phase::launched;
  return {};
}

expected<> gpu_roce_bridge::stop_monitor() {
  if (!monitor_started_)
    return {};
  if (!monitor_closed_)
    link_->close();
  monitor_closed_ = true;
  if (!monitor_.join_until(steady_clock::now() + std::chrono::seconds(options_.end_limit_s())))
    return make_reason(CUDAQ_ERR_TIMEOUT,
                       "the monitor of the sensor bridge did not end within %u s; the call may be repeated",
                       options_.end_limit_s());
  return {};
}

expected<> gpu_roce_bridge::disconnect() {
  const std::lock_guard lock(mutex_);
  cancelled_ = true;
  exchange_.cancel();
  if (connecting_) // connect itself ends the threads that it has started
    return {};
  if (expected<> result = stop_monitor(); result.failed())
    return result;
  phase_ = phase::disconnected;
  return {};
}

expected<> gpu_roce_bridge::close() {
  if (expected<> result = disconnect(); result.failed())
    return result;
  const std::lock_guard lock(mutex_);
  if (connecting_)
    return {CUDAQ_ERR_STATE, "destroy while connect runs"};
  if (!link_ends_ && link_) {
    if (expected<> result = end_.start("cudaq-gpu-roce", {}, [this] { link_.reset(); }); result.failed())
      return result;
    link_ends_ = true;
  }
  if (!end_.join_until(steady_clock::now() + std::chrono::seconds(options_.end_limit_s())))
    return {CUDAQ_ERR_TIMEOUT,
            "a kernel of the sensor bridge still runs: it looks at its end when a frame arrives; the "
            "call may be repeated"};
  return {};
}

} // namespace cudaq::realtime::detail
