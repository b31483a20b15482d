/* SPDX-License-Identifier: Apache-2.0 */
/* The host dispatcher, beyond the common C API: handlers with a user pointer, deferred completion, job records, graph
 * workers with their hooks, and the loop on a thread of the caller.
 *
 * The general rules of cudaq_realtime.h apply here too. */
#ifndef CUDAQ_REALTIME_HOST_DISPATCHER_H
#define CUDAQ_REALTIME_HOST_DISPATCHER_H

#include "cudaq/realtime/daemon/dispatcher/cudaq_realtime.h"
#include "cudaq/realtime/daemon/dispatcher/host_dispatcher_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Serves function_id with a v2 handler, in addition to the function table (which may then be empty). start refuses an
 * id that is in the table too. `user` belongs to the caller and must live until destroy. handler NULL removes the
 * handler. schema may be NULL. CUDAQ_ERR_STATE while running. */
CUDAQ_REALTIME_API cudaq_status_t cudaq_dispatcher_set_host_handler_v2(cudaq_dispatcher_t *dispatcher,
                                                                       uint32_t function_id,
                                                                       cudaq_host_handler_v2_t handler, void *user,
                                                                       const cudaq_handler_schema_t *schema);

/* Answers a request whose handler deferred it, from any thread. result_len bytes of result must be in call->result. If
 * the handler has not returned yet, the library keeps the answer and publishes it when the handler returns.
 *
 * A stop answers the requests that are still open when its grace period ends. After that the result area may belong to
 * another request. So make sure that no thread writes results any more before you stop.
 *
 * CUDAQ_ERR_STATE, and nothing is written: the job was completed already, by an earlier call or by a stop whose grace
 * period ended; or the dispatcher was never started; or the job is that of a graph worker whose completion is not
 * CUDAQ_WORKER_CALLER_PUBLISHES. CUDAQ_ERR_INVALID_ARG: result_len exceeds max_result_len, the ring has no such slot,
 * the job belongs to another dispatcher, or status is CUDAQ_HOST_CALL_DEFERRED. */
CUDAQ_REALTIME_API cudaq_status_t cudaq_host_complete_deferred(cudaq_dispatcher_t *dispatcher,
                                                               const cudaq_host_job_t *job, int32_t status,
                                                               uint32_t result_len);

/* The graph workers of a dispatcher on the host path: at most 64, identified by their position. Several workers with
 * one function id and routing key are a pool. The call replaces the workers that were set before. With 0 workers every
 * GRAPH_LAUNCH entry of the function table gets a LIBRARY_PUBLISHES worker with its own stream, if config.dispatch_mode
 * is GRAPH_LAUNCH or a mailbox is set. The library makes a stream for a worker that has none. The ring's device views
 * must be set and must be memory that the device can use: start refuses plain host memory.
 *
 * Graphs, streams and contexts belong to the caller and must live until a stop has returned CUDAQ_OK or CUDAQ_ERR_CUDA.
 * After that no graph runs, and the library touches io_ctx and mailbox no more. A worker that the caller has not given
 * back by then still belongs to the caller; start is refused (CUDAQ_ERR_STATE) until it is given back. After a device
 * fault all workers count as given back. CUDAQ_ERR_STATE while running. */
CUDAQ_REALTIME_API cudaq_status_t cudaq_dispatcher_set_host_workers(cudaq_dispatcher_t *dispatcher,
                                                                    const cudaq_host_worker_t *workers,
                                                                    size_t num_workers);
/* cudaq_dispatcher_set_mailbox and cudaq_host_release_worker are in cudaq_realtime.h. */

/* The request that a busy worker works on; its result goes to the TX slot job->slot. From any thread, but not at the
 * same time as start. CUDAQ_ERR_STATE: the worker is idle. */
CUDAQ_REALTIME_API cudaq_status_t cudaq_host_worker_job(cudaq_dispatcher_t *dispatcher, int worker_id,
                                                        cudaq_host_job_t *out_job);

/* Runs the host dispatch loop on the calling thread until *shutdown_flag becomes non-zero, then returns CUDAQ_OK.
 * *shutdown_flag is not cleared first. Validation, loop and protocol are those of a dispatcher on the host path. It
 * starts no thread, unless options (may be NULL) request a handler pool; then it returns when the pool's handlers have
 * returned.
 *
 * grace_period_ns limits only the wait for deferred requests and for graphs. When it ends, requests that still wait for
 * a worker are answered SHUTTING_DOWN. A graph that still runs is left alone (CUDAQ_ERR_TIMEOUT): its memory must
 * stay, and a little memory of the library stays allocated with it. The graph may still write to its slot, so a ring of
 * cudaq_ringbuffer_create refuses every later dispatcher: destroy it when the graph has ended, and create another one.
 *
 * There is no mailbox: use io_ctx or hooks. workers as for cudaq_dispatcher_set_host_workers, except CALLER_PUBLISHES
 * workers (CUDAQ_ERR_UNSUPPORTED): the caller has no handle to give them back. */
CUDAQ_REALTIME_API cudaq_status_t cudaq_host_dispatcher_loop_spec(
    const cudaq_dispatcher_config_t *config, const cudaq_ringbuffer_t *ringbuffer, const cudaq_function_table_t *table,
    const cudaq_host_worker_t *workers, size_t num_workers, const cudaq_dispatcher_options_t *options,
    volatile int *shutdown_flag, uint64_t *stats);
