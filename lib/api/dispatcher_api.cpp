// SPDX-License-Identifier: Apache-2.0
// The exported dispatcher functions: NULL checks and the exception guard. cudaq_dispatcher_t does the work.
#include "lib/api/dispatcher.h"

#include "cudaq/realtime/daemon/dispatcher/host_dispatcher.h"
#include "lib/api/host_loop.h"
#include "lib/api/host_path/host_workers.h"

using namespace cudaq::realtime::detail;

namespace {

expected<> null_argument(const char *name) { return make_reason(CUDAQ_ERR_INVALID_ARG, "%s is NULL", name); }

template <class Body>
expected<> unless_null(const cudaq_dispatcher_t *dispatcher, const void *argument, const char *argument_name,
                       Body &&body) {
  if (dispatcher == nullptr)
    return null_argument("dispatcher");
  if (argument == nullptr)
    return null_argument(argument_name);
  return body();
}

/// Runs `body` unless `dispatcher` or `argument` is NULL.
template <class Body>
cudaq_status_t with(const char *function, const cudaq_dispatcher_t *dispatcher, const void *argument,
                    const char *argument_name, Body &&body) {
  return guarded(function, [&] { return unless_null(dispatcher, argument, argument_name, body); });
}

/// The same for functions that make no system call.
template <class Body>
cudaq_status_t with_brief(const char *function, const cudaq_dispatcher_t *dispatcher, const void *argument,
                          const char *argument_name, Body &&body) {
  return guarded_brief(function, [&] { return unless_null(dispatcher, argument, argument_name, body); });
}

expected<> create(cudaq_dispatch_manager_t &manager, const cudaq_dispatcher_config_t &config,
                  cudaq_dispatcher_t **out) {
  if (expected<> result = validate_config(config); result.failed())
    return result;
  auto made = std::make_unique<cudaq_dispatcher_t>(manager, config);
  const std::lock_guard lock(manager.mutex);
  manager.dispatchers.insert(made.get());
  *out = made.release();
  return {};
}

expected<> destroy(cudaq_dispatcher_t *dispatcher) {
  // Any other error is that of a run which is over: destroy goes on.
  if (expected<> result = dispatcher->stop(dispatcher->grace_period_ns());
      result.status() == CUDAQ_ERR_TIMEOUT || result.status() == CUDAQ_ERR_STATE)
    return result;
  {
    const std::lock_guard lock(dispatcher->manager.mutex);
    dispatcher->manager.dispatchers.erase(dispatcher);
  }
  delete dispatcher;
  return {};
}

/// Ends the run of a loop on the calling thread, and frees its objects.
expected<> end_loop_here(std::unique_ptr<cudaq_dispatcher_t> &dispatcher,
                         std::unique_ptr<cudaq_dispatch_manager_t> &manager, std::uint64_t grace_period_ns) {
  // The pool's threads use these objects, so this waits until the handlers return. The loop has waited for graphs
  // already.
  constexpr std::uint64_t kStopInterval = 100000000;
  expected<> result;
  do
    result = dispatcher->stop(dispatcher->graph_runs() && !dispatcher->threads_run() ? 0 : kStopInterval);
  while (result.status() == CUDAQ_ERR_TIMEOUT && (dispatcher->threads_run() || !dispatcher->graph_runs()));
  if (result.status() != CUDAQ_ERR_TIMEOUT)
    return result;
  // The graph may still write to the launcher's memory. Freeing that memory would wait for the graph, so it leaks. It
  // may also write to its slot, so the ring gets no other dispatcher: that would answer the slot, too.
  manager->leave_claims_to_a_graph();
  (void)dispatcher.release();
  (void)manager.release();
  return make_reason(CUDAQ_ERR_TIMEOUT,
                     "a graph did not end within the grace period of %.3f s; its slot stays occupied, and the ring can "
                     "have no other dispatcher",
                     static_cast<double>(grace_period_ns) * 1e-9);
}

} // namespace

