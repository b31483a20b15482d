/* SPDX-License-Identifier: Apache-2.0 */
/* The part of the C API that needs the CUDA runtime's header: launch functions that return an error, the dispatch
 * kernels, and graph dispatch from the device. cudaq_realtime.h includes this header if the compiler finds that of the
 * CUDA runtime.
 *
 * The general rules of cudaq_realtime.h apply here too. */
#ifndef CUDAQ_REALTIME_DEVICE_DISPATCH_H
#define CUDAQ_REALTIME_DEVICE_DISPATCH_H

#include "cudaq/realtime/daemon/dispatcher/realtime_types.h"
#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A launch function that returns the error of its launch. Set as by cudaq_dispatcher_set_launch_fn: if both forms are
 * set, the later call counts. */
typedef cudaError_t (*cudaq_dispatch_launch_fn_v2_t)(const cudaq_dispatch_launch_params_t *params);
CUDAQ_REALTIME_API cudaq_status_t cudaq_dispatcher_set_launch_fn_v2(cudaq_dispatcher_t *dispatcher,
                                                                    cudaq_dispatch_launch_fn_v2_t launch_fn);

/* ------------------------------------------------------- dispatch kernels -- */
/* In libcudaq-realtime-dispatch.a. Programs that use these functions link it with separable compilation, because a
 * device function pointer is valid inside one module only. The functions launch on `stream`, which must be
 * non-blocking, and return immediately. Without a dispatcher the kernel serves until *shutdown_flag (device-visible) is
 * non-zero. If such a launch is refused, the v2 forms return the error; the other forms launch nothing and report
 * nothing.
 *
 *   Regular: one thread runs the handlers in slot order. With FIFO ordering blocks beyond the first serve nothing.
 *   Cooperative: all threads of the grid run each handler, at most 512 threads per block. */
void cudaq_launch_dispatch_kernel_regular(volatile uint64_t *rx_flags, volatile uint64_t *tx_flags, uint8_t *rx_data,
                                          uint8_t *tx_data, size_t rx_stride_sz, size_t tx_stride_sz,
                                          cudaq_function_entry_t *function_table, size_t func_count,
                                          volatile int *shutdown_flag, uint64_t *stats, size_t num_slots,
                                          uint32_t num_blocks, uint32_t threads_per_block, cudaStream_t stream);
void cudaq_launch_dispatch_kernel_cooperative(volatile uint64_t *rx_flags, volatile uint64_t *tx_flags,
                                              uint8_t *rx_data, uint8_t *tx_data, size_t rx_stride_sz,
                                              size_t tx_stride_sz, cudaq_function_entry_t *function_table,
                                              size_t func_count, volatile int *shutdown_flag, uint64_t *stats,
                                              size_t num_slots, uint32_t num_blocks, uint32_t threads_per_block,
                                              cudaStream_t stream);
cudaError_t cudaq_launch_dispatch_kernel_regular_v2(const cudaq_dispatch_launch_params_t *params);
cudaError_t cudaq_launch_dispatch_kernel_cooperative_v2(const cudaq_dispatch_launch_params_t *params);
/* For cudaq_dispatcher_set_unified_launch; transport_ctx is a cudaq_unified_ring_context_t. */
void cudaq_launch_unified_ring_kernel(void *transport_ctx, cudaq_function_entry_t *function_table, size_t func_count,
                                      volatile int *shutdown_flag, uint64_t *stats, cudaStream_t stream);
/* Number of blocks of the kernel that fit on one multiprocessor of the current device. These calls also load every
 * kernel of the archive: lazy loading cannot load them any more once one of them runs. */
cudaError_t cudaq_dispatch_kernel_query_occupancy(int *out_blocks, uint32_t threads_per_block);
cudaError_t cudaq_dispatch_kernel_cooperative_query_occupancy(int *out_blocks, uint32_t threads_per_block);
/* Sets the mode of later launches without a dispatcher by the two 14-argument launch functions, process-wide. Non-zero:
 * the kernel answers and clears only requests of its table and leaves all others in their slots. The kernel then cannot
 * detect that another dispatcher has served a slot and that the producer has refilled it, so requests of one function
 * may be served out of order. Such launches take no in-place ring and none with requests in device memory: no kernel
 * starts. Launches by a dispatcher ignore the mode: start() applies config.shared_ring_mode, which keeps the order. Any
 * thread; always returns cudaSuccess. */
cudaError_t cudaq_dispatch_kernel_set_shared_ring_mode(uint32_t enabled);

/* Graph dispatch from the device: a scheduler on the GPU launches GRAPH_LAUNCH entries and calls DEVICE_CALL entries.
 * The functions are in the archive, and in libcudaq-realtime-graphs.so for programs without device functions of their
 * own. They need compute capability 9.0 or higher, else they return cudaErrorNotSupported. Each graph must be
 * instantiated with cudaGraphInstantiateFlagDeviceLaunch and uploaded. While the scheduler runs, only the scheduler may
 * launch it. How a graph answers: GraphIOContext (dispatch_kernel_launch.h). See docs/graph_dispatch_device.md. */
typedef struct cudaq_dispatch_graph_context cudaq_dispatch_graph_context; /* opaque */

typedef enum cudaq_graph_io_kind_t {
  /* GraphIOContext: the graph raises a flag of the scheduler, and the scheduler publishes the answer */
  CUDAQ_GRAPH_IO_FORWARDED = 0,
  /* GraphIOContextV2: the graph publishes the answer itself, which saves one step */
  CUDAQ_GRAPH_IO_PUBLISHING = 1
} cudaq_graph_io_kind_t;

