/* SPDX-License-Identifier: Apache-2.0 */
/* The C API: a manager owns dispatchers; a dispatcher serves the requests of one ring buffer.
 *
 *   manager_create -> dispatcher_create -> set_ringbuffer, set_function_table, set_control
 *                  -> start -> (traffic) -> stop -> dispatcher_destroy -> manager_destroy
 *
 * Rules that hold for every function unless its comment states otherwise:
 *  - Return: CUDAQ_OK or an error. After an error nothing has changed; on the same thread cudaq_last_error_message()
 *    returns the reason.
 *  - Threads: calls that wire, start, stop or destroy one dispatcher may come from any thread; the library serialises
 *    them. Reading calls (get_*, dump_state) and slot helpers may run at the same time, from any thread. No thread may
 *    use a handle during or after the destroy that returns CUDAQ_OK.
 *  - Ownership: the library keeps pointers to ring memory and control words from the set_* call to the destroy that
 *    returns CUDAQ_OK. It never frees what the caller allocated. It copies the structs that are passed in.
 *  - Signals and cancellation: on the library's own threads cancellation is disabled, and all signals are blocked
 *    except those that a thread causes by its own instructions (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGSYS, SIGTRAP,
 *    SIGABRT). No function is a cancellation point: a pthread_cancel of its caller takes effect after it has returned.
 *  - Sizes are in bytes. No function prints, aborts, throws, or changes the caller's current CUDA device.
 *
 * The slot protocol is specified in docs/ring_protocol.md, the frames in docs/message_protocol.md. */
#ifndef CUDAQ_REALTIME_H
#define CUDAQ_REALTIME_H

#include "cudaq/realtime/daemon/dispatcher/cudaq_status.h"
#include "cudaq/realtime/daemon/dispatcher/rpc_wire_format.h"
#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define CUDAQ_REALTIME_API __attribute__((visibility("default")))
#else
#define CUDAQ_REALTIME_API
#endif

/* Three names have two forms: that of the specification, which is the default, and that of the newer interface of the
 * existing system ("upstream"). The forms are ..._spec and ..._upstream; upstream_interface.h binds the name to one. */

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------- types -- */

typedef struct cudaq_dispatch_manager_t cudaq_dispatch_manager_t;   /* opaque */
typedef struct cudaq_dispatcher_t cudaq_dispatcher_t;               /* opaque */
typedef struct cudaq_ringbuffer_memory_t cudaq_ringbuffer_memory_t; /* opaque */

typedef enum cudaq_dispatch_path_t {
  CUDAQ_DISPATCH_PATH_DEVICE = 0,
  CUDAQ_DISPATCH_PATH_HOST = 1
} cudaq_dispatch_path_t;

typedef enum cudaq_tx_status_t {
  CUDAQ_TX_EMPTY = 0,     /* no answer yet */
  CUDAQ_TX_IN_FLIGHT = 1, /* request accepted, answered later; no answer yet */
  CUDAQ_TX_ERROR = 2,     /* a launch failed; no frame, the flag holds the CUDA error */
  CUDAQ_TX_READY = 3      /* the TX slot holds a response frame */
} cudaq_tx_status_t;

typedef enum cudaq_kernel_type_t {
  CUDAQ_KERNEL_REGULAR = 0,
  CUDAQ_KERNEL_COOPERATIVE = 1,
  CUDAQ_KERNEL_UNIFIED = 2
} cudaq_kernel_type_t;

typedef enum cudaq_dispatch_mode_t {
  CUDAQ_DISPATCH_DEVICE_CALL = 0,
  CUDAQ_DISPATCH_GRAPH_LAUNCH = 1,
  CUDAQ_DISPATCH_HOST_CALL = 2
} cudaq_dispatch_mode_t;

typedef enum cudaq_payload_type_t {
  CUDAQ_TYPE_UINT8 = 0x10,
  CUDAQ_TYPE_INT32 = 0x11,
  CUDAQ_TYPE_INT64 = 0x12,
  CUDAQ_TYPE_FLOAT32 = 0x13,
  CUDAQ_TYPE_FLOAT64 = 0x14,
  CUDAQ_TYPE_UINT32 = 0x15,
  CUDAQ_TYPE_ARRAY_UINT8 = 0x20,
  CUDAQ_TYPE_ARRAY_INT32 = 0x21,
  CUDAQ_TYPE_ARRAY_FLOAT32 = 0x22,
  CUDAQ_TYPE_ARRAY_FLOAT64 = 0x23,
  CUDAQ_TYPE_BIT_PACKED = 0x30 /* LSB first */
} cudaq_payload_type_t;

#define CUDAQ_MAX_ARGS 8
#define CUDAQ_MAX_RESULTS 4

/* One argument or result of a handler. */
typedef struct cudaq_type_desc_t {
  uint8_t type_id; /* cudaq_payload_type_t */
  uint8_t reserved[3];
  uint32_t size_bytes;   /* 0: variable */
  uint32_t num_elements; /* scalars 1, arrays elements, BIT_PACKED bits */
} cudaq_type_desc_t;