namespace cudaq::realtime::detail {

expected<> run_loop_here(const host_loop &what) {
  const cudaq_dispatcher_config_t &config = what.config;
  if (expected<> result = validate_config(config); result.failed())
    return result;
  if (config.dispatch_path != CUDAQ_DISPATCH_PATH_HOST)
    return make_reason(CUDAQ_ERR_UNSUPPORTED,
                       "config->dispatch_path is %d (device): only the host path can run on the calling thread",
                       static_cast<int>(config.dispatch_path));
  if (config.shared_ring_mode != 0)
    return make_reason(
        CUDAQ_ERR_UNSUPPORTED,
        "config->shared_ring_mode must be 0: the dispatchers of a shared ring need a common manager, which "
        "this loop does not have");
  cudaq_dispatcher_options_t chosen = default_dispatcher_options();
  if (what.options != nullptr)
    if (expected<> result = read_sized("options", what.options, chosen); result.failed())
      return result;
  // The caller places its own thread. The options place only the threads of the pool.
  if (chosen.dispatcher_core != CUDAQ_CORE_ANY)
    return make_reason(CUDAQ_ERR_UNSUPPORTED,
                       "options->dispatcher_core is %d: the loop runs on the calling thread, "
                       "which the caller places",
                       chosen.dispatcher_core);
  if (chosen.handler_pool_size == 0 && (chosen.numa_node != CUDAQ_NUMA_NODE_ANY || chosen.realtime_priority != 0))
    return make_reason(CUDAQ_ERR_UNSUPPORTED, "options->numa_node and realtime_priority: the loop runs on the calling "
                                              "thread, which the caller places, and there is no pool");
  auto manager = std::make_unique<cudaq_dispatch_manager_t>();
  auto dispatcher = std::make_unique<cudaq_dispatcher_t>(*manager, config);
  expected<> result = dispatcher->set_options(chosen);
  if (result.ok())
    result = dispatcher->set_ringbuffer(what.ring);
  if (result.ok())
    result = dispatcher->set_function_table(what.table);
  if (result.ok() && !what.workers.empty())
    result = dispatcher->set_host_workers(what.workers);
  if (result.ok() && what.mailbox != nullptr)
    result = dispatcher->set_mailbox(what.mailbox, false);
  if (result.ok())
    result = dispatcher->set_control(what.shutdown_flag, what.stats);
  dispatcher->set_upstream_words(what.words);
  if (what.finds_device_views)
    dispatcher->find_device_views();
  if (result.failed())
    return result;
  result = dispatcher->run_here();
  return result.failed() ? result : end_loop_here(dispatcher, manager, chosen.grace_period_ns);
}

} // namespace cudaq::realtime::detail

