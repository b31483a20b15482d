// SPDX-License-Identifier: Apache-2.0
// The dispatcher behind the opaque handle: wiring and the state machine. What a run is, its path's back end knows.
//
//   created --all wired--> wired --start--> running --stop--> stopped --start--> running
//                                              |                 ^
//                                              |   shutdown flag set by the caller: the loop has ended, reported as
//                                              |   stopped; stop joins it
//                                              +--stop timed out--> failed --stop, handler came back--> stopped
//                                              +--device fault----> failed --stop says it once; the next--> stopped
//                                              |  (or no scheduler of graphs could go on)
//
// destroy is allowed in every state. In failed only stop and destroy are.
#pragma once

#include "lib/api/back_end.h"
#include "lib/api/manager.h"

namespace cudaq::realtime::detail {
class host_back_end;
}

struct cudaq_dispatcher_t {
  cudaq_dispatcher_t(cudaq_dispatch_manager_t &m, const cudaq_dispatcher_config_t &c);
  ~cudaq_dispatcher_t();

  using status_or_reason = cudaq::realtime::detail::status_or_reason;

  status_or_reason set_ringbuffer(const cudaq_ringbuffer_t &ring);
  status_or_reason set_function_table(const cudaq_function_table_t &table);
  status_or_reason set_control(volatile int *shutdown_flag, std::uint64_t *stats);
  status_or_reason set_options(const cudaq_dispatcher_options_t &given);
  status_or_reason set_host_workers(std::vector<cudaq_host_worker_t> workers);
  status_or_reason set_mailbox(void **mailbox);
  status_or_reason set_host_handler_v2(const cudaq::realtime::detail::v2_handler &handler);
  /// One of the two is not NULL.
  status_or_reason set_launch_fn(cudaq_dispatch_launch_fn_t launch_fn, cudaq_dispatch_launch_fn_v2_t launch_fn_v2);
  status_or_reason set_graph_io(const cudaq_dispatch_graph_io_t &given);
  status_or_reason set_unified_launch(const cudaq_unified_dispatch_ctx_t &unified);

  status_or_reason start();
  /// Runs the host path's loop on the calling thread instead of one of its own.
  status_or_reason run_here();
  /// After run_here: a graph of the run has not ended.
  bool graph_runs() const;
  bool threads_run() const;
  status_or_reason stop(std::uint64_t timeout_ns);
  std::uint64_t grace_period_ns() const { return grace_period_ns_.peek(); }

  cudaq_dispatcher_state_t state() const;
  std::uint64_t processed() const;
  std::string describe() const;
  cudaq::realtime::detail::back_end &path() { return *path_; }
  const cudaq::realtime::detail::back_end &path() const { return *path_; }

  cudaq_dispatch_manager_t &manager;
  const cudaq_dispatcher_config_t config;

private:
  /// Runs `body` alone among the control calls. Refused from a handler of this dispatcher, whose end stop would wait
  /// for while the handler waits here, and after `deadline`.
  template <class Body>
  status_or_reason alone(cudaq::realtime::detail::steady_clock::time_point deadline, Body &&body);
  template <class Body>
  status_or_reason alone(Body &&body) {
    return alone(cudaq::realtime::detail::steady_clock::time_point::max(), body);
  }
  /// Sets a part of the wiring: `check` says whether it may be, `set` does it.
  template <class Check, class Set>
  status_or_reason wire(const char *what, Check &&check, Set &&set);
  /// Joins a run that the caller's own shutdown flag has ended, and says what the state is then. What a run that was
  /// ended by an error has to say is left to stop.
  status_or_reason settle(cudaq_dispatcher_state_t &now);
  status_or_reason finish_run(std::uint64_t timeout_ns, cudaq::realtime::detail::steady_clock::time_point deadline);
  status_or_reason check_wired() const;
  status_or_reason check_startable() const;
  status_or_reason refuse_unless(cudaq_dispatch_path_t path, const char *what) const;
  void set_state(cudaq_dispatcher_state_t s) { state_.store(s); }

  std::mutex control_; ///< serialises wiring, start, stop
  cudaq::realtime::detail::shared_word<std::uint32_t> state_;
  cudaq::realtime::detail::wiring wiring_;
  cudaq::realtime::detail::shared_word<std::uint64_t> grace_period_ns_; ///< of the options, for calls without the lock
  cudaq::realtime::detail::shared_word<std::uint64_t *> stats_;         ///< of the wiring, likewise
  std::unique_ptr<cudaq::realtime::detail::back_end> path_;
  cudaq::realtime::detail::host_back_end *host_ = nullptr; ///< path_, on the host path
};