/* Arguments and results of a handler. All zero: no schema, any size is accepted. */
typedef struct cudaq_handler_schema_t {
  uint8_t num_args, num_results;
  uint16_t reserved;
  cudaq_type_desc_t args[CUDAQ_MAX_ARGS];
  cudaq_type_desc_t results[CUDAQ_MAX_RESULTS];
} cudaq_handler_schema_t;

/* Fixed properties of a dispatcher. 0 in device_id, num_blocks, threads_per_block, vp_id, kernel_type or dispatch_mode
 * selects the default: 0, 1, 32, 0, regular, device call. */
typedef struct cudaq_dispatcher_config_t {
  int device_id;
  /* Device path. More than one block has an effect in two cases only: a cooperative kernel runs each handler on all of
   * them; a regular kernel with CUDAQ_ORDERING_ANY serves 32 slots with each warp. With FIFO ordering one warp serves
   * the ring, and blocks beyond the first are not launched. The same holds for the unified kernel. GRAPH_LAUNCH mode
   * does not use num_blocks. dump_state names unused blocks. */
  uint32_t num_blocks;
  uint32_t threads_per_block;
  uint32_t num_slots; /* slots of the ring; may be 0 for CUDAQ_KERNEL_UNIFIED only */
  uint32_t slot_size; /* usable bytes of a slot, at most the stride; 0: the stride */
  uint32_t vp_id;     /* tag for the transport; the library does not interpret it */
  cudaq_kernel_type_t kernel_type;
  cudaq_dispatch_mode_t dispatch_mode;
  cudaq_dispatch_path_t dispatch_path;
  int skip_tx_markers;       /* non-zero: tx flags never get a sentinel (IN_FLIGHT, error) */
  uint32_t shared_ring_mode; /* non-zero: several dispatchers serve this ring, each its own function ids */
} cudaq_dispatcher_config_t;

/* A ring: two flag arrays and two slot arrays, each as a device view and as a host view (*_host). Host path: the host
 * views are required, except tx_data_host. It may be NULL, together with tx_data, for an in-place ring, whose response
 * overwrites the request. Device path: the device views are required. On a shared ring the library needs the host
 * views, too; it finds those that are NULL if the arrays are pinned and mapped (cudaHostAlloc, cudaHostRegister).
 * Flags are 8-byte aligned. Slot bases and strides are multiples of 8. */
typedef struct cudaq_ringbuffer_t {
  volatile uint64_t *rx_flags;
  volatile uint64_t *tx_flags;
  uint8_t *rx_data;
  uint8_t *tx_data;
  size_t rx_stride_sz;
  size_t tx_stride_sz;
  volatile uint64_t *rx_flags_host;
  volatile uint64_t *tx_flags_host;
  uint8_t *rx_data_host;
  uint8_t *tx_data_host;
} cudaq_ringbuffer_t;

/* A HOST_CALL handler. It reads the request frame in rx_slot and writes a response frame (cudaq_rpc_response_t, then
 * the result) to tx_slot, at most slot_size bytes in all. On an in-place ring tx_slot == rx_slot. The dispatcher calls
 * it for one request of a function id at a time, unless the ordering is CUDAQ_ORDERING_ANY. Afterwards the dispatcher
 * checks magic, status and length, and writes request_id and ptp_timestamp itself. The status is 0, positive, or -1 to
 * -999. After a C++ exception it answers CUDAQ_RPC_ERR_HANDLER_THREW. A handler must return: if it ends its thread
 * (pthread_exit), its request is answered in the same way, and the run ends with it (CUDAQ_DISPATCHER_FAILED). */
typedef void (*cudaq_host_rpc_fn_t)(const void *rx_slot, void *tx_slot, size_t slot_size);

typedef struct cudaq_function_entry_t {
  union {
    void *device_fn_ptr;
    cudaGraphExec_t graph_exec;
    cudaq_host_rpc_fn_t host_fn;
  } handler;
  uint32_t function_id; /* FNV-1a of the handler's name */
  uint8_t dispatch_mode;
  uint8_t reserved[3];
  cudaq_handler_schema_t schema;
  /* GRAPH_LAUNCH: selects among the entries of one function id. 0 serves all keys that no entry of the id has. */
  uint64_t routing_key;
} cudaq_function_entry_t;

/* entries: a device pointer on the device path, a host pointer on the host path. */
typedef struct cudaq_function_table_t {
  cudaq_function_entry_t *entries;
  uint32_t count;
} cudaq_function_table_t;

typedef void (*cudaq_dispatch_launch_fn_t)(volatile uint64_t *rx_flags, volatile uint64_t *tx_flags, uint8_t *rx_data,
                                           uint8_t *tx_data, size_t rx_stride_sz, size_t tx_stride_sz,
                                           cudaq_function_entry_t *function_table, size_t func_count,
                                           volatile int *shutdown_flag, uint64_t *stats, size_t num_slots,
                                           uint32_t num_blocks, uint32_t threads_per_block, cudaStream_t stream);
/* The same arguments as a struct, and the state that start() prepares. A launch function of this form returns the error
 * of its launch. */
