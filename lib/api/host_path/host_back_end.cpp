// SPDX-License-Identifier: Apache-2.0
#include "lib/api/host_path/host_back_end.h"

#include "lib/api/host_path/host_workers.h"
#include "lib/api/host_path/upstream_launcher.h"
#if defined(CUDAQ_REALTIME_HAS_CUDART)
#include "lib/api/host_path/cuda_graph_launcher.h"
#include "lib/base/cuda_device.h"
#endif

#include <algorithm>

namespace cudaq::realtime::detail {

const char *host_back_end::missing_call(const wiring &w) const {
  if (!w.ring)
    return is_unified_host(config_) ? "cudaq_dispatcher_set_cpu_dataplane" : "cudaq_dispatcher_set_ringbuffer";
  if (!w.table && w.v2.empty() && w.workers.empty())
    return "cudaq_dispatcher_set_function_table";
  return w.shutdown_flag == nullptr ? "cudaq_dispatcher_set_control" : nullptr;
}

expected<> host_back_end::acquire_ring(wiring &w, host_setup &setup) {
  const slot_ring view = view_of(*w.ring, config_, ring_side::host);
  const bool shared = config_.shared_ring_mode != 0;
  if (shared && w.rewired) // after a new wiring the ring starts at slot 0, unless other dispatchers are on it
    host_.release_ring();
  if (expected<> result = shared ? manager_.join_ring(view, setup.router) : manager_.reserve_ring(identity_of(*w.ring));
      result.failed())
    return result;
  held_ring_ = identity_of(*w.ring);
  if (expected<> result = manager_.claim(this, claim_of(w, config_, config_.known_slots)); result.failed())
    return result;
  if (shared) {
    setup.jobs = setup.router->jobs();
  } else {
    if (!jobs_)
      jobs_ = manager_.make_jobs(config_.num_slots);
    if (w.rewired) {
      jobs_->bind(view);
      bound_flags_ = w.dataplane_flags;
    }
    setup.jobs = jobs_;
  }
  w.rewired = false;
  return {};
}

void host_back_end::release_ring() {
  if (held_ring_ == nullptr)
    return;
  manager_.unclaim(this);
  if (config_.shared_ring_mode != 0)
    manager_.leave_ring(held_ring_);
  else
    manager_.release_ring(held_ring_);
  held_ring_ = nullptr;
}

expected<> host_back_end::make_launcher(const wiring &w, host_setup &setup) {
  if (expected<> result = workers_of_run(w, config_, setup.workers); result.failed() || setup.workers.empty())
    return result;
  const bool own_contexts = have_own_contexts(w);
  const bool contexts = own_contexts || std::any_of(setup.workers.begin(), setup.workers.end(),
                                                    [](const auto &worker) { return worker.io_ctx != nullptr; });
  cudaq_ringbuffer_t ring = *w.ring;
#if defined(CUDAQ_REALTIME_HAS_CUDART)
  if (w.finds_device_views)
    find_device_views(ring, contexts);
#endif
  if (expected<> result = check_ring_for_graphs(ring, contexts); result.failed())
    return result;
#if defined(CUDAQ_REALTIME_HAS_CUDART)
  expected<> result =
      make_cuda_graph_launcher(manager_,
                               {config_.device_id, view_of(*w.ring, config_, ring_side::host), ring, w.mailbox,
                                setup.workers, w.options.mailbox_content == CUDAQ_MAILBOX_IO_CONTEXT, own_contexts},
                               setup.launcher);
  if (result.ok() && w.words.any())
    setup.launcher = std::make_shared<upstream_launcher>(std::move(setup.launcher), w.words);
  return result;
#else
  return make_reason(CUDAQ_ERR_UNSUPPORTED, "graph workers: this library was built without the CUDA runtime");
#endif
}

expected<> host_back_end::begin_run(wiring &w, bool with_thread) {
  if (expected<> result = host_.check_restart(); result.failed())
    return result;
  host_setup setup;
  setup.table = w.table.value_or(cudaq_function_table_t{});
  if (expected<> result = validate_host_table(setup.table); result.failed())
    return result;
  setup.v2 = w.v2;
  if (expected<> result = make_launcher(w, setup); result.failed())
    return result;
  fault_reported_ = false;
  setup.options = w.options;
  setup.shared_ring = config_.shared_ring_mode != 0;
  setup.markers = config_.skip_tx_markers == 0 && !w.dataplane; // the flags are the library's own
  setup.dataplane = w.dataplane;
  setup.max_result_bytes = w.max_result_bytes;
  setup.handler_times = w.handler_times;
  setup.shutdown_flag = w.shutdown_flag;
  setup.stats = w.stats;
  setup.idle_mask = w.words.idle_mask;
  shutdown_flag_ = w.shutdown_flag;
  const int flag_before = load_acquire(*shutdown_flag_);
  bool flag_cleared = false; // before that, the flag may still belong to another dispatcher
  const auto take_back = [&] {
    if (flag_cleared)
      store_release(*shutdown_flag_, flag_before);
    release_ring();
  };
  expected<> result;
  try {
    {
      const std::lock_guard lock(reading_);
      result = acquire_ring(w, setup);
      if (result.ok())
        result = host_.prepare(std::move(setup));
    }
    if (result.ok() && with_thread) {
      flag_cleared = true;
      store_release(*shutdown_flag_, 0);
    }
    if (result.ok())
      result = host_.start(with_thread);
  } catch (...) {
    take_back();
    throw;
  }
  if (result.failed())
    take_back();
  return result;
}

expected<> host_back_end::finish(std::uint64_t timeout_ns, steady_clock::time_point deadline) {
  if (fault_reported_) // the run has ended, and its control words may belong to another dispatcher by now
    return {};
  host_.request_stop();
  store_release(*shutdown_flag_, 1);
  if (!host_.finish(deadline))
    return make_reason(CUDAQ_ERR_TIMEOUT,
                       "a thread or a graph of the dispatcher did not end within %.3f s; cudaq_dispatcher_dump_state "
                       "names the handler or the graph worker, if any",
                       static_cast<double>(timeout_ns) * 1e-9);
  host_.leave_ring();
  release_ring();
  fault_reported_ = true;
#if defined(CUDAQ_REALTIME_HAS_CUDART)
  if (host_.fault() != 0)
    return cuda_failed("a graph", static_cast<cudaError_t>(host_.fault()));
#endif
  return {};
}

expected<> host_back_end::processed(bool running, const std::uint64_t *stats, std::uint64_t &out) const {
  out = running            ? host_.stats_value() // the wired word is one turn late
        : stats != nullptr ? load_relaxed(*stats)
                           : 0;
  return {};
}

expected<> host_back_end::read_times(std::uint32_t function_id, cudaq_handler_times_t &out) const {
  const std::lock_guard lock(reading_);
  return host_.read_times(function_id, out);
}

std::string host_back_end::describe() const {
  const std::lock_guard lock(reading_);
  return host_.describe();
}

} // namespace cudaq::realtime::detail
