// SPDX-License-Identifier: Apache-2.0
// The dispatcher behind the opaque handle: wiring, the state machine, and the run.
//
//   created --all wired--> wired --start--> running --stop--> stopped --start--> running
//                                              |                 ^
//                                              |   shutdown flag set by the caller: the loop has ended, reported as
//                                              |   stopped; stop joins it
//                                              +--stop timed out--> failed --stop, handler came back--> stopped
//
// destroy is allowed in every state. In failed only stop and destroy are.
#pragma once

#include "lib/api/manager.h"
#include "lib/api/options.h"
#include "lib/host_dispatcher/host_dispatcher.h"

#include <optional>

struct cudaq_dispatcher_t {
  explicit cudaq_dispatcher_t(cudaq_dispatch_manager_t &m, const cudaq_dispatcher_config_t &c);

  using finding = cudaq::realtime::detail::finding;

  finding set_ringbuffer(const cudaq_ringbuffer_t &ring);
  finding set_function_table(const cudaq_function_table_t &table);
  finding set_control(volatile int *shutdown_flag, std::uint64_t *stats);
  finding set_options(const cudaq_dispatcher_options_t &given);
  finding set_host_handler_v2(const cudaq::realtime::detail::v2_handler &handler);

  finding start();
  /// Runs the loop on the calling thread instead of one of its own.
  finding run_here();
  finding stop(std::uint64_t timeout_ns);
  std::uint64_t grace_period_ns() const { return grace_period_ns_.peek(); }

  cudaq_dispatcher_state_t state() const;
  std::uint64_t processed() const;
  std::string describe() const;

  cudaq_dispatch_manager_t &manager;
  const cudaq_dispatcher_config_t config;
  cudaq::realtime::detail::host_dispatcher host;

private:
  /// Runs `body` alone among the control calls. Refused from a handler of this dispatcher, whose end stop would wait for
  /// while the handler waits here, and after `deadline`.
  template <class Body>
  finding alone(cudaq::realtime::detail::steady_clock::time_point deadline, Body &&body);
  template <class Body>
  finding alone(Body &&body) {
    return alone(cudaq::realtime::detail::steady_clock::time_point::max(), body);
  }
  finding check_settable(const char *what);
  /// Joins a run that the caller's own shutdown flag has ended.
  finding settle();
  finding finish_run(std::uint64_t timeout_ns, cudaq::realtime::detail::steady_clock::time_point deadline);
  finding check_wired() const;
  finding begin_run(bool with_thread);
  void update_wired();
  cudaq::realtime::detail::slot_ring host_view() const;
  finding acquire_ledger(std::shared_ptr<cudaq::realtime::detail::ring_ledger> &out);
  void release_ledger();
  void set_state(cudaq_dispatcher_state_t s) { state_.store(s); }

  std::mutex control_;         ///< serialises wiring, start, stop
  mutable std::mutex reading_; ///< dump_state against the few lines of start that rebind the ring
  cudaq::realtime::detail::shared_word<std::uint32_t> state_;
  cudaq_dispatcher_options_t options_;
  cudaq::realtime::detail::shared_word<std::uint64_t> grace_period_ns_; ///< of options_, for calls without the lock
  std::optional<cudaq_ringbuffer_t> ring_;
  std::optional<cudaq_function_table_t> table_;
  std::vector<cudaq::realtime::detail::v2_handler> v2_;
  volatile int *shutdown_flag_ = nullptr;
  cudaq::realtime::detail::shared_word<std::uint64_t *> stats_;
  bool rewired_ = true;     ///< the ring was set after the last start: the cursor begins at slot 0
  bool holds_ring_ = false; ///< reserved with the manager
  std::shared_ptr<cudaq::realtime::detail::ring_ledger> ledger_;
};