typedef struct cudaq_dispatch_launch_params_t {
  uint32_t struct_size; /* sizeof(cudaq_dispatch_launch_params_t) in the code that fills it */
  uint32_t num_blocks;
  uint32_t threads_per_block;
  uint32_t reserved;
  volatile uint64_t *rx_flags;
  volatile uint64_t *tx_flags;
  uint8_t *rx_data;
  uint8_t *tx_data;
  size_t rx_stride_sz;
  size_t tx_stride_sz;
  cudaq_function_entry_t *function_table; /* device memory */
  size_t func_count;
  volatile int *shutdown_flag;
  uint64_t *stats;
  size_t num_slots;
  cudaStream_t stream;
  void *state; /* opaque state of the dispatcher that starts the kernel; NULL: no dispatcher */
} cudaq_dispatch_launch_params_t;
typedef cudaError_t (*cudaq_dispatch_launch_fn_v2_t)(const cudaq_dispatch_launch_params_t *params);
/* A launch function of a unified kernel. The upstream form has the bytes of a response slot as second argument. */
typedef void (*cudaq_unified_launch_spec_fn_t)(void *transport_ctx, cudaq_function_entry_t *function_table,
                                               size_t func_count, volatile int *shutdown_flag, uint64_t *stats,
                                               cudaStream_t stream);
typedef void (*cudaq_unified_launch_upstream_fn_t)(void *transport_ctx, size_t tx_stride_sz,
                                                   cudaq_function_entry_t *function_table, size_t func_count,
                                                   volatile int *shutdown_flag, uint64_t *stats, cudaStream_t stream);
#if defined(CUDAQ_REALTIME_UPSTREAM_INTERFACE)
typedef cudaq_unified_launch_upstream_fn_t cudaq_unified_launch_fn_t;
#else
typedef cudaq_unified_launch_spec_fn_t cudaq_unified_launch_fn_t;
#endif
typedef struct cudaq_unified_dispatch_ctx_t {
  cudaq_unified_launch_fn_t launch_fn;
  void *transport_ctx;
} cudaq_unified_dispatch_ctx_t;

/* transport_ctx of cudaq_launch_unified_ring_kernel: the unified kernel serves a ring in mapped or device memory. */
typedef struct cudaq_unified_ring_context_t {
  uint32_t struct_size; /* sizeof(cudaq_unified_ring_context_t) of the caller */
  uint32_t num_slots;
  uint32_t slot_size;      /* usable bytes, at most the strides; 0: the smaller stride */
  uint32_t threads;        /* 0: 32 */
  cudaq_ringbuffer_t ring; /* device views */
} cudaq_unified_ring_context_t;

/* -------------------------------------------------- version and error text -- */

/* CUDAQ_REALTIME_VERSION (version.h) of the library that is loaded, which may differ from that of the header. */
CUDAQ_REALTIME_API uint32_t cudaq_realtime_version(void);

/* Optional parts of the library that is loaded. A header newer than the library may define bits that the library never
 * sets. */
#define CUDAQ_REALTIME_FEATURE_HOST_PATH 0x1u   /* HOST_CALL dispatch by a CPU thread */
#define CUDAQ_REALTIME_FEATURE_CUDA_MEMORY 0x2u /* mapped and device rings; they need a driver */
#define CUDAQ_REALTIME_FEATURE_NUMA 0x4u        /* NUMA placement of rings and threads */
#define CUDAQ_REALTIME_FEATURE_DEVICE_PATH 0x8u /* dispatch by a kernel; needs a driver and a launch function */
CUDAQ_REALTIME_API uint64_t cudaq_realtime_features(void);

/* Name and meaning of a status. Never NULL; static storage. */
CUDAQ_REALTIME_API const char *cudaq_status_string(cudaq_status_t status);
/* Meaning of the status field of a response. Never NULL; static storage. */
CUDAQ_REALTIME_API const char *cudaq_rpc_status_string(int32_t status);
/* Reason of the last failed call of this thread: function, argument, value. Empty before the first failure; valid until
 * another call of the thread fails. */
CUDAQ_REALTIME_API const char *cudaq_last_error_message(void);

/* ---------------------------------------------------- manager, dispatcher -- */

CUDAQ_REALTIME_API cudaq_status_t cudaq_dispatch_manager_create(cudaq_dispatch_manager_t **out_mgr);
/* CUDAQ_ERR_STATE while the manager owns dispatchers. If the manager has used the device path, this call frees pinned
 * memory and graphs, which waits for all kernels that run. So end the kernels of other managers first, and keep the
 * modules of the launch functions loaded. */
CUDAQ_REALTIME_API cudaq_status_t cudaq_dispatch_manager_destroy(cudaq_dispatch_manager_t *mgr);

/* The manager's first dispatcher with CUDAQ_DISPATCH_GRAPH_LAUNCH on a device path grows the driver's pool of streams.
 * That waits for all kernels of the program that already run on the device; if they do not end, it waits without limit.
 * So create this dispatcher before you start such kernels, or declare them by cudaq_dispatch_manager_reserve_blocks:
 * then the pool is not grown. */
CUDAQ_REALTIME_API cudaq_status_t cudaq_dispatcher_create(cudaq_dispatch_manager_t *mgr,
                                                          const cudaq_dispatcher_config_t *config,
                                                          cudaq_dispatcher_t **out_dispatcher);