extern "C" {

cudaq_status_t cudaq_dispatcher_create(cudaq_dispatch_manager_t *mgr, const cudaq_dispatcher_config_t *config,
                                       cudaq_dispatcher_t **out_dispatcher) {
  return guarded(__func__, [&]() -> expected<> {
    if (mgr == nullptr)
      return null_argument("mgr");
    if (config == nullptr)
      return null_argument("config");
    if (out_dispatcher == nullptr)
      return null_argument("out_dispatcher");
    return create(*mgr, *config, out_dispatcher);
  });
}

cudaq_status_t cudaq_dispatcher_destroy(cudaq_dispatcher_t *dispatcher) {
  return with(__func__, dispatcher, dispatcher, "dispatcher", [&] { return destroy(dispatcher); });
}

cudaq_status_t cudaq_dispatcher_set_ringbuffer(cudaq_dispatcher_t *dispatcher, const cudaq_ringbuffer_t *ringbuffer) {
  return with(__func__, dispatcher, ringbuffer, "ringbuffer", [&] { return dispatcher->set_ringbuffer(*ringbuffer); });
}

cudaq_status_t cudaq_dispatcher_set_function_table(cudaq_dispatcher_t *dispatcher,
                                                   const cudaq_function_table_t *table) {
  return with(__func__, dispatcher, table, "table", [&] { return dispatcher->set_function_table(*table); });
}

cudaq_status_t cudaq_dispatcher_set_control(cudaq_dispatcher_t *dispatcher, volatile int *shutdown_flag,
                                            uint64_t *stats) {
  return with(__func__, dispatcher, dispatcher, "dispatcher",
              [&] { return dispatcher->set_control(shutdown_flag, stats); });
}

cudaq_status_t cudaq_dispatcher_set_options(cudaq_dispatcher_t *dispatcher, const cudaq_dispatcher_options_t *options) {
  return with(__func__, dispatcher, options, "options", [&]() -> expected<> {
    cudaq_dispatcher_options_t chosen = default_dispatcher_options();
    if (expected<> result = read_sized("options", options, chosen); result.failed())
      return result;
    return dispatcher->set_options(chosen);
  });
}

cudaq_status_t cudaq_dispatcher_set_host_handler_v2(cudaq_dispatcher_t *dispatcher, uint32_t function_id,
                                                    cudaq_host_handler_v2_t handler, void *user,
                                                    const cudaq_handler_schema_t *schema) {
  return with(__func__, dispatcher, dispatcher, "dispatcher", [&]() -> expected<> {
    const v2_handler given{function_id, handler, user, schema != nullptr ? *schema : cudaq_handler_schema_t{}};
    if (expected<> result = check_schema(given.schema, "handler of function", function_id); result.failed())
      return result;
    return dispatcher->set_host_handler_v2(given);
  });
}

cudaq_status_t cudaq_dispatcher_set_launch_fn(cudaq_dispatcher_t *dispatcher, cudaq_dispatch_launch_fn_t launch_fn) {
  return with(__func__, dispatcher, dispatcher, "dispatcher",
              [&] { return dispatcher->set_launch_fn(launch_fn, nullptr); });
}

cudaq_status_t cudaq_dispatcher_set_launch_fn_v2(cudaq_dispatcher_t *dispatcher,
                                                 cudaq_dispatch_launch_fn_v2_t launch_fn) {
  return with(__func__, dispatcher, dispatcher, "dispatcher",
              [&] { return dispatcher->set_launch_fn(nullptr, launch_fn); });
}

cudaq_status_t cudaq_dispatcher_set_graph_io(cudaq_dispatcher_t *dispatcher,
                                             const cudaq_dispatch_graph_io_t *graph_io) {
  return with(__func__, dispatcher, graph_io, "graph_io", [&]() -> expected<> {
    cudaq_dispatch_graph_io_t given{};
    if (expected<> result = read_sized("graph_io", graph_io, given); result.failed())
      return result;
    return dispatcher->set_graph_io(given);
  });
}

cudaq_status_t cudaq_dispatcher_set_unified_launch_spec(cudaq_dispatcher_t *dispatcher,
                                                        cudaq_unified_launch_spec_fn_t launch_fn, void *transport_ctx) {
  return with("cudaq_dispatcher_set_unified_launch", dispatcher, dispatcher, "dispatcher", [&]() -> expected<> {
    if (launch_fn == nullptr)
      return null_argument("launch_fn");
    return dispatcher->set_unified_launch({launch_fn, nullptr, transport_ctx});
  });
}

void *cudaq_dispatch_launch_state(void) { return launch_state_of_this_thread; }

cudaq_status_t cudaq_dispatcher_start(cudaq_dispatcher_t *dispatcher) {
  return with(__func__, dispatcher, dispatcher, "dispatcher", [&] { return dispatcher->start(); });
}

cudaq_status_t cudaq_dispatcher_stop(cudaq_dispatcher_t *dispatcher) {
  return with(__func__, dispatcher, dispatcher, "dispatcher",
              [&] { return dispatcher->stop(dispatcher->grace_period_ns()); });
}

cudaq_status_t cudaq_dispatcher_stop_timeout(cudaq_dispatcher_t *dispatcher, uint64_t timeout_ns) {
  return with(__func__, dispatcher, dispatcher, "dispatcher", [&] { return dispatcher->stop(timeout_ns); });
}

cudaq_status_t cudaq_dispatcher_get_processed(cudaq_dispatcher_t *dispatcher, uint64_t *out_packets) {
  return with(__func__, dispatcher, out_packets, "out_packets", [&]() -> expected<> {
    std::uint64_t processed = 0;
    if (expected<> result = dispatcher->processed(processed); result.failed())
      return result;
    *out_packets = processed;
    return {};
  });
}

cudaq_status_t cudaq_dispatcher_get_state(const cudaq_dispatcher_t *dispatcher, cudaq_dispatcher_state_t *out_state) {
  return with(__func__, dispatcher, out_state, "out_state", [&]() -> expected<> {
    *out_state = dispatcher->state();
    return {};
  });
}

cudaq_status_t cudaq_dispatcher_get_stats(const cudaq_dispatcher_t *dispatcher, cudaq_dispatcher_stats_t *out_stats) {
  return with(__func__, dispatcher, out_stats, "out_stats", [&] {
    // Read first: the counters of a run that has ended are final.
    const cudaq_dispatcher_state_t state = dispatcher->state();
    cudaq_dispatcher_stats_t stats{};
    dispatcher->path().read_stats(stats);
    stats.state = state;
    return write_sized("out_stats", out_stats, out_stats->struct_size, stats);
  });
}

cudaq_status_t cudaq_dispatcher_dump_state(const cudaq_dispatcher_t *dispatcher, char *buf, size_t buf_len,
                                           size_t *out_len) {
  return with(__func__, dispatcher, dispatcher, "dispatcher", [&]() -> expected<> {
    if (buf == nullptr && buf_len != 0)
      return null_argument("buf");
    const std::string text = dispatcher->describe();
    if (out_len != nullptr)
      *out_len = text.size();
    if (buf_len != 0) {
      const std::size_t n = text.size() < buf_len ? text.size() : buf_len - 1;
      std::memcpy(buf, text.data(), n);
      buf[n] = '\0';
    }
    return {};
  });
}

cudaq_status_t cudaq_host_complete_deferred(cudaq_dispatcher_t *dispatcher, const cudaq_host_job_t *job, int32_t status,
                                            uint32_t result_len) {
  return with_brief(__func__, dispatcher, job, "job",
                    [&] { return dispatcher->path().complete_deferred(*job, status, result_len); });
}

cudaq_status_t cudaq_dispatcher_set_host_workers(cudaq_dispatcher_t *dispatcher, const cudaq_host_worker_t *workers,
                                                 size_t num_workers) {
  return with(__func__, dispatcher, dispatcher, "dispatcher", [&]() -> expected<> {
    std::vector<cudaq_host_worker_t> chosen;
    if (expected<> result = read_workers(workers, num_workers, chosen); result.failed())
      return result;
    return dispatcher->set_host_workers(std::move(chosen));
  });
}

cudaq_status_t cudaq_dispatcher_set_cpu_dataplane(cudaq_dispatcher_t *dispatcher,
                                                  const cudaq_cpu_dataplane_t *cpu_dataplane) {
  return with(__func__, dispatcher, cpu_dataplane, "cpu_dataplane",
              [&] { return dispatcher->set_cpu_dataplane(*cpu_dataplane); });
}

cudaq_status_t cudaq_dispatcher_set_max_result_bytes(cudaq_dispatcher_t *dispatcher, uint32_t bytes) {
  return with(__func__, dispatcher, dispatcher, "dispatcher", [&] { return dispatcher->set_max_result_bytes(bytes); });
}

cudaq_status_t cudaq_dispatcher_set_handler_times(cudaq_dispatcher_t *dispatcher, int on) {
  return with(__func__, dispatcher, dispatcher, "dispatcher", [&] { return dispatcher->set_handler_times(on != 0); });
}

cudaq_status_t cudaq_dispatcher_get_handler_times(const cudaq_dispatcher_t *dispatcher, uint32_t function_id,
                                                  cudaq_handler_times_t *out_times) {
  return with(__func__, dispatcher, out_times, "out_times", [&]() -> expected<> {
    cudaq_handler_times_t times{};
    if (expected<> result = check_struct_size("out_times", out_times->struct_size, sizeof(times)); result.failed())
      return result;
    if (expected<> result = dispatcher->path().read_times(function_id, times); result.failed())
      return result;
    return write_sized("out_times", out_times, out_times->struct_size, times);
  });
}

cudaq_status_t cudaq_dispatcher_set_mailbox_spec(cudaq_dispatcher_t *dispatcher, void **h_mailbox_bank) {
  return with("cudaq_dispatcher_set_mailbox", dispatcher, dispatcher, "dispatcher",
              [&] { return dispatcher->set_mailbox(h_mailbox_bank, false); });
}

cudaq_status_t cudaq_host_release_worker(cudaq_dispatcher_t *dispatcher, int worker_id) {
  return with_brief(__func__, dispatcher, dispatcher, "dispatcher",
                    [&] { return dispatcher->path().release_worker(worker_id); });
}

cudaq_status_t cudaq_host_worker_job(cudaq_dispatcher_t *dispatcher, int worker_id, cudaq_host_job_t *out_job) {
  return with_brief(__func__, dispatcher, out_job, "out_job",
                    [&] { return dispatcher->path().worker_job(worker_id, *out_job); });
}

cudaq_status_t cudaq_host_dispatcher_loop_spec(const cudaq_dispatcher_config_t *config,
                                               const cudaq_ringbuffer_t *ringbuffer,
                                               const cudaq_function_table_t *table, const cudaq_host_worker_t *workers,
                                               size_t num_workers, const cudaq_dispatcher_options_t *options,
                                               volatile int *shutdown_flag, uint64_t *stats) {
  return guarded("cudaq_host_dispatcher_loop", [&]() -> expected<> {
    if (config == nullptr || ringbuffer == nullptr || table == nullptr)
      return null_argument(config == nullptr ? "config" : ringbuffer == nullptr ? "ringbuffer" : "table");
    std::vector<cudaq_host_worker_t> chosen;
    if (expected<> result = read_workers(workers, num_workers, chosen); result.failed())
      return result;
    for (std::size_t w = 0; w < chosen.size(); ++w)
      if (chosen[w].completion == CUDAQ_WORKER_CALLER_PUBLISHES)
        return make_reason(CUDAQ_ERR_UNSUPPORTED,
                           "workers[%zu].completion is 2 (the caller publishes): releasing a worker needs a "
                           "dispatcher handle, which this loop does not have",
                           w);
    return run_loop_here({*config, *ringbuffer, *table, std::move(chosen), options, shutdown_flag, stats, nullptr, {}});
  });
}

} // extern "C"
