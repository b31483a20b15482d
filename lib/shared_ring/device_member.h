// SPDX-License-Identifier: Apache-2.0
// A dispatcher on a device as a member of a shared ring. Its kernel cannot take part in routing, since it has no
// read-modify-write with the host: so a host thread of the member does, and hands the kernel its requests through an
// inbox. The thread runs no handler. Thus requests for the device never wait for a handler of a host dispatcher.
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
    void *inbox_memory = nullptr;     ///< ring_inbox::bytes, seen by the device, kept to the next prepare
    std::uint64_t first_sequence = 1; ///< what the device is told
  };
  device_member() = default;
  ~device_member() { leave(); }
  device_member(const device_member &) = delete;
  device_member &operator=(const device_member &) = delete;
  /// Prepares a run with an empty inbox. Not while one is under way.
  void prepare(setup s);

  /// Starts the thread and joins the ring; `ended` says, on that thread and now and then, that the kernel serves no
  /// more for certain, and the ring is left then. On failure nothing runs and the ring is not joined.
  status_or_reason join(const thread_placement &placement, cudaq_wait_policy_t policy, std::uint64_t block_interval_ns,
                        std::function<bool()> ended);
  /// Nothing more is handed to the kernel, which may go on until it is told to end.
  void begin_leaving();
  /// After the end of the kernel: leaves the ring with what it did not answer. May be called again.
  void leave();
  /// Gives up the ring of the last run.
  void forget_ring() { setup_.router.reset(); }

  /// What routing has counted: requests that were disposed of, and what was remarkable about the others.
  const thread_counters &counts() const { return counts_; }

  // --- ring_member, called under the router role ---
  const function_index_view &index() const override { return index_; }
  const judge_rules &rules() const override { return setup_.rules; }
  bool is_default_owner() const override { return setup_.default_owner; }
  void accept(std::uint32_t slot, const request &r, const judgement &what) override;
  bool has_answered(std::uint32_t slot) const override { return inbox_.answered(slot) == given_[slot]; }
  thread_counters &shared_counters() override { return counts_; }

private:
  static constexpr std::uint32_t kBatch = 32;        ///< slots per turn at most
  static constexpr std::uint32_t kResyncTurns = 256; ///< empty turns between looks over the whole ring, unless asleep
  static constexpr std::uint32_t kAskTurns = 16;     ///< turns between looks at the clock, unless asleep
  static constexpr auto kAskInterval =
      std::chrono::milliseconds(1); ///< between two questions whether the kernel has ended

  std::uint32_t turn();
  bool stop_seen();
  bool asleep() const { return may_sleep_ && empty_turns_ >= idle_strategy::kSpins; }

  setup setup_;
  function_index_view index_;
  ring_inbox inbox_;
  thread_counters counts_{true};
  loop_thread thread_;
  shared_word<std::uint32_t> joined_; ///< the thread routes only from then on
  shared_word<std::uint32_t> stop_;

  // Under the router role.
  std::vector<std::uint64_t> given_; ///< by slot: sequence of the last request given in it
  std::uint64_t sequence_ = 1;       ///< of the next request
  std::uint32_t position_ = 0;

  // Of the thread.
  std::function<bool()> ended_;
  steady_clock::time_point asked_;
  std::uint32_t empty_turns_ = 0, turns_ = 0;
  bool may_sleep_ = false;
};

} // namespace cudaq::realtime::detail