/* Stops the dispatcher first if it runs. CUDAQ_ERR_TIMEOUT: a handler did not return within the grace period. The
 * handle then stays valid, ring and control words must stay, and the call may be repeated. */
CUDAQ_REALTIME_API cudaq_status_t cudaq_dispatcher_destroy(cudaq_dispatcher_t *dispatcher);

/* Wiring; CUDAQ_ERR_STATE while the dispatcher runs. If the caller's own shutdown flag has ended the run, the next
 * wiring call or start first completes the stop, and can return the errors of cudaq_dispatcher_stop. */
CUDAQ_REALTIME_API cudaq_status_t cudaq_dispatcher_set_ringbuffer(cudaq_dispatcher_t *dispatcher,
                                                                  const cudaq_ringbuffer_t *ringbuffer);
/* start copies the entries. Later changes of the table have no effect on that run. */
CUDAQ_REALTIME_API cudaq_status_t cudaq_dispatcher_set_function_table(cudaq_dispatcher_t *dispatcher,
                                                                      const cudaq_function_table_t *table);
/* shutdown_flag: belongs to the library from this call to destroy: start clears it, stop sets it. The caller may set it
 * to end the loop. stats: one counter of processed requests (answered or dropped). It continues from the value that
 * start finds in it. No other dispatcher may use these words at the same time. CUDAQ_ERR_INVALID_ARG: a word is NULL or
 * not aligned to its size. */
CUDAQ_REALTIME_API cudaq_status_t cudaq_dispatcher_set_control(cudaq_dispatcher_t *dispatcher,
                                                               volatile int *shutdown_flag, uint64_t *stats);

/* Device path: the function that launches the kernel, from the archive (libcudaq-realtime-dispatch.a) or the caller's
 * own. If both forms are set, the later call counts. start calls the function once, on the thread that called start,
 * with the dispatcher's device current. */
CUDAQ_REALTIME_API cudaq_status_t cudaq_dispatcher_set_launch_fn(cudaq_dispatcher_t *dispatcher,
                                                                 cudaq_dispatch_launch_fn_t launch_fn);
CUDAQ_REALTIME_API cudaq_status_t cudaq_dispatcher_set_launch_fn_v2(cudaq_dispatcher_t *dispatcher,
                                                                    cudaq_dispatch_launch_fn_v2_t launch_fn);
/* CUDAQ_KERNEL_UNIFIED: the launch function and its transport context, which must live until destroy. Such a dispatcher
 * has no ring. The last call of this function or of its other form counts (upstream_interface.h). */
CUDAQ_REALTIME_API cudaq_status_t cudaq_dispatcher_set_unified_launch_spec(cudaq_dispatcher_t *dispatcher,
                                                                           cudaq_unified_launch_spec_fn_t launch_fn,
                                                                           void *transport_ctx);
/* Host path with CUDAQ_KERNEL_UNIFIED: the dispatcher's loop receives and sends through a provider of a transport.
 * cpu_dataplane is a const cudaq_cpu_dataplane_t * (daemon/bridge/bridge_interface.h). It is copied; ctx and ring
 * must stay until destroy. It replaces the ring: config.num_slots and slot_size are those of the provider's slots. */
CUDAQ_REALTIME_API cudaq_status_t cudaq_dispatcher_set_cpu_dataplane(cudaq_dispatcher_t *dispatcher,
                                                                     const void *cpu_dataplane);
/* Host path: a transport whose answers are shorter than a slot. Longer results are answered
 * CUDAQ_RPC_ERR_RESULT_TOO_LARGE, and handlers find the limit in max_result_len. Bytes without the 24 bytes of the
 * header; 0, the default, and larger numbers: as many bytes as a slot holds. */
CUDAQ_REALTIME_API cudaq_status_t cudaq_dispatcher_set_max_result_bytes(cudaq_dispatcher_t *dispatcher, uint32_t bytes);
/* Declares that `blocks` blocks of the caller's own kernels stay resident on a device while dispatchers of the manager
 * run. start then refuses a cooperative grid that does not fit on the device together with them. 0 revokes the
 * declaration. */
CUDAQ_REALTIME_API cudaq_status_t cudaq_dispatch_manager_reserve_blocks(cudaq_dispatch_manager_t *mgr, int device_id,
                                                                        uint32_t blocks);

/* Returns when the dispatcher's threads, or its kernel, run. CUDAQ_ERR_INVALID_ARG: something is not wired. The
 * dispatcher continues at the slot where it stopped last; a newly wired ring begins at slot 0. Device path:
 * CUDAQ_ERR_TIMEOUT if the launch is queued but the kernel has not begun to run after 5 s, because the device has no
 * room for it. start then requests the kernel to end; the state is CUDAQ_DISPATCHER_FAILED until a stop finds that the
 * kernel has ended. CUDAQ_ERR_STATE: arrays of the ring or a control word overlap memory of another running dispatcher
 * of the manager (members of one shared ring may share its arrays), or a dispatcher of another manager runs on this
 * ring, and cudaq_ringbuffer_create has made it in host or mapped memory. Other double use is not detected. */
