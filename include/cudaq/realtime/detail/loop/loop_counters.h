// SPDX-License-Identifier: Apache-2.0
// The counters of a dispatch loop. One lane posts them to the host by stores that no thread waits for.
#pragma once

#include "cudaq/realtime/detail/kernel_abi/device_params.h"
#include "cudaq/realtime/detail/loop/thread_group.h"

namespace cudaq::realtime::detail {

/// The counts are in the group's workspace and belong to lane 0.
template <class Group>
class loop_counters {
public:
  /// go_on: the counts are those of an earlier execution, which this one continues; they are posted already.
  CUDAQ_REALTIME_HOST_DEVICE loop_counters(loop_report &counts, loop_report *report, std::uint64_t *caller_stats,
                                           bool go_on = false)
      : c_(counts), report_(report), caller_stats_(caller_stats) {
    if (!lead())
      return;
    if (go_on)
      posted_ = processed();
    else
      c_ = {};
  }

  /// Counts one request and, if it has an answer, the answer's status. Lane 0 counts and posts; the other lanes may
  /// call too.
  CUDAQ_REALTIME_HOST_DEVICE void count(verdict what, bool expected_flag, std::int32_t status) {
    if (likely(what == verdict::serve && expected_flag && status == CUDAQ_RPC_OK))
      return count_served(1);
    if (lead())
      count_rare(c_, *report_, what, expected_flag, status);
  }
  /// Counts `n` requests that a handler answered with status 0.
  CUDAQ_REALTIME_HOST_DEVICE void count_served(std::uint32_t n) {
    if (!lead() || n == 0)
      return;
    c_.dispatched += n;
    c_.responded += n;
    post_served();
  }
  /// count_accepted: one request that a graph answers later. count_answered: `n` such answers.
  CUDAQ_REALTIME_HOST_DEVICE void count_accepted(bool expected_flag) {
    if (!lead())
      return;
    store_relaxed(report_->dispatched, ++c_.dispatched);
    if (!expected_flag)
      store_relaxed(report_->unexpected_flag_values, ++c_.unexpected_flag_values);
  }
  CUDAQ_REALTIME_HOST_DEVICE void count_answered(std::uint32_t n) {
    if (!lead())
      return;
    store_relaxed(report_->responded, c_.responded += n);
    store_relaxed(report_->launches, c_.launches);
  }
  /// Counts one accepted request that was answered with an error instead.
  CUDAQ_REALTIME_HOST_DEVICE void count_failed(std::int32_t status) {
    if (lead())
      count_status(c_, *report_, status);
  }
  CUDAQ_REALTIME_HOST_DEVICE void count_jump() {
    if (lead())
      store_relaxed(report_->cursor_jumps, ++c_.cursor_jumps);
  }

  /// Posts the relaunch counters; called when an execution takes over.
  CUDAQ_REALTIME_HOST_DEVICE void post_relaunches() {
    if (!lead())
      return;
    store_relaxed(report_->relaunches, c_.relaunches);
    store_relaxed(report_->unrelieved, c_.unrelieved);
  }

  /// Posts the message whose handler runs next, for diagnostics of a handler that does not return. One lane calls it.
  CUDAQ_REALTIME_HOST_DEVICE void post_busy(std::uint32_t number) const {
    store_relaxed(report_->busy, std::uint64_t{number} + 1);
  }
  /// Posts the error that ends the loop. One lane calls it.
  CUDAQ_REALTIME_HOST_DEVICE void post_fault(cudaError_t error) const {
    store_relaxed(report_->fault, static_cast<std::uint32_t>(error));
  }
  CUDAQ_REALTIME_HOST_DEVICE void post(std::uint32_t cursor, std::uint64_t polls) {
    if (!lead())
      return;
    store_relaxed(report_->heartbeat, ++c_.heartbeat);
    store_relaxed(report_->polls, polls);
    store_relaxed(report_->cursor, cursor);
    store_relaxed(report_->busy, std::uint64_t{0});
    const std::uint64_t now = processed();
    if (now != posted_) {
      add_relaxed(*caller_stats_, now - posted_);
      posted_ = now;
    }
  }

private:
  CUDAQ_REALTIME_HOST_DEVICE std::uint64_t processed() const {
    return c_.responded + c_.dropped_bad_magic + c_.dropped_unknown_function + c_.dropped_flag_value;
  }
  CUDAQ_REALTIME_OUT_OF_LINE static void count_rare(loop_report &c, loop_report &report, verdict what,
                                                    bool expected_flag, std::int32_t status) {
    const auto raise = [](std::uint64_t &count, std::uint64_t &posted, bool by_one) {
      if (by_one)
        store_relaxed(posted, ++count);
    };
    raise(c.dispatched, report.dispatched, what == verdict::serve);
    raise(c.refused, report.refused, what == verdict::answer);
    raise(c.dropped_bad_magic, report.dropped_bad_magic, what == verdict::drop_magic);
    raise(c.dropped_unknown_function, report.dropped_unknown_function, what == verdict::drop_unknown);
    raise(c.dropped_flag_value, report.dropped_flag_value, what == verdict::drop_flag_value);
    raise(c.unexpected_flag_values, report.unexpected_flag_values, !expected_flag);
    if (what == verdict::serve || what == verdict::answer)
      count_status(c, report, status);
  }
  CUDAQ_REALTIME_HOST_DEVICE static void count_status(loop_report &c, loop_report &report, std::int32_t status) {
    const long long index = CUDAQ_RPC_ERROR_INDEX(static_cast<long long>(status));
    if (index >= 0 && index < CUDAQ_RPC_ERROR_COUNT)
      store_relaxed(report.protocol_errors[index], ++c.protocol_errors[index]);
    else if (status != CUDAQ_RPC_OK)
      store_relaxed(report.handler_errors, ++c.handler_errors);
    store_relaxed(report.responded, ++c.responded);
  }
  CUDAQ_REALTIME_HOST_DEVICE void post_served() const {
    store_relaxed(report_->dispatched, c_.dispatched);
    store_relaxed(report_->responded, c_.responded);
  }
  CUDAQ_REALTIME_HOST_DEVICE static bool lead() { return Group::lane() == 0; }

  loop_report &c_;
  loop_report *report_;
  std::uint64_t *caller_stats_;
  std::uint64_t posted_ = 0; ///< number that was added to the caller's word so far
};

} // namespace cudaq::realtime::detail
