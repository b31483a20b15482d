// SPDX-License-Identifier: Apache-2.0
// The type of the opaque handle cudaq_dispatcher_t: wiring and the state machine. The back end of the path implements a
// run.
//
//   created <--wiring--> wired --start--> running
//
//   running --stop-------------------------------> stopping --the run has ended--> stopped --start--> running
//   running --the loop sees the caller's flag----> stopping --the run has ended--> stopped
//   running, stopping --fault--------------------> failed --stop returns the error; stop again--> stopped
//   wired, stopped --start of a kernel timed out-> failed --stop, the kernel has ended--> stopped
//   wired, stopped --the launch function has ended its thread, and its kernel runs-> failed, in the same way
//
// The run has ended when no handler, graph or kernel of it runs and all requests that it accepted are answered. A
// phase may be passed so quickly that no caller sees it: then get_state shows running, stopped.
//
// Which thread writes the phase, and what get_state returns:
//
//   phase      state     written by
//   created    CREATED   a setter
//   wired      WIRED     a setter
//   running    RUNNING   start. If the back end shows that the caller's flag is ending the run: STOPPING. If it shows
//                        that the run has ended or failed, the reader that sees it first writes ended or failed
//   ended      STOPPED   a reader: the run has ended by the caller's flag. The next stop, start or setter joins it
//   stopping   STOPPING  stop. After a time-out the phase stays, and only stop and destroy are allowed
//   stopped    STOPPED   stop, at its end
//   failed     FAILED    a reader, stop or start. Only stop and destroy are allowed
//
// Faults: of a device, and of the graph schedulers.
//
// The phase and the number of the run are one word: a reader that is late does not write into the next run. So all
// readers together see only the transitions above, which StateObserver checks.
//
// destroy is allowed in every state.
//
// The caller's threads. Those of the library are listed in host_dispatcher.h and device_member.h.
//
//   control calls: set_..., start, stop, destroy
//     thread   Any, except one inside a handler or the launch function of this dispatcher: alone() refuses that.
//     owns     control_, so one control call runs at a time, and the wiring.
//     waits    For control_: stop until its deadline, the others without limit. start: until the threads run, or the
//              kernel is verified to run. stop: until the run has ended, at most until the deadline.
//     destroy  Stops first. It must be the last call on the handle: no other thread may be in a call.
//   reading calls: get_state, get_stats, get_processed, dump_state
//     thread   Any, at any time before destroy.
//     waits    Not for control_. Only for short locks of the back end, and on the device path for short driver calls.
//   requests that are answered later: cudaq_host_complete_deferred, cudaq_host_release_worker, cudaq_host_worker_job
//     thread   Any, also inside a handler.
//     owns     complete_deferred: the job, from its claim until the call returns.
//     waits    Never.
//   cudaq_host_dispatcher_loop
//     thread   The caller's thread becomes the dispatcher thread (run_here). The handle is private to this call.
//     waits    By options.wait_policy, after a turn without work.
//     ends     When the shutdown flag is set and the accepted requests are answered, or with a timeout for a graph.
//   producer and consumer of the ring: the slot helpers
//     thread   One producer and one consumer for each ring; they share only the ring with the dispatcher.
#pragma once

#include "lib/api/back_end.h"
#include "lib/api/manager.h"
#include "lib/base/generation_word.h"

namespace cudaq::realtime::detail {
class host_back_end;
}

struct cudaq_dispatcher_t {
  cudaq_dispatcher_t(cudaq_dispatch_manager_t &m, const cudaq_dispatcher_config_t &c);
  ~cudaq_dispatcher_t();

  template <class T = void>
  using expected = cudaq::realtime::detail::expected<T>;

