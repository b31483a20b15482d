/* SPDX-License-Identifier: Apache-2.0 */
/* The names that the newer interface of the existing system ("upstream") adds, and the names to which it gives other
 * arguments than the specification. cudaq_realtime.h includes this header.
 *
 *   name                                  specification (default)   with CUDAQ_REALTIME_UPSTREAM_INTERFACE
 *   cudaq_create_dispatch_graph_regular   16 arguments, ..._spec    17 arguments, ..._upstream
 *   cudaq_dispatcher_set_unified_launch   launcher with 6, ..._spec launcher with 7 arguments, ..._upstream
 *   cudaq_dispatcher_set_mailbox          RX slots, ..._spec        IO contexts, ..._upstream
 *   cudaq_host_dispatcher_loop            8 arguments, ..._spec     one context, ..._upstream
 *   cudaq_launch_unified_dispatch_device  not declared              7 arguments, ..._upstream
 *
 * No library exports a name of the first column. The headers bind it to the symbol of one form, separately in each
 * translation unit. A program that was compiled with another header therefore does not link, instead of passing wrong
 * arguments. The macro is defined before the first header of this library. The ..._spec and ..._upstream functions may
 * be used directly, both in one file. See docs/migration.md. */
#ifndef CUDAQ_REALTIME_UPSTREAM_INTERFACE_H
#define CUDAQ_REALTIME_UPSTREAM_INTERFACE_H

#include "cudaq/realtime/daemon/dispatcher/cpu_relax.h"
#include "cudaq/realtime/daemon/dispatcher/realtime_types.h"
#if defined(CUDAQ_REALTIME_HAS_CUDA_HEADER)
#include "cudaq/realtime/daemon/dispatcher/device_dispatch.h"
#endif

#define CUDAQ_REALTIME_BOUND_TO(symbol) __asm__(symbol)

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------ graph of the scheduler -- */

#if defined(CUDAQ_REALTIME_HAS_CUDA_HEADER)
/* cudaq_create_dispatch_graph_regular_spec, and a graph that DEVICE_CALL handlers trigger; triggered_graph_exec may be
 * NULL. When a handler returns CUDAQ_DISPATCH_STATUS_TRIGGER_GRAPH, its request is answered with status 0 and with the
 * handler's result. Then the graph is launched, and after that the next request is served. The graph is instantiated
 * with cudaGraphInstantiateFlagDeviceLaunch and uploaded; only the scheduler may launch it. Nothing waits for its end,
 * except a stop. While an earlier launch of it still runs, the next launch waits, at most 1 s, and with it the requests
 * after that. A launch that fails has no effect on the answer, which is sent already: cudaq_dispatch_get_trigger_debug.
 * With a triggered graph num_blocks is 0 or 1, otherwise the call returns cudaErrorInvalidValue. */
cudaError_t cudaq_create_dispatch_graph_regular_upstream(
    volatile uint64_t *rx_flags, volatile uint64_t *tx_flags, uint8_t *rx_data, uint8_t *tx_data, size_t rx_stride_sz,
    size_t tx_stride_sz, cudaq_function_entry_t *function_table, size_t func_count, void *graph_io_ctx,
    volatile int *shutdown_flag, uint64_t *stats, size_t num_slots, uint32_t num_blocks, uint32_t threads_per_block,
    cudaGraphExec_t triggered_graph_exec, cudaStream_t stream, cudaq_dispatch_graph_context **out_context);
#if defined(CUDAQ_REALTIME_UPSTREAM_INTERFACE)
cudaError_t cudaq_create_dispatch_graph_regular(volatile uint64_t *rx_flags, volatile uint64_t *tx_flags,
                                                uint8_t *rx_data, uint8_t *tx_data, size_t rx_stride_sz,
                                                size_t tx_stride_sz, cudaq_function_entry_t *function_table,
                                                size_t func_count, void *graph_io_ctx, volatile int *shutdown_flag,
                                                uint64_t *stats, size_t num_slots, uint32_t num_blocks,
                                                uint32_t threads_per_block, cudaGraphExec_t triggered_graph_exec,
                                                cudaStream_t stream, cudaq_dispatch_graph_context **out_context)
    CUDAQ_REALTIME_BOUND_TO("cudaq_create_dispatch_graph_regular_upstream");
