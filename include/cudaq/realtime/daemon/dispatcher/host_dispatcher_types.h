/* SPDX-License-Identifier: Apache-2.0 */
/* The types of host_dispatcher.h, without its functions and without a CUDA header. */
#ifndef CUDAQ_REALTIME_HOST_DISPATCHER_TYPES_H
#define CUDAQ_REALTIME_HOST_DISPATCHER_TYPES_H

#include "cudaq/realtime/daemon/dispatcher/realtime_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Job record: one accepted request. The generation makes it unique: a late completion of an earlier request cannot
 * complete the request that is in the slot now. */
typedef struct cudaq_host_job_t {
  uint64_t generation;
  uint32_t slot;
  uint32_t request_id;
} cudaq_host_job_t;

/* One call of a v2 handler. `payload` and `result` never overlap, also on an in-place ring. Exception: with
 * options.payload_in_slot they are the same memory there. */
typedef struct cudaq_host_call_t {
  const void *payload; /* payload_len bytes, 8-byte aligned; valid until the handler returns */
  void *result;        /* max_result_len bytes, 8-byte aligned; valid until the request is completed */
  uint32_t payload_len;
  uint32_t max_result_len;
  uint32_t result_len; /* out: bytes written to result; 0 on entry */
  uint32_t function_id;
  uint64_t ptp_timestamp;
  cudaq_host_job_t job;
} cudaq_host_call_t;

/* Return value of a v2 handler that answers later through cudaq_host_complete_deferred. */
#define CUDAQ_HOST_CALL_DEFERRED INT32_MIN

/* A HOST_CALL handler with a user pointer. It returns the status of the response; the library writes the frame. Threads
 * and exceptions as for cudaq_host_rpc_fn_t. */
typedef int32_t (*cudaq_host_handler_v2_t)(cudaq_host_call_t *call, void *user);

/* A hook around the launch of a worker's graph, called with the worker's stream, with its device current, on the
 * dispatcher's thread (with one exception: cudaq_hand_over_t). slot_dev: device address of the request's slot. A hook
 * queues work and returns; all requests wait while it runs. A hook that throws is counted (hook_failures). If it throws
 * before the launch, its request fails; if it throws after the launch, the request continues. */
typedef void (*cudaq_host_launch_hook_t)(void *user_data, void *slot_dev, cudaStream_t stream);

/* Launches the graph of a worker on the calling thread; to be called once, on any thread. Returns a CUDA error, 0:
 * launched. After an error the library answers the request and frees the worker, as after any launch that fails. */
typedef int (*cudaq_host_launch_fn_t)(void *launch_data);

/* Called on the dispatcher's thread in place of the launch if further requests wait, after the pre-launch hook or
 * before it (cudaq_hand_over_t): a thread of the caller can launch this graph while the dispatcher stages the next one.
 * It stores both arguments for that thread and returns 1, or returns 0: then the dispatcher launches. It must not
 * throw, wait or end its thread.
 *
 * After 1 the caller must call launch(launch_data), also during a stop, which waits for it. The post-launch hook is not
 * called for this request. The answer may follow immediately. */
typedef int (*cudaq_host_hand_over_t)(void *user_data, cudaq_host_launch_fn_t launch, void *launch_data);

/* What a hand_over_fn hands over. LAUNCH if the field is 0 or the struct ends before it. */
typedef enum cudaq_hand_over_t {
  /* The launch. The pre-launch hook stays on the dispatcher's thread, which calls one hook at a time. */
  CUDAQ_HAND_OVER_LAUNCH = 0,
  /* The pre-launch hook, too: launch(launch_data) calls it first, on its own thread, with the worker's device current.
   * Hooks of different workers then run at the same time, and not in the order of their requests. A hook that throws
   * is a launch that fails. */
  CUDAQ_HAND_OVER_HOOK_AND_LAUNCH = 1
} cudaq_hand_over_t;

/* Who answers a worker's request, and who frees the worker after that. LIBRARY_PUBLISHES if the field is 0 or the
 * struct ends before it. */
typedef enum cudaq_worker_completion_t {
  /* The graph writes its response frame to the TX slot. The library publishes it when the graph has ended. */
  CUDAQ_WORKER_LIBRARY_PUBLISHES = 0,
  /* The graph writes its frame and sets the tx flag itself, through its GraphIOContext. The library frees the worker
   * when the graph has ended. With markers: if the graph ends without setting the flag, the library answers
   * NO_RESPONSE. */
  CUDAQ_WORKER_GRAPH_PUBLISHES = 1,
  /* The graph notifies a thread of the caller that it is done. That thread answers and calls cudaq_host_release_worker.
   * It must call it only after the graph has read its slot, io_ctx and mailbox word for the last time, because the next
   * launch may follow immediately. */
  CUDAQ_WORKER_CALLER_PUBLISHES = 2
} cudaq_worker_completion_t;

/* A worker: one captured graph on one stream, serving one function id and routing key. */
typedef struct cudaq_host_worker_t {
  cudaGraphExec_t graph_exec;
  cudaStream_t stream;
  uint32_t function_id;
  uint32_t struct_size; /* sizeof(cudaq_host_worker_t) of the caller; in an array also the stride of the elements */
  uint64_t routing_key;
  cudaq_host_launch_hook_t pre_launch_fn; /* may be NULL: before the launch, e.g. to stage the input */
  void *pre_launch_data;
  cudaq_host_launch_hook_t post_launch_fn; /* may be NULL: after the launch, e.g. to queue an extraction */
  void *post_launch_data;
  uint32_t completion; /* cudaq_worker_completion_t */
  uint32_t hand_over;  /* cudaq_hand_over_t; only with hand_over_fn */
  void *io_ctx;        /* host address of the worker's cudaq::realtime::GraphIOContext, in mapped memory, or NULL */
  cudaq_host_hand_over_t hand_over_fn; /* may be NULL: the dispatcher launches. Only with CALLER_PUBLISHES */
  void *hand_over_data;
} cudaq_host_worker_t;

#ifdef __cplusplus
}
#endif

#endif