CUDAQ_REALTIME_API cudaq_status_t cudaq_dispatcher_start(cudaq_dispatcher_t *dispatcher);
/* Ends the loop after the present request and waits for the requests that are accepted, at most the grace period of the
 * options. Requests that are not accepted stay in their slots. A handler of the same dispatcher must not call it
 * (CUDAQ_ERR_STATE). */
CUDAQ_REALTIME_API cudaq_status_t cudaq_dispatcher_stop(cudaq_dispatcher_t *dispatcher);
/* The same with timeout_ns instead of the grace period. A timeout that the clock cannot add means: without limit.
 * CUDAQ_ERR_TIMEOUT: a thread or kernel did not end, usually because its handler did not return; the state is
 * CUDAQ_DISPATCHER_STOPPING until a later stop succeeds, and only stop and destroy are allowed. CUDAQ_ERR_CUDA: a
 * device fault has ended the kernel. CUDAQ_ERR_INTERNAL: a handler has ended its thread (pthread_exit), which ended the
 * run. These errors are reported once: the next stop succeeds, and so does destroy. */
CUDAQ_REALTIME_API cudaq_status_t cudaq_dispatcher_stop_timeout(cudaq_dispatcher_t *dispatcher, uint64_t timeout_ns);
/* The number of processed requests, also while the dispatcher runs. It counts on from the value that start found in
 * `stats`, and may be ahead of the word `stats`. On a shared ring it includes the requests that the library's host
 * thread dropped or answered for a kernel; the word does not. For a kernel that is not the library's it is the word
 * itself. CUDAQ_ERR_CUDA: that word is in device memory, and could not be read. */
CUDAQ_REALTIME_API cudaq_status_t cudaq_dispatcher_get_processed(cudaq_dispatcher_t *dispatcher, uint64_t *out_packets);

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
 * may be served out of order. Such launches take no in-place ring (cudaErrorNotSupported from the v2 functions).
 * Launches by a dispatcher ignore the mode: start() applies config.shared_ring_mode, which keeps the order. Any thread;
 * always returns cudaSuccess. */
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

/* -------------------------------------------------- options, state, stats -- */

typedef enum cudaq_dispatcher_state_t {
  CUDAQ_DISPATCHER_CREATED = 0, /* something is not wired yet */
  CUDAQ_DISPATCHER_WIRED = 1,   /* start may be called */
  CUDAQ_DISPATCHER_RUNNING = 2,
  CUDAQ_DISPATCHER_STOPPED = 3, /* no handler runs, nothing is in flight; start may be called again */
  CUDAQ_DISPATCHER_FAILED = 4,  /* the run has ended by a fault; only stop and destroy are allowed */
  CUDAQ_DISPATCHER_STOPPING = 5 /* by stop or the shutdown flag: a handler runs, or a request is not answered yet */
} cudaq_dispatcher_state_t;

typedef enum cudaq_ordering_t {
  CUDAQ_ORDERING_FIFO = 0, /* the requests of one function are served one after another, in slot order */
  CUDAQ_ORDERING_ANY = 1   /* the caller promises that its handlers are stateless and may run at the same time */
} cudaq_ordering_t;

typedef enum cudaq_unknown_function_t {
  CUDAQ_UNKNOWN_FUNCTION_DROP = 0,  /* clear the slot without an answer, count it */
  CUDAQ_UNKNOWN_FUNCTION_ANSWER = 1 /* answer CUDAQ_RPC_ERR_NO_SUCH_FUNCTION */
} cudaq_unknown_function_t;

typedef enum cudaq_wait_policy_t {
  CUDAQ_WAIT_SPIN = 0,       /* lowest latency, one core at 100 % */
  CUDAQ_WAIT_SPIN_YIELD = 1, /* spins briefly, then yields between polls: for shared cores */
  CUDAQ_WAIT_BLOCK = 2       /* spins briefly, then sleeps block_interval_ns between polls: idle cost near 0 */
} cudaq_wait_policy_t;

typedef enum cudaq_ring_peers_t {
  CUDAQ_RING_PEERS_ANY = 0,        /* CPUs, NICs or other devices read and write the ring */
  CUDAQ_RING_PEERS_SAME_DEVICE = 1 /* the caller promises that only kernels of the same device do */
} cudaq_ring_peers_t;

/* Host path: which requests wait when a graph request arrives and all its workers are busy. That request stays in its
 * slot until a worker is idle. The same holds for the later requests named here: */
typedef enum cudaq_busy_workers_t {
  CUDAQ_BUSY_WORKERS_WAIT = 0,          /* all of them (on a shared ring: all graph requests) */
  CUDAQ_BUSY_WORKERS_PASS_FUNCTION = 1, /* those of the same function; others pass */
  CUDAQ_BUSY_WORKERS_PASS_KEY = 2       /* those of the same function and routing key; others pass */
} cudaq_busy_workers_t;

