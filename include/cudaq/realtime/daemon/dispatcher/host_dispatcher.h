/* SPDX-License-Identifier: Apache-2.0 */
/* The host dispatcher beyond the common C API: handlers with a user pointer, deferred completion, the job record, the
 * worker and its hooks, and the loop on a thread of the caller's own.
 *
 * The general rules of cudaq_realtime.h hold here too. */
#ifndef CUDAQ_REALTIME_HOST_DISPATCHER_H
#define CUDAQ_REALTIME_HOST_DISPATCHER_H

#include "cudaq/realtime/daemon/dispatcher/cudaq_realtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Job record: one accepted request. The generation makes it unique, so that a late completion of an earlier request
 * can never complete the one that holds the slot now. */
typedef struct cudaq_host_job_t {
  uint64_t generation;
  uint32_t slot;
  uint32_t request_id;
} cudaq_host_job_t;

/* One call of a v2 handler. `payload` and `result` never overlap, on an in-place ring either; but with
 * options.payload_in_slot they are the same memory there. */
typedef struct cudaq_host_call_t {
  const void *payload; /* payload_len bytes, 8-byte aligned; valid until the handler returns */
  void *result;        /* max_result_len bytes, 8-byte aligned; valid until the request is completed */
  uint32_t payload_len;
  uint32_t max_result_len;
  uint32_t result_len; /* out: bytes written to result, 0 on entry */
  uint32_t function_id;
  uint64_t ptp_timestamp;
  cudaq_host_job_t job;
} cudaq_host_call_t;

/* Return value of a v2 handler that answers later through cudaq_host_complete_deferred. */
#define CUDAQ_HOST_CALL_DEFERRED INT32_MIN

/* A HOST_CALL handler with a user pointer. Returns the status of the response; the library writes the frame. Threads
 * and exceptions as for cudaq_host_rpc_fn_t. */
typedef int32_t (*cudaq_host_handler_v2_t)(cudaq_host_call_t *call, void *user);

/* Serves function_id with a v2 handler, in addition to the function table (which may then be empty). An id that the
 * table carries too is refused by start. `user` is the caller's and must live until destroy. handler NULL removes it.
 * schema may be NULL. CUDAQ_ERR_STATE while running. */
CUDAQ_REALTIME_API cudaq_status_t cudaq_dispatcher_set_host_handler_v2(cudaq_dispatcher_t *dispatcher,
                                                                       uint32_t function_id,
                                                                       cudaq_host_handler_v2_t handler, void *user,
                                                                       const cudaq_handler_schema_t *schema);

/* Answers a request whose handler deferred it, from any thread. Before that handler has returned, the answer is kept and
 * published when it returns. The result (result_len bytes) must stand in call->result. A stop answers what is still open
 * when its grace period ends; the result area may then belong to another request, so see that nobody writes results any
 * more before you stop. CUDAQ_ERR_STATE: this job was completed already, by an earlier call or
 * by a stop whose grace period ended, or the dispatcher was never started; nothing was written. CUDAQ_ERR_INVALID_ARG:
 * result_len exceeds max_result_len, the slot is none of the ring's, the job is another dispatcher's, or status is
 * CUDAQ_HOST_CALL_DEFERRED. The job of a graph worker can be completed like this only if the worker's completion is
 * CUDAQ_WORKER_CALLER_PUBLISHES (else CUDAQ_ERR_STATE). */
CUDAQ_REALTIME_API cudaq_status_t cudaq_host_complete_deferred(cudaq_dispatcher_t *dispatcher,
                                                               const cudaq_host_job_t *job, int32_t status,
                                                               uint32_t result_len);

/* Hooks around the launch of a worker's graph, called on the dispatcher's thread with the worker's stream, its device
 * current. slot_dev: device address of the request's slot. They queue work and return: every request waits for them. One
 * that throws is counted (hook_failures); before the launch it fails its request, behind it the request goes on. */
typedef void (*cudaq_host_launch_hook_t)(void *user_data, void *slot_dev, cudaStream_t stream);

/* Who answers a worker's request, and thereby who frees the worker. 0, or a struct that ends before the field, means
 * LIBRARY_PUBLISHES. */
typedef enum cudaq_worker_completion_t {
  /* The graph writes its response frame to the TX slot; the library publishes it when the graph has ended. */
  CUDAQ_WORKER_LIBRARY_PUBLISHES = 0,
  /* The graph writes its frame and raises the tx flag itself, through its GraphIOContext; the library frees the worker
   * when the graph has ended. With markers, a graph that ends without having raised it is answered NO_RESPONSE. */
  CUDAQ_WORKER_GRAPH_PUBLISHES = 1,
  /* A thread of the caller's learns from the graph that it is done, answers, and calls cudaq_host_release_worker: when
   * the graph has read its slot, io_ctx and mailbox word for the last time, since the next launch may follow at once. */
  CUDAQ_WORKER_CALLER_PUBLISHES = 2
} cudaq_worker_completion_t;

