// SPDX-License-Identifier: Apache-2.0
// The threads that serve the queues of all decoders. A decoder waits for a thread in the list of ready decoders, in
// which each is at most once. Example: two decoders, one thread.
//
//   event                          ready list   decoder a: queue, scheduled   decoder b
//   a request for a                a            1, yes                        0, no
//   the thread takes a             -            1, yes                        0, no
//   requests for a and b           b            2, yes: it is not listed      1, yes
//   one request of a is answered   b, a         1, yes: to the end            1, yes
//   the thread takes b ...
#pragma once

#include "cudaq/realtime/daemon/dispatcher/host_dispatcher_types.h"

#include "lib/base/runner.h"
#include "lib/qec/decoding/qec_expected.h"

#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <vector>

namespace cudaq::qec::realtime {

class decoder_turn;

/// Threads: push by any number of threads; start and stop by one control thread.
class decoder_pool {
public:
  /// `max_decoders`: that are ever pushed. Throws std::bad_alloc.
  explicit decoder_pool(std::size_t max_decoders) : ready_(max_decoders) { sleepers_.reserve(max_decoders); }

  /// Starts this number of threads. They end after stop, when all_idle() returns true.
  expected<> start(std::uint32_t threads, cudaq_wait_policy_t wait, std::function<bool()> all_idle);
  /// False: a thread still runs at the deadline.
  bool stop(cudaq::realtime::detail::steady_clock::time_point deadline);

  /// The decoder has work and is not in the list.
  void push(decoder_turn &decoder) noexcept;
  /// At this time of the steady clock the pool calls wake() of the decoder, once. The last time that it named counts.
  void wake_at(decoder_turn &decoder, std::int64_t time_ns) noexcept;

private:
  struct sleeper {
    decoder_turn *decoder;
    std::int64_t time_ns;
  };
  static constexpr std::int64_t kNever = INT64_MAX;
  void wake_sleepers() noexcept;
  std::uint32_t turn() noexcept;
  decoder_turn *pop() noexcept;

  std::mutex mutex_; ///< protects the list: count_ decoders from ready_[first_] on, with wrap-around
  std::vector<decoder_turn *> ready_;
  std::size_t first_ = 0;
  std::vector<sleeper> sleepers_; ///< each decoder at most once; protected by mutex_
  cudaq::realtime::detail::shared_word<std::int64_t> next_wake_ns_{kNever}; ///< the least time of sleepers_
  cudaq::realtime::detail::shared_word<std::uint64_t> count_; ///< written with mutex_ held; idle threads read it alone
  cudaq::realtime::detail::shared_word<std::uint32_t> stop_requested_;
  std::function<bool()> all_idle_;
  std::deque<cudaq::realtime::detail::loop_thread> threads_;
};

} // namespace cudaq::qec::realtime