/* Host path: what a worker's word of the mailbox gets before a launch. */
typedef enum cudaq_mailbox_content_t {
  CUDAQ_MAILBOX_RX_SLOT = 0,   /* device address of the request's slot */
  CUDAQ_MAILBOX_IO_CONTEXT = 1 /* device address of the worker's io_ctx; that of the slot if the worker has none */
} cudaq_mailbox_content_t;

#define CUDAQ_CORE_ANY (-1)
#define CUDAQ_NUMA_NODE_ANY (-1)

/* Fill it with cudaq_dispatcher_options_init, change single members, and pass it to cudaq_dispatcher_set_options. Each
 * comment ends with the default. */
typedef struct cudaq_dispatcher_options_t {
  uint32_t struct_size;      /* sizeof(cudaq_dispatcher_options_t) of the caller */
  uint32_t ordering;         /* cudaq_ordering_t, FIFO */
  uint32_t unknown_function; /* cudaq_unknown_function_t, DROP */
  /* Shared ring, non-zero: this dispatcher drops or answers (unknown_function) the requests that no dispatcher of the
   * ring serves; 0 */
  uint32_t default_owner;
  uint32_t check_schema;       /* non-zero: sizes that contradict the schema are answered SCHEMA_MISMATCH; 0 */
  uint32_t strict_flag_values; /* non-zero: a request whose rx flag is not the slot's own address is dropped; 0 */
  uint32_t wait_policy;        /* cudaq_wait_policy_t, SPIN */
  uint32_t handler_pool_size;  /* threads that run the handlers, up to 64; 0: the dispatcher thread does; 0 */
  int32_t dispatcher_core;     /* CPU of the dispatcher thread, CUDAQ_CORE_ANY */
  int32_t handler_core_base;   /* pool thread i runs on this CPU + i, CUDAQ_CORE_ANY */
  int32_t numa_node;           /* threads that are not pinned to a CPU stay on this node, CUDAQ_NUMA_NODE_ANY */
  int32_t realtime_priority;   /* SCHED_FIFO 1..99; 0: the scheduling policy is not changed; 0 */
  /* CUDAQ_WAIT_BLOCK: sleep between polls, the most that a hand-over adds; 1 ns to 100 ms under each policy; 500 us */
  uint64_t block_interval_ns;
  uint64_t grace_period_ns; /* how long stop and destroy wait for handlers and graphs; UINT64_MAX: no limit; 5 s */
  uint32_t ring_peers;      /* cudaq_ring_peers_t; device path: SAME_DEVICE allows cheaper memory ordering; ANY */
  uint32_t busy_workers;    /* cudaq_busy_workers_t; host path; WAIT */
  /* Host path. 1: on an in-place ring v2 handlers get the payload in the slot itself, where their result goes too. If
   * another thread completes the request, it must not write the result while the handler still reads the payload. 0: v2
   * handlers get a copy of the payload, and the dispatch of each request takes the time of that copy in addition; 0 */
  uint32_t payload_in_slot;
  uint32_t mailbox_content; /* cudaq_mailbox_content_t; host path; RX_SLOT */
} cudaq_dispatcher_options_t;

CUDAQ_REALTIME_API cudaq_status_t cudaq_dispatcher_options_init(cudaq_dispatcher_options_t *options,
                                                                uint32_t struct_size);
/* CUDAQ_ERR_STATE while running. If the system refuses to pin a thread, start returns an error. */
CUDAQ_REALTIME_API cudaq_status_t cudaq_dispatcher_set_options(cudaq_dispatcher_t *dispatcher,
                                                               const cudaq_dispatcher_options_t *options);

/* Threads that call it see only these transitions: CREATED and WIRED in both directions; WIRED or STOPPED to RUNNING;
 * RUNNING to STOPPING to STOPPED, where STOPPING may be too short to be seen; RUNNING or STOPPING to FAILED; FAILED to
 * STOPPED; WIRED or STOPPED to FAILED if the start of a kernel has timed out. */
CUDAQ_REALTIME_API cudaq_status_t cudaq_dispatcher_get_state(const cudaq_dispatcher_t *dispatcher,
                                                             cudaq_dispatcher_state_t *out_state);

/* Counters since create. Each counter is exact. While the dispatcher runs, they are read at slightly different moments.
 * received = dispatched + requests that were dropped or answered without a handler. */
typedef struct cudaq_dispatcher_stats_t {
  uint32_t struct_size; /* set by the caller before the call */
  uint32_t state;       /* cudaq_dispatcher_state_t */
  uint64_t received;    /* requests taken from ready slots */
  uint64_t dispatched;  /* handed to a handler */
  uint64_t responded;   /* answered: the tx flag is set, or will be set immediately */
  uint64_t in_flight;   /* accepted and not answered yet; while running at most the number of slots */
  uint64_t dropped_bad_magic;
  uint64_t dropped_unknown_function;
  uint64_t dropped_flag_value;     /* strict flag values only */
  uint64_t unexpected_flag_values; /* rx flags that were not the slot's address; request served or dropped */
  uint64_t handler_errors;         /* responses with a non-zero status of the handler's own */
  uint64_t protocol_errors[CUDAQ_RPC_ERROR_COUNT]; /* responses by CUDAQ_RPC_ERROR_INDEX(status) */
  uint64_t tx_busy_waits; /* times a ready slot waited because its last answer was not collected */
  uint64_t cursor_jumps;  /* times the dispatcher found that the producer does not fill slots in ring order */
  uint64_t launches;      /* graph launches */
  uint64_t relaunches;    /* of a device-side scheduler by itself */
  uint64_t heartbeat;     /* increases while the loop runs */
  uint32_t cursor;        /* next slot that the dispatcher reads */
  uint32_t busy_slots;    /* loops and threads that are inside a handler at this moment */
  uint64_t polls;         /* looks at the ring; device path only */
  uint64_t hook_failures; /* launch hooks that threw; host path only */
  uint64_t
      dataplane_errors; /* of a CPU dataplane: calls of tx_publish that failed, and slots that rx_poll may not return */
} cudaq_dispatcher_stats_t;

