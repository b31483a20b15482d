// SPDX-License-Identifier: Apache-2.0
// What a dispatch loop does besides requests: control words, counters and heartbeat, and, where requests are answered
// later, what has completed and what waits.
#pragma once

#include "cudaq/realtime/detail/loop/request_server.h"

namespace cudaq::realtime::detail {

template <class Group, class Transport, class Handlers, class Helpers, bool kAny>
class loop_control : protected request_server<Group, Transport, Handlers, Helpers> {
  using base = request_server<Group, Transport, Handlers, Helpers>;

protected:
  using base::counters_;
  using base::handlers_;
  using base::p_;
  using base::transport_;
  using typename base::message;

  CUDAQ_REALTIME_HOST_DEVICE loop_control(const dispatch_params &params, std::uint32_t number,
                                          loop_workspace &workspace, const Transport &transport,
                                          const Handlers &handlers, Helpers &helpers)
      : base(params, params.reports + number, workspace, transport, handlers, helpers),
        first_look_(number * Group::kWidth) {}

  // --- handlers that answer later: the loop goes on where another one has left it ---

  /// The loop ends: it was told to stop and, where requests are answered later, all of them are; or another loop goes
  /// on.
  CUDAQ_REALTIME_HOST_DEVICE bool ends() const {
    if constexpr (Handlers::kDefers)
      return handlers_.template execution_ends<Group>(stopped_);
    else
      return stopped_;
  }
  /// Takes requests up. Told to stop, it only waits for those that it has accepted.
  CUDAQ_REALTIME_HOST_DEVICE bool takes() const {
    if constexpr (Handlers::kDefers)
      return !stopped_ && !handlers_.gave_up();
    else
      return true;
  }
  CUDAQ_REALTIME_HOST_DEVICE void take_over() {
    polls_ = handlers_.polls();
    stopped_ = handlers_.stop_requested();
    counters_.post_relaunches();
    if (!handlers_.asks_caller()) // the caller's shutdown word may be across the bus: not in every execution
      asked_ = clock();
  }
  /// What is answered meanwhile, and what waits. What will soon be over is looked at again before the ring: that is
  /// slower.
  CUDAQ_REALTIME_HOST_DEVICE void poll_deferred() {
    Group::sync();
    if (handlers_.gave_up() && Group::lane() == 0)
      handlers_.fail_waiting([this](std::uint32_t slot) { answer_failed(slot); });
    if (Group::ballot(Group::lane() == 0 && (handlers_.anything_completed() || handlers_.anything_to_try())) == 0)
      return;
    const long long begun = Group::common_cycles();
    std::uint32_t looks = kRetryLooks;
    do {
      poll_deferred_once();
    } while (--looks != 0 && handlers_.retries_soon() && Group::common_cycles() - begun < kRetryCycles);
  }
  CUDAQ_REALTIME_HOST_DEVICE void collect_completed(bool now) {
    if (Group::ballot(Group::lane() == 0 && now && handlers_.anything_completed()) != 0)
      counters_.count_answered(handlers_.template collect<Group>());
  }
  CUDAQ_REALTIME_HOST_DEVICE void poll_deferred_once() {
    collect_completed(true);
    if (!handlers_.anything_to_try())
      return;
    Group::sync();
    if (Group::lane() == 0)
      handlers_.pump([this](std::uint32_t slot) { answer_failed(slot); });
    Group::sync();
  }
  CUDAQ_REALTIME_HOST_DEVICE void answer_failed(std::uint32_t slot) {
    const message m = transport_.of_slot(slot);
    write_response(transport_.response(m), read_header<request>(transport_.request(m)), CUDAQ_RPC_ERR_LAUNCH_FAILED, 0);
    transport_.send(m);
    counters_.count_failed(CUDAQ_RPC_ERR_LAUNCH_FAILED);
  }

  /// A thread's clock would be no measure of a turn: there, each look counts as a while.
  CUDAQ_REALTIME_HOST_DEVICE long long clock() const {
    return Group::kWidth == 1 ? static_cast<long long>(polls_) * (kIdleCycles / 8) : Group::common_cycles();
  }
  /// A clock that has stepped back counts as overdue.
  CUDAQ_REALTIME_HOST_DEVICE bool overdue(long long cycles) const {
    return static_cast<unsigned long long>(clock() - kept_) >= static_cast<unsigned long long>(cycles);
  }

  /// Away from the requests: counters, heartbeat, shutdown words.
  CUDAQ_REALTIME_HOST_DEVICE void poll_control() {
    kept_ = clock();
    counters_.post(kAny ? first_look_ : transport_.cursor(), polls_);
    const bool ask_caller = static_cast<unsigned long long>(kept_ - asked_) >=
                            kCallerCycles; // the caller's shutdown word may be across the bus
    asked_ = ask_caller ? kept_ : asked_;
    bool stop = false;
    if (Group::lane() == 0)
      stop = load_acquire(*p_.library_shutdown) != 0 || (ask_caller && load_acquire(*p_.caller_shutdown) != 0);
    stopped_ = Group::ballot(stop) != 0 || stopped_; // a stop is not taken back
  }
  /// The same between slow requests of one look. True: told to stop; what is not served yet stays in its slot.
  CUDAQ_REALTIME_HOST_DEVICE bool stop_requested() {
    if (unlikely(overdue(kBusyCycles)))
      poll_control();
    return stopped_;
  }

  const std::uint32_t first_look_; ///< ANY ordering: the first slot of this loop's share
  std::uint64_t polls_ = 0;
  bool stopped_ = false;

private:
  long long kept_ = 0, asked_ = 0; ///< clock() of the last poll_control, and of the last look at the caller's word
};

} // namespace cudaq::realtime::detail