/* A worker: one captured graph on one stream, serving one function id and routing key. */
typedef struct cudaq_host_worker_t {
  cudaGraphExec_t graph_exec;
  cudaStream_t stream;
  uint32_t function_id;
  uint32_t struct_size; /* sizeof(cudaq_host_worker_t) of the caller; in an array also the distance of its elements */
  uint64_t routing_key;
  cudaq_host_launch_hook_t pre_launch_fn; /* may be NULL: before the launch, e.g. to stage the input */
  void *pre_launch_data;
  cudaq_host_launch_hook_t post_launch_fn; /* may be NULL: after the launch, e.g. to queue an extraction */
  void *post_launch_data;
  uint32_t completion; /* cudaq_worker_completion_t */
  uint32_t reserved;
  void *io_ctx; /* host address of the worker's cudaq::realtime::GraphIOContext, in mapped memory, or NULL */
} cudaq_host_worker_t;

/* The graph workers of a dispatcher on the host path: at most 64, named by their position. Several with one function id
 * and routing key are a pool. They replace what was set before; none (0): every GRAPH_LAUNCH entry of the function table
 * gets a LIBRARY_PUBLISHES worker and a stream of its own if config.dispatch_mode is GRAPH_LAUNCH or a mailbox is set.
 * A worker without a stream gets one. The ring's device views must be set, and lead to memory that the device can use:
 * start refuses plain host memory. Graphs, streams and contexts are the caller's and must live until a stop has returned
 * CUDAQ_OK or CUDAQ_ERR_CUDA: no graph runs then, and nothing touches io_ctx and mailbox any more. A worker that the
 * caller has not given back by then is still his; start is refused (CUDAQ_ERR_STATE) until he has. Behind a fault of the
 * device all workers count as given back. CUDAQ_ERR_STATE while running. */
CUDAQ_REALTIME_API cudaq_status_t cudaq_dispatcher_set_host_workers(cudaq_dispatcher_t *dispatcher,
                                                                    const cudaq_host_worker_t *workers,
                                                                    size_t num_workers);
/* One word per worker, in mapped memory of the caller's: before a launch it gets the device address of the request's
 * slot, for graphs and hooks to read. Like io_ctx it is written for one launch at a time and keeps its value until the
 * worker's next one. NULL: none. CUDAQ_ERR_STATE while running. */
CUDAQ_REALTIME_API cudaq_status_t cudaq_dispatcher_set_mailbox(cudaq_dispatcher_t *dispatcher, void **h_mailbox_bank);

/* Gives a CALLER_PUBLISHES worker back, from any thread but beside start. Its request may be completed before or after,
 * by cudaq_host_complete_deferred with the job of cudaq_host_worker_job. With markers, a caller who has raised the tx
 * flag himself before this call need not complete. CUDAQ_ERR_STATE: the worker is idle, or the library frees it. */
CUDAQ_REALTIME_API cudaq_status_t cudaq_host_release_worker(cudaq_dispatcher_t *dispatcher, int worker_id);
/* The request that a busy worker works on, from any thread but beside start; its result goes to the TX slot job->slot.
 * CUDAQ_ERR_STATE: the worker is idle. */
CUDAQ_REALTIME_API cudaq_status_t cudaq_host_worker_job(cudaq_dispatcher_t *dispatcher, int worker_id,
                                                        cudaq_host_job_t *out_job);

/* Runs the host dispatch loop on the calling thread until *shutdown_flag becomes non-zero, then returns CUDAQ_OK.
 * Same validation, turn and protocol as a dispatcher on the host path; no thread is started unless options (may be
 * NULL) ask for a handler pool. With a pool it returns when the pool's handlers have; grace_period_ns bounds only what
 * deferred requests get, and graphs: requests that still wait for a worker then are answered SHUTTING_DOWN, and a graph
 * that still runs is left alone (CUDAQ_ERR_TIMEOUT; what it uses must stay, and a little memory of the library's stays with
 * it). There is no mailbox: use io_ctx or hooks. *shutdown_flag is not cleared first. workers as for cudaq_dispatcher_set_host_workers, but none
 * that the caller gives back (CUDAQ_ERR_UNSUPPORTED): there is no handle to do it with. */
CUDAQ_REALTIME_API cudaq_status_t cudaq_host_dispatcher_loop(const cudaq_dispatcher_config_t *config,
                                                             const cudaq_ringbuffer_t *ringbuffer,
                                                             const cudaq_function_table_t *table,
                                                             const cudaq_host_worker_t *workers, size_t num_workers,
                                                             const cudaq_dispatcher_options_t *options,
                                                             volatile int *shutdown_flag, uint64_t *stats);

#ifdef __cplusplus
} /* extern "C" */

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cudaq::realtime {

/// A graph worker under the name that C++ pipelines use.
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

/// Everything host_dispatcher_loop needs; all pointers are the caller's and stay valid until it returns. No mailbox: a
/// worker's graph finds its slot by io_ctx, or a hook copies it.
struct HostDispatcherConfig {
  volatile std::uint64_t *rx_flags = nullptr; ///< host view, as all pointers here but *_dev
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

/// cudaq_host_dispatcher_loop for C++ callers.
inline cudaq_status_t host_dispatcher_loop(const HostDispatcherConfig &config) {
  // A number that does not fit is passed on as the largest that does, which the validation refuses with a text.
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
                       w.io_ctx});
  return cudaq_host_dispatcher_loop(&c, &ring, &table, workers.data(), workers.size(), config.options,
                                    config.shutdown_flag, config.stats_counter);
}

} // namespace cudaq::realtime
#endif /* __cplusplus */

#endif
