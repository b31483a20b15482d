// SPDX-License-Identifier: Apache-2.0
// A dispatcher on a device as a member of a shared ring. Its kernel cannot take part in routing, because there is no
// atomic read-modify-write between device and host. A host thread of the member takes part instead, and hands requests
// to the kernel through an inbox. The thread runs no handlers, so requests for the device never wait for a handler of a
// host dispatcher.
//
// thread "cudaq-route", one per member
//   started by  join().
//   owns        Routing in its own turns, while it holds the router role (ring_router.h). Its clock and turn counts.
//   waits       idle_strategy after a turn that routed nothing, with the wait policy given to join().
//   ends        When leave() sets stop_, or when ended() returns true: it then leaves the ring by itself.
//               leave() joins it, without a deadline, after the end of the kernel.
#pragma once

#include "cudaq/realtime/detail/ring/function_index_builder.h"
#include "cudaq/realtime/detail/ring/ring_inbox.h"
#include "lib/base/runner.h"
#include "lib/shared_ring/ring_router.h"

namespace cudaq::realtime::detail {

class device_member final : public ring_member {
public:
  /// What a run needs.
  struct setup {
    std::shared_ptr<ring_router> router;
    function_index index;
    judge_rules rules;
    bool default_owner = false;
    void *inbox_memory = nullptr;     ///< ring_inbox::bytes; mapped for the device; stays valid until the next prepare
    std::uint64_t first_sequence = 1; ///< of the first request; the device expects it
  };
  device_member() = default;
  ~device_member() { leave(); }
  device_member(const device_member &) = delete;
  device_member &operator=(const device_member &) = delete;
  /// Prepares a run with an empty inbox. Not during a run.
  void prepare(setup s);

  /// Starts the thread and joins the ring. The thread calls `ended` from time to time. `ended` returns true only if the
  /// kernel certainly serves no more requests; the thread then leaves the ring. On failure no thread runs and the ring
  /// is not joined.
  expected<> join(const thread_placement &placement, cudaq_wait_policy_t policy, std::uint64_t block_interval_ns,
                  std::function<bool()> ended);
  /// No more requests are handed to the kernel. The kernel may run on until its shutdown word is set.
  void begin_leaving();
  /// Ends the thread and leaves the ring: the requests that the kernel did not answer go back to the router. Only after
  /// the end of the kernel. May be called again.
  void leave();
  /// Releases the reference to the ring of the last run.
  void release_ring() { setup_.router.reset(); }

  /// The counters of routing: dropped requests, unexpected flag values, busy tx flags, cursor jumps.
  const thread_counters &counts() const { return counts_; }

  // --- ring_member, called under the router role ---
  const function_index_view &index() const override { return index_; }
  const judge_rules &rules() const override { return setup_.rules; }
  bool is_default_owner() const override { return setup_.default_owner; }
  void accept(std::uint32_t slot, const request &r, const judgement &what) override;
  bool has_answered(std::uint32_t slot) const override { return inbox_.answered(slot) == given_[slot]; }
  bool was_given_jobs() const override { return was_given_jobs_; }
  thread_counters &shared_counters() override { return counts_; }

private:
  static constexpr std::uint32_t kBatch = 32;        ///< slots per turn at most
  static constexpr std::uint32_t kResyncTurns = 256; ///< empty turns between two looks over the ring, unless asleep
  static constexpr std::uint32_t kQueryTurns = 16;   ///< turns between looks at the clock, unless asleep
  static constexpr auto kQueryInterval = std::chrono::milliseconds(1); ///< between two calls of `ended`

  std::uint32_t turn();
  bool stop_seen();
  bool asleep() const { return may_sleep_ && empty_turns_ >= idle_strategy::kSpins; }

  setup setup_;
  function_index_view index_;
  ring_inbox inbox_;
  thread_counters counts_{true};
  loop_thread thread_;
  shared_word<std::uint32_t> joined_; ///< 1: the ring is joined; the thread routes only then
  shared_word<std::uint32_t> stop_;

  // Under the router role.
  std::vector<std::uint64_t> given_; ///< by slot: sequence of the last request handed over in it
  std::uint64_t sequence_ = 1;       ///< of the next request
  std::uint32_t position_ = 0;
  bool was_given_jobs_ = false;

  // Only for the thread.
  std::function<bool()> ended_;
  steady_clock::time_point last_query_;
  std::uint32_t empty_turns_ = 0, turns_ = 0;
  bool may_sleep_ = false;
};

} // namespace cudaq::realtime::detail