CUDAQ_REALTIME_API cudaq_status_t cudaq_dispatcher_get_stats(const cudaq_dispatcher_t *dispatcher,
                                                             cudaq_dispatcher_stats_t *out_stats);

/* Writes a text: state, options as applied, counters, flags of every slot that is not free, and what each thread does.
 * It is NUL-terminated and cut off at buf_len. *out_len (may be NULL): length of the whole text without NUL. */
CUDAQ_REALTIME_API cudaq_status_t cudaq_dispatcher_dump_state(const cudaq_dispatcher_t *dispatcher, char *buf,
                                                              size_t buf_len, size_t *out_len);

/* ------------------------------- graph workers of the host path: host_dispatcher.h -- */

/* One word per worker, in mapped memory of the caller. Before a launch the library stores there, for graphs and hooks
 * to read, the device address of the request's slot, or that of the worker's io_ctx (options.mailbox_content). Like
 * io_ctx, the word is written for one launch at a time and keeps its value until the worker's next launch. NULL: no
 * mailbox. CUDAQ_ERR_STATE while running. */
CUDAQ_REALTIME_API cudaq_status_t cudaq_dispatcher_set_mailbox(cudaq_dispatcher_t *dispatcher, void **h_mailbox_bank);
/* Gives a CALLER_PUBLISHES worker back. From any thread, but not at the same time as start. The worker's request may be
 * completed before or after, by cudaq_host_complete_deferred with the job of cudaq_host_worker_job. With markers, a
 * caller that has set the tx flag itself before this call need not complete the request. CUDAQ_ERR_STATE: the worker is
 * idle, or the library frees it. */
CUDAQ_REALTIME_API cudaq_status_t cudaq_host_release_worker(cudaq_dispatcher_t *dispatcher, int worker_id);

/* ------------------------------------------------------------ ring memory -- */

typedef enum cudaq_memory_kind_t {
  CUDAQ_MEMORY_HOST = 0,   /* plain host memory: host path only */
  CUDAQ_MEMORY_MAPPED = 1, /* pinned host memory, visible to the device */
  CUDAQ_MEMORY_DEVICE = 2, /* device memory: the host views stay NULL */
  /* Requests (rx flags, rx slots) in device memory, which the CPU writes through a mapping; answers in pinned host
   * memory. The quickest kind for requests of a CPU or a NIC to a GPU. Device path only, not in place, not shared.
   * Producers use the handle of ring_producer.h, or the slot helpers below, which are slower on this kind. */
  CUDAQ_MEMORY_DEVICE_RX = 3,
  CUDAQ_MEMORY_AUTO = 4 /* DEVICE_RX where the machine allows it, else MAPPED; see cudaq_ringbuffer_get_info */
} cudaq_memory_kind_t;

/* How the CPU got its mapping of device memory (CUDAQ_MEMORY_DEVICE_RX). */
typedef enum cudaq_mapping_source_t {
  CUDAQ_MAPPING_NONE = 0,          /* other kinds */
  CUDAQ_MAPPING_GDRCOPY = 1,       /* GDRCopy's library and kernel module */
  CUDAQ_MAPPING_VULKAN = 2,        /* memory of Vulkan, imported into CUDA */
  CUDAQ_MAPPING_VULKAN_IMPORT = 3, /* memory of CUDA, imported into Vulkan; it can be registered with a NIC */
  CUDAQ_MAPPING_COHERENT = 4       /* the CPU accesses device memory directly */
} cudaq_mapping_source_t;

typedef struct cudaq_ringbuffer_options_t {
  uint32_t struct_size;      /* sizeof(cudaq_ringbuffer_options_t) of the caller */
  uint32_t memory_kind;      /* cudaq_memory_kind_t */
  uint32_t num_slots;        /* > 0 */
  uint32_t slot_size;        /* >= 24; the stride is this, rounded up to 64 */
  uint32_t in_place;         /* non-zero: one slot array, the response overwrites the request */
  uint32_t hugepages;        /* host memory: non-zero: huge pages; an error if the system has none */
  int32_t numa_node;         /* host memory: node to place it on; CUDAQ_NUMA_NODE_ANY */
  int32_t device_id;         /* all kinds except host */
  uint32_t nic_registration; /* DEVICE_RX: non-zero: the memory can be registered with a NIC */
} cudaq_ringbuffer_options_t;

