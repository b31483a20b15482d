// SPDX-License-Identifier: Apache-2.0
// The two halves of the demo's control system: one sends shots, one collects and checks answers.
#pragma once

#include "tools/common/ring_client.h"
#include "tools/demo/demo_pass.h"

#include <atomic>
#include <cstdint>
#include <string>

namespace cudaq::realtime::tools {

/// All that the halves share. They may run on one thread or on two.
struct client_state {
  client_state(const cudaq_ringbuffer_t &ring_, std::uint32_t num_slots, const shot_plan &plan_,
               const pass_config &config_, std::uint64_t begin_ns_)
      : ring(ring_), plan(plan_), config(config_), begin_ns(begin_ns_), sent(num_slots) {}

  const cudaq_ringbuffer_t &ring;
  const shot_plan &plan;
  const pass_config &config;
  const std::uint64_t begin_ns;
  sent_requests sent;
  alignas(64) std::atomic<std::uint64_t> answered{0}; ///< for the progress display
  std::atomic<bool> done_sending{false};
  std::atomic<bool> stalled{false}; ///< set by either half; ends both
};

class shot_sender {
public:
  explicit shot_sender(client_state &state) : state_(state), producer_(state.ring, state.sent) {}

  /// Sends a shot if one is due and its slot is free; true when one went out. Raises done_sending after the last one,
  /// and stalled when a slot stays taken beyond the timeout.
  bool turn();
  [[nodiscard]] bool done() const noexcept { return state_.done_sending.load(std::memory_order_relaxed); }
  /// Adds the sender's counts.
  void report(pass_result &result) const;

private:
  [[nodiscard]] bool more_to_send(std::uint64_t now) const;
  void wait_for_slot(std::uint64_t now);

  client_state &state_;
  ring_producer producer_;
  std::uint64_t blocked_since_ns_ = 0; ///< 0: not blocked
  std::uint64_t stalls_ = 0;
  std::uint64_t stalled_ns_ = 0;
};

class answer_collector {
public:
  /// Writes what it sees into `result` as it goes; nobody else may touch it meanwhile.
  answer_collector(client_state &state, pass_result &result)
      : state_(state), result_(result), consumer_(state.ring, state.sent) {}

  /// Collects and checks all answers that are there; true when there was one.
  bool turn();
  /// Every request sent, and every one answered.
  [[nodiscard]] bool done() const noexcept;
  /// Raises stalled if requests are out and nothing came for too long. Call now and then while turn() finds nothing.
  void watch(std::uint64_t now);
  void report() const;
  [[nodiscard]] const ring_consumer &consumer() const noexcept { return consumer_; }

private:
  void check(const answer &a);
  void check_correction(const answer &a);
  void note(const answer &a, const std::string &what);

  client_state &state_;
  pass_result &result_;
  ring_consumer consumer_;
  std::uint64_t last_answer_ns_ = 0;
  std::uint64_t waiting_since_ns_ = 0; ///< 0: nothing outstanding, or an answer came since the last watch
};

} // namespace cudaq::realtime::tools