/* The name of the specification; with CUDAQ_REALTIME_UPSTREAM_INTERFACE another function (upstream_interface.h). */
#if !defined(CUDAQ_REALTIME_UPSTREAM_INTERFACE)
cudaq_status_t cudaq_host_dispatcher_loop(const cudaq_dispatcher_config_t *config, const cudaq_ringbuffer_t *ringbuffer,
                                          const cudaq_function_table_t *table, const cudaq_host_worker_t *workers,
                                          size_t num_workers, const cudaq_dispatcher_options_t *options,
                                          volatile int *shutdown_flag, uint64_t *stats)
    CUDAQ_REALTIME_BOUND_TO("cudaq_host_dispatcher_loop_spec");
#endif

#ifdef __cplusplus
} /* extern "C" */

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cudaq::realtime {

/// cudaq_host_worker_t for C++ callers.
struct HostDispatchWorker {
  cudaGraphExec_t graph_exec = nullptr;
  cudaStream_t stream = nullptr;
  std::uint32_t function_id = 0;
  void (*pre_launch_fn)(void *user_data, void *slot_dev, cudaStream_t stream) = nullptr;
  void *pre_launch_data = nullptr;
  void (*post_launch_fn)(void *user_data, void *slot_dev, cudaStream_t stream) = nullptr;
  void *post_launch_data = nullptr;
  std::uint64_t routing_key = 0;
  std::uint32_t completion = CUDAQ_WORKER_LIBRARY_PUBLISHES;
  void *io_ctx = nullptr;
};

/// Arguments of host_dispatcher_loop. All pointers belong to the caller and must stay valid until it returns. There is
/// no mailbox: a worker's graph finds its slot through io_ctx, or a hook copies it.
struct HostDispatcherConfig {
  volatile std::uint64_t *rx_flags = nullptr; ///< host view, like all pointers here except *_dev
  volatile std::uint64_t *tx_flags = nullptr;
  std::uint8_t *rx_data_host = nullptr;
  std::uint8_t *rx_data_dev = nullptr;  ///< device view, needed by graph workers only
  std::uint8_t *tx_data_host = nullptr; ///< nullptr: in place
  std::uint8_t *tx_data_dev = nullptr;
  std::size_t rx_stride_sz = 0;
  std::size_t tx_stride_sz = 0;
  std::size_t num_slots = 0;
  std::size_t slot_size = 0; ///< usable bytes; 0: the stride
  cudaq_function_entry_t *function_table = nullptr;
  std::size_t function_table_count = 0;
  std::vector<HostDispatchWorker> workers;
  volatile int *shutdown_flag = nullptr;
  std::uint64_t *stats_counter = nullptr;
  bool skip_tx_markers = false;
  const cudaq_dispatcher_options_t *options = nullptr; ///< nullptr: defaults
  volatile std::uint64_t *tx_flags_dev = nullptr;      ///< device view, needed by workers with an io_ctx only
  int device_id = 0;                                   ///< of the graph workers
};

/// cudaq_host_dispatcher_loop_spec for C++ callers.
inline cudaq_status_t host_dispatcher_loop(const HostDispatcherConfig &config) {
  // A number that does not fit becomes the largest that does. The validation refuses that number with an error text.
  const auto narrow = [](std::size_t n) { return n > UINT32_MAX ? UINT32_MAX : static_cast<std::uint32_t>(n); };
  cudaq_dispatcher_config_t c{};
  c.device_id = config.device_id;
  c.num_slots = narrow(config.num_slots);
  c.slot_size = narrow(config.slot_size);
  c.dispatch_mode = CUDAQ_DISPATCH_HOST_CALL;
  c.dispatch_path = CUDAQ_DISPATCH_PATH_HOST;
  c.skip_tx_markers = config.skip_tx_markers ? 1 : 0;
  cudaq_ringbuffer_t ring{};
  ring.rx_flags_host = config.rx_flags;
  ring.tx_flags_host = config.tx_flags;
  ring.rx_data_host = config.rx_data_host;
  ring.tx_data_host = config.tx_data_host;
  ring.tx_flags = config.tx_flags_dev;
  ring.rx_data = config.rx_data_dev;
  ring.tx_data = config.tx_data_dev;
  ring.rx_stride_sz = config.rx_stride_sz;
  ring.tx_stride_sz = config.tx_stride_sz;
  const bool countable = config.function_table_count <= UINT32_MAX;
  const cudaq_function_table_t table{countable ? config.function_table : nullptr, narrow(config.function_table_count)};
  std::vector<cudaq_host_worker_t> workers;
  workers.reserve(config.workers.size());
  for (const HostDispatchWorker &w : config.workers)
    workers.push_back({w.graph_exec, w.stream, w.function_id, sizeof(cudaq_host_worker_t), w.routing_key,
                       w.pre_launch_fn, w.pre_launch_data, w.post_launch_fn, w.post_launch_data, w.completion, 0,
                       w.io_ctx, nullptr, nullptr});
  return cudaq_host_dispatcher_loop_spec(&c, &ring, &table, workers.data(), workers.size(), config.options,
                                         config.shutdown_flag, config.stats_counter);
}

} // namespace cudaq::realtime
#endif /* __cplusplus */

#endif
