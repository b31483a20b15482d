// SPDX-License-Identifier: Apache-2.0
// The two parts of the demo's control system: one sends shots, the other collects and checks answers.
#pragma once

#include "tools/demo/demo_pass.h"
#include "tools/ring/ring_client.h"

#include <atomic>
#include <cstdint>
#include <string>

namespace cudaq::realtime::tools {

/// The state that the two parts share. They may run on one thread or on two.
struct client_state {
  client_state(const cudaq_ringbuffer_t &ring_, std::uint32_t num_slots, const shot_plan &plan_,
               const pass_config &config_, std::uint64_t begin_ns_)
      : ring(ring_), plan(plan_), config(config_), begin_ns(begin_ns_), sent(num_slots) {}

  /// The record of a request in the trace; NULL: there is none.
  [[nodiscard]] traced_request *traced(std::uint64_t sequence) const noexcept {
    return config.trace == nullptr ? nullptr : config.trace->at(sequence);
  }

  const cudaq_ringbuffer_t &ring;
  const shot_plan &plan;
  const pass_config &config;
  const std::uint64_t begin_ns;
  sent_requests sent;
  alignas(64) std::atomic<std::uint64_t> answered{0}; ///< the collector writes it, the progress display reads it
  std::atomic<bool> done_sending{false};
  std::atomic<bool> stalled{false}; ///< set by either part; ends both
};

class shot_sender {
public:
  explicit shot_sender(client_state &state) : state_(state), producer_(state.ring, state.sent) {}

  /// Sends a shot if one is due and its slot is free. Returns true if it sent one. Sets done_sending after the last
  /// shot, and stalled if a slot stays taken for longer than the timeout.
  bool turn();
  [[nodiscard]] bool done() const noexcept { return state_.done_sending.load(std::memory_order_relaxed); }
  /// Writes the sender's counts into `result`. Call it after the sender's thread has ended.
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
  /// turn() counts and checks into `result`; no other thread may touch it until the collector's thread has ended.
  answer_collector(client_state &state, pass_result &result)
      : state_(state), result_(result), consumer_(state.ring, state.sent) {}

  /// Collects and checks all answers that are present. Returns true if there was one.
  bool turn();
  /// True after all requests are sent and all are answered.
  [[nodiscard]] bool done() const noexcept;
  /// Sets stalled if requests are outstanding and no answer came for longer than the timeout. Call it regularly while
  /// turn() returns false.
  void watch(std::uint64_t now);
  /// Writes the collector's counts into the result. Call it after the collector's thread has ended.
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
  std::uint64_t waiting_since_ns_ = 0; ///< 0: nothing is outstanding, or an answer came after the last watch()
};

} // namespace cudaq::realtime::tools
