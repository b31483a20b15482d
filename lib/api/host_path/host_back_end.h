// SPDX-License-Identifier: Apache-2.0
// The back end of the host path: the job table of the ring, and the runs of a host_dispatcher.
#pragma once

#include "lib/api/back_end.h"
#include "lib/api/manager.h"
#include "lib/host_dispatcher/host_dispatcher.h"

namespace cudaq::realtime::detail {

class host_back_end final : public back_end {
public:
  host_back_end(cudaq_dispatch_manager_t &manager, const full_config &config) : manager_(manager), config_(config) {}

  expected<> check_ring(cudaq_ringbuffer_t &ring) const override {
    return validate_host_ring(ring, config_, config_.known_slots);
  }
  const char *missing_call(const wiring &w) const override;
  expected<> start(wiring &w) override { return begin_run(w, true); }
  run_phase observe() const override {
    const run_phase seen = !host_.loop_ended() ? run_phase::going
                           : host_.ended()     ? run_phase::ended
                                               : run_phase::ending;
    // Read last: a run that has ended by an error may have noted it since the first look.
    return host_.fault() != 0 ? run_phase::faulted : seen;
  }
  expected<> finish(std::uint64_t timeout_ns, steady_clock::time_point deadline) override;
  const char *caller_is_inside() const override { return host_.is_own_thread() ? "a handler" : nullptr; }
  expected<> complete_deferred(const cudaq_host_job_t &job, std::int32_t status, std::uint32_t result_len) override {
    return host_.complete_deferred(job, status, result_len);
  }
  expected<> release_worker(int worker) override { return host_.release_worker(worker); }
  expected<> worker_job(int worker, cudaq_host_job_t &out) const override { return host_.worker_job(worker, out); }
  void read_stats(cudaq_dispatcher_stats_t &out) const override { host_.read_stats(out); }
  expected<> processed(bool running, const std::uint64_t *stats, std::uint64_t &out) const override;
  expected<> read_times(std::uint32_t function_id, cudaq_handler_times_t &out) const override;
  std::string describe() const override;

  /// Starts a run without a dispatcher thread: the caller runs the loop with run_loop_here.
  expected<> start_without_thread(wiring &w) { return begin_run(w, false); }
  void run_loop_here() { host_.loop(); }
  bool graph_runs() const { return host_.graph_runs(); }
  bool threads_run() const { return host_.threads_run(); }

private:
  expected<> begin_run(wiring &w, bool with_thread);
  expected<> acquire_ring(wiring &w, host_setup &setup);
  void release_ring();
  expected<> make_launcher(const wiring &w, host_setup &setup);

  cudaq_dispatch_manager_t &manager_;
  const full_config config_;
  host_dispatcher host_;
  mutable std::mutex reading_;      ///< excludes describe and read_times while start binds the ring
  std::shared_ptr<job_table> jobs_; ///< of a ring that is not shared
  /// Of the dataplane to which jobs_ is bound: reports read them until the next start, also after a new wiring.
  std::shared_ptr<std::vector<std::uint64_t>> bound_flags_;
  volatile int *shutdown_flag_ = nullptr;    ///< of the run
  const volatile void *held_ring_ = nullptr; ///< the ring that is reserved or joined at the manager
  bool fault_reported_ = false;
};

} // namespace cudaq::realtime::detail