typedef struct cudaq_dispatch_graph_params_t {
  uint32_t struct_size; /* sizeof(cudaq_dispatch_graph_params_t) of the caller */
  /* cudaq_ordering_t. FIFO: requests of one function are launched in slot order. ANY: requests of one function and
   * routing key are. */
  uint32_t ordering;
  uint32_t unknown_function; /* cudaq_unknown_function_t */
  uint32_t graph_io_kind;    /* cudaq_graph_io_kind_t, of all contexts */
  uint32_t num_schedulers;   /* scheduler graphs that take turns, 1..32; 0: 8. Each keeps one block resident */
  /* 0: one launch on one stream puts all schedulers on the device. Non-zero: each scheduler has its own stream, and
   * each stream needs its own hardware queue (CUDA_DEVICE_MAX_CONNECTIONS). */
  uint32_t own_streams;
  /* Ring, table, shutdown flag, stats and stream as for a launch. num_blocks and threads_per_block are not used; state
   * is NULL. The struct is copied. */
  const cudaq_dispatch_launch_params_t *launch;
  /* Host array of launch->func_count device addresses, one per entry, multiples of 8. Addresses of entries in another
   * dispatch mode are ignored. Entries that share a context are never in flight at the same time. Entries that share a
   * graph must also share its context. */
  void *const *graph_io_ctxs;
} cudaq_dispatch_graph_params_t;

/* One context for all graphs: at most one graph request is in flight. The context is a whole GraphIOContext, all of
 * whose fields the scheduler writes before each launch, also if the graph reads only one. Works on `stream` and waits
 * for it. */
cudaError_t cudaq_create_dispatch_graph_regular_spec(volatile uint64_t *rx_flags, volatile uint64_t *tx_flags,
                                                     uint8_t *rx_data, uint8_t *tx_data, size_t rx_stride_sz,
                                                     size_t tx_stride_sz, cudaq_function_entry_t *function_table,
                                                     size_t func_count, void *graph_io_ctx, volatile int *shutdown_flag,
                                                     uint64_t *stats, size_t num_slots, uint32_t num_blocks,
                                                     uint32_t threads_per_block, cudaStream_t stream,
                                                     cudaq_dispatch_graph_context **out_context);
/* One context per graph: any number of requests in flight. */
cudaError_t cudaq_create_dispatch_graph_v2(const cudaq_dispatch_graph_params_t *params,
                                           cudaq_dispatch_graph_context **out_context);
/* Launches the scheduler on `stream`. It serves until *shutdown_flag is non-zero and all accepted requests are
 * answered; then `stream` is complete, and the context may be launched again. A new launch continues at the slot where
 * the last one stopped. cudaErrorNotReady: the last launch still runs.
 *
 * `stream` should be non-blocking. While the scheduler runs on a blocking stream (cudaStreamCreate), work of the legacy
 * stream waits for it: cudaMemcpy, cudaMemset, launches without a stream.
 *
 * After the shutdown the scheduler waits 5 s for its graphs. Then it answers requests that wait for a graph with
 * CUDAQ_RPC_ERR_SHUTTING_DOWN, and those of graphs that have ended without raising their flag with
 * CUDAQ_RPC_ERR_NO_RESPONSE (graphs that publish: the slot is given back without an answer). It waits for a graph that
 * still runs: CUDA does not complete the stream before.
 *
 * If no scheduler can launch anything any more, the run ends by itself: it first answers the requests that it accepted.
 * The next call of this function or of cudaq_destroy_dispatch_graph returns the reason, once. */
cudaError_t cudaq_launch_dispatch_graph(cudaq_dispatch_graph_context *context, cudaStream_t stream);
/* Stops the scheduler first if it runs, as *shutdown_flag does; the flag is not changed. cudaErrorNotReady: a graph
 * still runs after 6 s, or the context's device cannot be made current; nothing is freed, and the call may be repeated.
 * Any other error is the error of the last run; the context is freed. The call waits for all kernels that run on the
 * device: the CUDA runtime does so when it destroys a graph for launches from the device. */
cudaError_t cudaq_destroy_dispatch_graph(cudaq_dispatch_graph_context *context);

/* The same scheduler, started by a dispatcher: config.dispatch_mode is CUDAQ_DISPATCH_GRAPH_LAUNCH, the launch function
 * is cudaq_launch_dispatch_kernel_graph_v2, and cudaq_dispatcher_set_graph_io sets the contexts of the graphs. */
typedef struct cudaq_dispatch_graph_io_t {
  uint32_t struct_size;    /* sizeof(cudaq_dispatch_graph_io_t) of the caller */
  uint32_t graph_io_kind;  /* cudaq_graph_io_kind_t, of all contexts */
  uint32_t num_schedulers; /* as in cudaq_dispatch_graph_params_t */
  uint32_t num_contexts;   /* number of entries of the function table when start reads it */
  void *const *contexts;   /* as graph_io_ctxs above; the array is copied */
} cudaq_dispatch_graph_io_t;

/* Device path in GRAPH_LAUNCH mode. CUDAQ_ERR_STATE while the dispatcher runs. */
CUDAQ_REALTIME_API cudaq_status_t cudaq_dispatcher_set_graph_io(cudaq_dispatcher_t *dispatcher,
                                                                const cudaq_dispatch_graph_io_t *graph_io);
/* For cudaq_dispatcher_set_launch_fn_v2 of such a dispatcher only. In the archive and in
 * libcudaq-realtime-graphs.so. */
cudaError_t cudaq_launch_dispatch_kernel_graph_v2(const cudaq_dispatch_launch_params_t *params);

/* For launch functions: the state that start() prepared, if the calling thread is inside start(); else NULL. */
CUDAQ_REALTIME_API void *cudaq_dispatch_launch_state(void);

#ifdef __cplusplus
}
#endif

#endif