  expected<> set_ringbuffer(const cudaq_ringbuffer_t &ring);
  expected<> set_cpu_dataplane(const cudaq_cpu_dataplane_t &given);
  expected<> set_max_result_bytes(std::uint32_t bytes);
  expected<> set_handler_times(bool on);
  expected<> set_function_table(const cudaq_function_table_t &table);
  expected<> set_control(volatile int *shutdown_flag, std::uint64_t *stats);
  expected<> set_options(const cudaq_dispatcher_options_t &given);
  expected<> set_host_workers(std::vector<cudaq_host_worker_t> workers);
  /// `of_contexts`: the upstream form.
  expected<> set_mailbox(void **mailbox, bool of_contexts);
  expected<> set_host_handler_v2(const cudaq::realtime::detail::v2_handler &handler);
  /// Exactly one of the two is not NULL.
  expected<> set_launch_fn(cudaq_dispatch_launch_fn_t launch_fn, cudaq_dispatch_launch_fn_v2_t launch_fn_v2);
  expected<> set_graph_io(const cudaq_dispatch_graph_io_t &given);
  expected<> set_unified_launch(const cudaq::realtime::detail::unified_launch &given);
  /// For a run by run_here.
  void set_upstream_words(const cudaq::realtime::detail::upstream_words &words) { wiring_.words = words; }
  void find_device_views() { wiring_.finds_device_views = true; }

  expected<> start();
  /// Starts a run of the host path, and runs its loop on the calling thread instead of a thread of the library.
  expected<> run_here();
  /// After run_here. True: a graph of the run has not ended.
  bool graph_runs() const;
  bool threads_run() const;
  expected<> stop(std::uint64_t timeout_ns);
  std::uint64_t grace_period_ns() const { return grace_period_ns_.peek(); }

  cudaq_dispatcher_state_t state() const;
  expected<> processed(std::uint64_t &out) const;
  std::string describe() const;
  cudaq::realtime::detail::back_end &path() { return *path_; }
  const cudaq::realtime::detail::back_end &path() const { return *path_; }

  cudaq_dispatch_manager_t &manager;
  const cudaq::realtime::detail::full_config config;

private:
  /// Runs `body` while no other control call runs. Refused in a handler of this dispatcher: stop would wait for the
  /// handler's end while the handler waits for stop. Refused also if the lock is not free by `deadline`.
  template <class Body>
  expected<> alone(cudaq::realtime::detail::steady_clock::time_point deadline, Body &&body);
  template <class Body>
  expected<> alone(Body &&body) {
    return alone(cudaq::realtime::detail::steady_clock::time_point::max(), body);
  }
  /// Sets a part of the wiring: `check` returns whether it is allowed, `set` sets it.
  template <class Check, class Set>
  expected<> wire(const char *what, Check &&check, Set &&set);
  /// Finishes a run that the caller's shutdown flag is ending or has ended, and sets `now` to the state after that. The
  /// error of a run that has ended with an error is left for stop.
  expected<> finish_ended_run(cudaq_dispatcher_state_t &now);
  expected<> finish_run(std::uint64_t timeout_ns, cudaq::realtime::detail::steady_clock::time_point deadline);
  expected<> check_wired() const;
  expected<> check_startable() const;
  expected<> refuse_unless(cudaq_dispatch_path_t path, const char *what) const;
  /// True if a run exists that is not joined yet.
  bool in_run() const;

  enum class phase : std::uint32_t { created, wired, running, ended, stopping, stopped, failed };
  using run_word = cudaq::realtime::detail::generation_word<phase>; ///< the generation is the number of the run
  static_assert(run_word::fits(phase::failed));
  static cudaq_dispatcher_state_t shown(phase p);

  std::mutex control_;   ///< serialises wiring, start, stop
  mutable run_word run_; ///< get_state writes it, too
  cudaq::realtime::detail::wiring wiring_;
  cudaq::realtime::detail::shared_word<std::uint64_t>
      grace_period_ns_;                                         ///< of the options; for calls that do not take the lock
  cudaq::realtime::detail::shared_word<std::uint64_t *> stats_; ///< of the wiring; for calls that do not take the lock
  std::unique_ptr<cudaq::realtime::detail::back_end> path_;
  cudaq::realtime::detail::host_back_end *host_ = nullptr; ///< path_ on the host path, else NULL
};