typedef struct cudaq_ringbuffer_info_t {
  uint32_t struct_size;    /* sizeof(cudaq_ringbuffer_info_t), set by the caller before the call */
  uint32_t memory_kind;    /* cudaq_memory_kind_t: the kind that was made, never AUTO */
  uint32_t mapping_source; /* cudaq_mapping_source_t */
  /* DEVICE_RX: cudaDevAttrGPUDirectRDMAWritesOrdering of the device, else 0. 100: a kernel of this device sees writes
   * to its memory in order; 200: so do other devices */
  uint32_t writes_ordering;
  uint32_t num_slots;
  uint32_t stride;  /* bytes from one slot to the next */
  char reason[488]; /* why this kind and this source; NUL-terminated */
} cudaq_ringbuffer_info_t;

CUDAQ_REALTIME_API cudaq_status_t cudaq_ringbuffer_options_init(cudaq_ringbuffer_options_t *options,
                                                                uint32_t struct_size);
/* Allocates a zeroed ring and fills in `out_ring`, ready for cudaq_dispatcher_set_ringbuffer. CUDAQ_ERR_UNSUPPORTED:
 * the machine cannot make this kind; the message says what is missing. */
CUDAQ_REALTIME_API cudaq_status_t cudaq_ringbuffer_create(const cudaq_ringbuffer_options_t *options,
                                                          cudaq_ringbuffer_memory_t **out_memory,
                                                          cudaq_ringbuffer_t *out_ring);
/* Any thread, until the destroy. */
CUDAQ_REALTIME_API cudaq_status_t cudaq_ringbuffer_get_info(const cudaq_ringbuffer_memory_t *memory,
                                                            cudaq_ringbuffer_info_t *out_info);
/* CUDAQ_ERR_STATE, and the ring stays: a producer's handle is open, or a dispatcher was started on the ring and not
 * stopped (not noticed for CUDAQ_MEMORY_DEVICE, nor for a ring without its host addresses). After any other error the
 * ring is as before. A dispatcher that is still wired to a destroyed ring must not be started. Memory that the CPU and
 * a device share is freed by a CUDA call that waits for all kernels of the device: end kernels without limit first. */
CUDAQ_REALTIME_API cudaq_status_t cudaq_ringbuffer_destroy(cudaq_ringbuffer_memory_t *memory);

/* ----------------------------------------------------------- slot helpers -- */
/* For software that plays the control system. They work on the host views of a ring. slot_idx must be less than the
 * number of slots of the ring; the helpers cannot check that, because cudaq_ringbuffer_t does not hold the number.
 * Producers fill slots in ring order. Only one thread may work on a slot at a time. */

/* Returns 1 if both flags are 0 and the slot may be filled, else 0. Reads rx, then tx. */
CUDAQ_REALTIME_API int cudaq_host_ringbuffer_slot_available(const cudaq_ringbuffer_t *rb, uint32_t slot_idx);
/* Writes a request frame into a free slot; does not signal it. payload may be NULL if payload_len is 0.
 * CUDAQ_ERR_INVALID_ARG: the frame does not fit in rx_stride_sz. */
CUDAQ_REALTIME_API cudaq_status_t cudaq_host_ringbuffer_write_rpc_request(const cudaq_ringbuffer_t *rb,
                                                                          uint32_t slot_idx, uint32_t function_id,
                                                                          const void *payload, uint32_t payload_len,
                                                                          uint32_t request_id, uint64_t ptp_timestamp);
/* Publishes the request: stores the slot's host address to its rx flag. Frame before flag, and flag before all later
 * stores, on each kind of memory. */
CUDAQ_REALTIME_API void cudaq_host_ringbuffer_signal_slot(const cudaq_ringbuffer_t *rb, uint32_t slot_idx);
/* Reads the tx flag with acquire. *out_cuda_error (may be NULL) gets the CUDA error of CUDAQ_TX_ERROR, else 0. */
CUDAQ_REALTIME_API cudaq_tx_status_t cudaq_host_ringbuffer_poll_tx_flag(const cudaq_ringbuffer_t *rb, uint32_t slot_idx,
                                                                        int *out_cuda_error);
/* Copies the response header and sets *out_result to the result inside the TX slot, which is valid until clear_slot.
 * Call it after CUDAQ_TX_READY. CUDAQ_ERR_INTERNAL: the slot holds no valid response (wrong magic or length). */
CUDAQ_REALTIME_API cudaq_status_t cudaq_host_ringbuffer_read_rpc_response(const cudaq_ringbuffer_t *rb,
                                                                          uint32_t slot_idx,
                                                                          cudaq_rpc_response_t *out_header,
                                                                          const void **out_result);
/* Consumer: gives the slot back by clearing its tx flag with release. Reset your own bookkeeping of the slot before. */
CUDAQ_REALTIME_API void cudaq_host_ringbuffer_clear_slot(const cudaq_ringbuffer_t *rb, uint32_t slot_idx);

#ifdef __cplusplus
}
#endif

#include "cudaq/realtime/daemon/dispatcher/ring_producer.h"
#include "cudaq/realtime/daemon/dispatcher/upstream_interface.h"

#endif