#else
cudaError_t cudaq_create_dispatch_graph_regular(volatile uint64_t *rx_flags, volatile uint64_t *tx_flags,
                                                uint8_t *rx_data, uint8_t *tx_data, size_t rx_stride_sz,
                                                size_t tx_stride_sz, cudaq_function_entry_t *function_table,
                                                size_t func_count, void *graph_io_ctx, volatile int *shutdown_flag,
                                                uint64_t *stats, size_t num_slots, uint32_t num_blocks,
                                                uint32_t threads_per_block, cudaStream_t stream,
                                                cudaq_dispatch_graph_context **out_context)
    CUDAQ_REALTIME_BOUND_TO("cudaq_create_dispatch_graph_regular_spec");
#endif
/* Of the scheduler with a triggered graph that was created last, also after its end: the cudaError_t of the last launch
 * of that graph, the number of its launches, and how often a scheduler has launched itself again. Each pointer may be
 * NULL. Without such a scheduler all are 0. Any thread; waits for a copy from the device. */
cudaError_t cudaq_dispatch_get_trigger_debug(int *trigger_rc, unsigned long long *trigger_fires,
                                             unsigned long long *tail_relaunches);
#endif /* CUDAQ_REALTIME_HAS_CUDA_HEADER */

/* What a DEVICE_CALL handler returns to trigger the graph. Without a triggered graph it is a status like others. */
#define CUDAQ_DISPATCH_STATUS_TRIGGER_GRAPH 0x12A6E5

/* --------------------------------------------------------- unified launch -- */

/* The launch function gets config.slot_size as tx_stride_sz, so slot_size must not be 0. transport_ctx must not be
 * NULL. launch_fn may be NULL: the unified kernel below, if it is linked into the program. It is if a file of the
 * program names its launch function, or if the linker gets `-u cudaq_launch_unified_dispatch_device_upstream`.
 * Otherwise start returns CUDAQ_ERR_INVALID_ARG. */
CUDAQ_REALTIME_API cudaq_status_t cudaq_dispatcher_set_unified_launch_upstream(
    cudaq_dispatcher_t *dispatcher, cudaq_unified_launch_upstream_fn_t launch_fn, void *transport_ctx);

/* In libcudaq-realtime-dispatch.a. Launches the unified kernel over the device hooks of a transport
 * (cudaq/realtime/daemon/bridge/device_transport.cuh): one block, whose first thread calls the hooks and the handlers,
 * in the order in which requests come. transport_ctx: the hooks' context, in memory that the device can read.
 * tx_stride_sz: the bytes of a request, and of a response; a multiple of 8, at least 24. */
void cudaq_launch_unified_dispatch_device_upstream(void *transport_ctx, size_t tx_stride_sz,
                                                   cudaq_function_entry_t *function_table, size_t func_count,
                                                   volatile int *shutdown_flag, uint64_t *stats, cudaStream_t stream);

/* ---------------------------------------------------------------- mailbox -- */

/* cudaq_dispatcher_set_mailbox_spec for graphs that expect a GraphIOContext. If RX and TX slots are separate, each
 * worker that is made from a GRAPH_LAUNCH entry of the table has a context of the library. Before a launch its word of
 * the mailbox gets the context's device address. The graph writes its response and sets the flag that the context
 * names. On a ring in place, and for workers of cudaq_dispatcher_set_host_workers, it is as with the other form.
 *
 * Views of the device that the ring lacks are looked up: its arrays are then in mapped memory. */
CUDAQ_REALTIME_API cudaq_status_t cudaq_dispatcher_set_mailbox_upstream(cudaq_dispatcher_t *dispatcher,
                                                                        void **h_mailbox_bank);

/* -------------------------------------------------------------- host loop -- */

/* One graph on one stream, serving one function id and routing key. The hooks are those of cudaq_host_worker_t. */
typedef struct cudaq_host_dispatch_worker_t {
  cudaGraphExec_t graph_exec;
  cudaStream_t stream;
  uint32_t function_id;
  void (*pre_launch_fn)(void *user_data, void *slot_dev, cudaStream_t stream);
  void *pre_launch_data;
  void (*post_launch_fn)(void *user_data, void *slot_dev, cudaStream_t stream);
  void *post_launch_data;
  uint64_t routing_key;
} cudaq_host_dispatch_worker_t;

