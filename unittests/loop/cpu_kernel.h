// SPDX-License-Identifier: Apache-2.0
// The loop of the device kernels as a member of a shared ring. A CPU thread runs it.
#pragma once

#include "lib/api/manager.h"
#include "lib/shared_ring/device_member.h"
#include "unittests/loop/loop_host.h"

#include <functional>

namespace cudaq::realtime::test {

/// Does for the loop what the device back end does for a kernel on a shared ring.
class cpu_kernel {
public:
  cpu_kernel(const manager_handle &manager, const host_ring &ring, std::uint32_t first_id, bool default_owner = false,
             std::uint32_t functions = 2)
      : manager_(manager), ring_(ring), first_id_(first_id), default_owner_(default_owner), functions_(functions),
        memory_(ring_inbox::bytes(ring.shape().num_slots) / 8) {}
  ~cpu_kernel() { stop(); }
  cpu_kernel(const cpu_kernel &) = delete;
  cpu_kernel &operator=(const cpu_kernel &) = delete;

  expected<> start() {
    host_ = std::make_unique<loop_host>(ring_, 1, first_id_, functions_);
    if (prepare)
      prepare(*host_);
    ended_.store(false);
    std::shared_ptr<ring_router> router;
    if (expected<> result = manager_.get->join_ring(host_->params.ring, router); result.failed())
      return result;
    member.prepare({router, host_->index, host_->params.rules, default_owner_, memory_.data(), first_sequence});
    expected<> result = member.join({}, wait_policy, 100'000, [this] { return ended_.load(); });
    if (result.failed()) {
      manager_.get->leave_ring(host_->params.ring.rx_flags);
      return result;
    }
    host_->start_with<false>(inbox_transport<yielding_thread_group>(
        host_->params.ring, ring_inbox::in(memory_.data(), ring_.shape().num_slots), looked_, first_sequence));
    running_ = true;
    return {};
  }
  void stop() {
    if (!running_)
      return;
    member.begin_leaving();
    store_release(host_->library_word, std::uint32_t{1});
    host_->join();
    member.leave();
    manager_.get->leave_ring(host_->params.ring.rx_flags);
    responded_before_ += host_->reports[0].responded;
    running_ = false;
  }
  /// Ends the loop by the caller's shutdown flag. Nothing calls stop.
  void end_by_callers_flag() {
    store_release(host_->caller_word, 1);
    host_->join();
    ended_.store(true);
  }
  /// Responses of all runs. Called after stop.
  std::uint64_t responded() const { return responded_before_; }
  const loop_report &report() const { return host_->reports[0]; }

  device_member member;
  std::function<void(loop_host &)> prepare; ///< may change what start() has prepared: another ring, other handlers
  std::uint64_t first_sequence = 1;
  cudaq_wait_policy_t wait_policy = CUDAQ_WAIT_SPIN_YIELD;

private:
  const manager_handle &manager_;
  const host_ring &ring_;
  const std::uint32_t first_id_;
  const bool default_owner_;
  const std::uint32_t functions_;
  std::vector<std::uint64_t> memory_;
  std::uint32_t looked_[inbox_transport<yielding_thread_group>::kLooked] = {};
  std::unique_ptr<loop_host> host_;
  std::atomic<bool> ended_{false};
  bool running_ = false;
  std::uint64_t responded_before_ = 0;
};

} // namespace cudaq::realtime::test
