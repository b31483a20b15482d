// SPDX-License-Identifier: Apache-2.0
// The work of a dispatch loop besides requests: control words, counters and heartbeat. For handlers that answer later
// (graphs) also: completed requests, and requests that wait.
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

  /// Before the first look. False: there is nothing to serve.
  CUDAQ_REALTIME_HOST_DEVICE bool begin() {
    if constexpr (Transport::kWaits)
      if (!transport_.attached()) {
        post_fault();
        return false;
      }
    if constexpr (Handlers::kDefers)
      take_over();
    poll_control();
    return true;
  }
  /// After the last look.
  CUDAQ_REALTIME_HOST_DEVICE void end() {
    this->flush_counts();
    counters_.post(kAny ? first_look_ : transport_.cursor(), polls_);
    if constexpr (Transport::kWaits)
      post_fault();
    if constexpr (Handlers::kDefers)
      if (Group::lane() == 0)
        handlers_.note_execution(transport_.cursor(), polls_, stopped_);
  }

  // --- handlers that answer later: each execution of the loop continues where the last one ended ---

  /// True if the loop ends: a stop is requested, and all requests that are answered later are answered; or another
  /// execution continues.
  CUDAQ_REALTIME_HOST_DEVICE bool ends() const {
    if constexpr (Handlers::kDefers)
      return handlers_.template execution_ends<Group>(stopped_);
    else
      return stopped_;
  }
  /// True if the loop takes new requests. After a stop is requested it only waits for the requests that it has
  /// accepted.
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
    if (!handlers_.polls_caller()) // not in every execution: the caller's shutdown word may be across the bus
      last_caller_poll_ = clock();
  }
  /// Handles completed and waiting requests. While a waiting request can probably be launched soon, it repeats this, at
  /// most kRetryLooks times and for about kRetryCycles: the next look at the ring, which comes after, takes longer.
  CUDAQ_REALTIME_HOST_DEVICE void poll_deferred() {
    Group::sync();
    if (unlikely(stopped_ || handlers_.gave_up()))
      answer_late();
    if (Group::ballot(Group::lane() == 0 && (handlers_.anything_completed() || handlers_.anything_to_try())) == 0)
      return;
    const long long begun = Group::common_cycles();
    std::uint32_t looks = kRetryLooks;
    do {
      poll_deferred_once();
    } while (--looks != 0 && handlers_.retries_soon() && Group::common_cycles() - begun < kRetryCycles);
  }
  /// Answers the requests that no graph answers any more: waiting ones, if no graph can be launched or the grace period
  /// of a stop is over; after the grace period also those of graphs that have ended without their signal.
  CUDAQ_REALTIME_HOST_DEVICE void answer_late() {
    if (Group::lane() == 0) {
      const bool over = stopped_ && handlers_.grace_is_over();
      if (over || handlers_.gave_up()) {
        const std::int32_t status = handlers_.gave_up() ? CUDAQ_RPC_ERR_LAUNCH_FAILED : CUDAQ_RPC_ERR_SHUTTING_DOWN;
        handlers_.fail_waiting([this, status](std::uint32_t slot) { answer_failed(slot, status); });
      }
      if (over)
        handlers_.close_silent([this](std::uint32_t slot, bool publishes) {
          if (!publishes)
            return answer_failed(slot, CUDAQ_RPC_ERR_NO_RESPONSE);
          transport_.discard(transport_.of_slot(slot));
          counters_.count_answered(1);
        });
    }
    Group::sync();
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
      handlers_.pump([this](std::uint32_t slot) { answer_failed(slot, CUDAQ_RPC_ERR_LAUNCH_FAILED); });
    Group::sync();
  }
  CUDAQ_REALTIME_HOST_DEVICE void answer_failed(std::uint32_t slot, std::int32_t status) {
    const message m = transport_.of_slot(slot);
    write_response(transport_.response(m), read_header<request>(transport_.request(m)), status, 0);
    transport_.send(m);
    counters_.count_failed(status);
  }

  /// The clock of the loop. On a CPU thread it counts looks: a real clock does not measure the progress of the loop
  /// there.
  CUDAQ_REALTIME_HOST_DEVICE long long clock() const {
    return Group::kWidth == 1 ? static_cast<long long>(polls_) * (kIdleCycles / 8) : Group::common_cycles();
  }
  /// True if `cycles` have passed since the last poll_control. A clock that has stepped back counts as overdue.
  CUDAQ_REALTIME_HOST_DEVICE bool overdue(long long cycles) const {
    return static_cast<unsigned long long>(clock() - last_control_poll_) >= static_cast<unsigned long long>(cycles);
  }

  /// Posts counters and heartbeat, and reads the shutdown words.
  CUDAQ_REALTIME_HOST_DEVICE void poll_control() {
    last_control_poll_ = clock();
    counters_.post(kAny ? first_look_ : transport_.cursor(), polls_);
    const bool poll_caller = static_cast<unsigned long long>(last_control_poll_ - last_caller_poll_) >=
                             kCallerCycles; // the caller's shutdown word may be across the bus
    last_caller_poll_ = poll_caller ? last_control_poll_ : last_caller_poll_;
    bool stop = false;
    if (Group::lane() == 0)
      stop = load_acquire(*p_.library_shutdown) != 0 || (poll_caller && load_acquire(*p_.caller_shutdown) != 0);
    stopped_ = Group::ballot(stop) != 0 || stopped_; // a stop is not taken back
  }
  /// poll_control() if it is due, between slow requests of one look. Returns true if a stop is requested: requests that
  /// are not served yet stay in their slots.
  CUDAQ_REALTIME_HOST_DEVICE bool stop_requested() {
    if (unlikely(overdue(kBusyCycles)))
      poll_control();
    return stopped_;
  }

  // --- transports whose look waits for a message: nothing is posted until it comes ---

  /// Called before each look. True: the loop ends.
  CUDAQ_REALTIME_HOST_DEVICE bool stops_before_look() {
    this->flush_counts();
    if (overdue(kBusyCycles))
      poll_control();
    else
      counters_.post(transport_.cursor(), polls_);
    return stopped_;
  }
  /// Posts the fault that has ended the transport, if there is one.
  CUDAQ_REALTIME_HOST_DEVICE void post_fault() const {
    if (Group::lane() == 0 && transport_.fault() != cudaSuccess)
      counters_.post_fault(transport_.fault());
  }

  const std::uint32_t first_look_; ///< ANY ordering: the first slot of this loop's share
  std::uint64_t polls_ = 0;
  bool stopped_ = false;

private:
  long long last_control_poll_ = 0,
            last_caller_poll_ = 0; ///< clock() of the last poll_control; of the last read of the caller's word
};

} // namespace cudaq::realtime::detail