/* Everything that the loop uses. It belongs to the caller and must stay until the loop has returned. Words to
 * which a void pointer leads are those of system-scope atomics (cuda::std::atomic or std::atomic). */
typedef struct cudaq_host_dispatch_loop_ctx_t {
  /* Host views. rx_stride_sz 0: config.slot_size. For workers: views of the device that are NULL are looked up. */
  cudaq_ringbuffer_t ringbuffer;
  cudaq_dispatcher_config_t config; /* dispatch_path and kernel_type are not read: the loop runs on the host */
  cudaq_function_table_t function_table;
  const cudaq_host_dispatch_worker_t *workers;
  size_t num_workers;
  void **h_mailbox_bank;   /* or NULL: a word per worker. It gets the device address of the worker's context if
                              io_ctxs_host is set, else that of the RX slot */
  void *shutdown_flag;     /* int: the loop ends when it is not 0 */
  uint64_t *stats_counter; /* processed requests */
  void *live_dispatched;   /* 64 bits, or NULL: counts graph launches */
  void *idle_mask;         /* 64 bits, or NULL: bit w is 1 while worker w is free. The loop clears it before a launch */
  int *inflight_slot_tags; /* or NULL: a word per worker, gets the slot before a launch */
  void *io_ctxs_host;      /* or NULL: array of cudaq::realtime::GraphIOContext in mapped memory, one per worker */
  void *io_ctxs_dev;       /* device address of the same array */
  /* false: the loop frees a worker when its graph has ended. With io_ctxs_host the graph publishes its answer, else the
   * loop publishes the frame that the graph has written to the TX slot. true: a thread of the caller publishes the
   * answer in slot inflight_slot_tags[w] and then sets bit w of idle_mask, which is required. */
  unsigned char skip_stream_sweep; /* bool */
} cudaq_host_dispatch_loop_ctx_t;

/* Runs the host dispatch loop on the calling thread until *shutdown_flag is not 0. Validation, loop and protocol are
 * those of cudaq_host_dispatcher_loop_spec with default options. If the context is refused, the function returns
 * immediately, without an answer to any request; cudaq_last_error_message then has the reason. */
CUDAQ_REALTIME_API void cudaq_host_dispatcher_loop_upstream(const cudaq_host_dispatch_loop_ctx_t *ctx);

/* --------------------------------------------- names, bound to their form -- */

#if defined(CUDAQ_REALTIME_UPSTREAM_INTERFACE)
cudaq_status_t cudaq_dispatcher_set_unified_launch(cudaq_dispatcher_t *dispatcher, cudaq_unified_launch_fn_t launch_fn,
                                                   void *transport_ctx)
    CUDAQ_REALTIME_BOUND_TO("cudaq_dispatcher_set_unified_launch_upstream");
cudaq_status_t cudaq_dispatcher_set_mailbox(cudaq_dispatcher_t *dispatcher, void **h_mailbox_bank)
    CUDAQ_REALTIME_BOUND_TO("cudaq_dispatcher_set_mailbox_upstream");
void cudaq_host_dispatcher_loop(const cudaq_host_dispatch_loop_ctx_t *ctx)
    CUDAQ_REALTIME_BOUND_TO("cudaq_host_dispatcher_loop_upstream");
void cudaq_launch_unified_dispatch_device(void *transport_ctx, size_t tx_stride_sz,
                                          cudaq_function_entry_t *function_table, size_t func_count,
                                          volatile int *shutdown_flag, uint64_t *stats, cudaStream_t stream)
    CUDAQ_REALTIME_BOUND_TO("cudaq_launch_unified_dispatch_device_upstream");
#else
cudaq_status_t cudaq_dispatcher_set_unified_launch(cudaq_dispatcher_t *dispatcher, cudaq_unified_launch_fn_t launch_fn,
                                                   void *transport_ctx)
    CUDAQ_REALTIME_BOUND_TO("cudaq_dispatcher_set_unified_launch_spec");
cudaq_status_t cudaq_dispatcher_set_mailbox(cudaq_dispatcher_t *dispatcher, void **h_mailbox_bank)
    CUDAQ_REALTIME_BOUND_TO("cudaq_dispatcher_set_mailbox_spec");
#endif /* cudaq_host_dispatcher_loop of the specification: host_dispatcher.h */

#ifdef __cplusplus
}
#endif

#endif
