/* SPDX-License-Identifier: Apache-2.0 */
/* The types of the C API, without its functions (cudaq_realtime.h) and without a CUDA header: what headers of the API
 * share, and all that code needs which only handles rings, frames and tables. */
#ifndef CUDAQ_REALTIME_TYPES_H
#define CUDAQ_REALTIME_TYPES_H

#include "cudaq/realtime/daemon/dispatcher/cudaq_status.h"
#include "cudaq/realtime/daemon/dispatcher/rpc_wire_format.h"
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define CUDAQ_REALTIME_API __attribute__((visibility("default")))
#else
#define CUDAQ_REALTIME_API
#endif

/* Whether the compiler finds the header of the CUDA runtime. Without it the API has no functions that return a
 * cudaError_t: those of device_dispatch.h. A program that uses only the host path does not need them. */
#if !defined(__has_include)
#define CUDAQ_REALTIME_HAS_CUDA_HEADER 1
#elif __has_include(<cuda_runtime_api.h>)
#define CUDAQ_REALTIME_HAS_CUDA_HEADER 1
#endif

/* Four names have two forms: that of the specification, which is the default, and that of the newer interface of the
 * existing system ("upstream"). The forms are ..._spec and ..._upstream; upstream_interface.h binds the name to one. */
#if defined(CUDAQ_REALTIME_PEER_INTERFACE)
#error "CUDAQ_REALTIME_PEER_INTERFACE is now called CUDAQ_REALTIME_UPSTREAM_INTERFACE, and ..._peer is ..._upstream"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------- types of CUDA -- */

/* The same declarations as in the headers of CUDA, which may be included before or after this one. */
typedef struct CUstream_st *cudaStream_t;
typedef struct CUgraphExec_st *cudaGraphExec_t;

/* -------------------------------------------------- dispatchers and rings -- */

typedef struct cudaq_dispatch_manager_t cudaq_dispatch_manager_t;   /* opaque */
typedef struct cudaq_dispatcher_t cudaq_dispatcher_t;               /* opaque */
typedef struct cudaq_ringbuffer_memory_t cudaq_ringbuffer_memory_t; /* opaque */
typedef struct cudaq_cpu_dataplane_t cudaq_cpu_dataplane_t;         /* daemon/bridge/bridge_types.h */

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
 * selects the default: 0, 1, 32, 0, regular, device call. A negative device_id, on the host path only: the device that
 * the thread of cudaq_dispatcher_create has selected. */
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
 * -999. After a C++ exception it answers CUDAQ_RPC_ERR_HANDLER_THREW. A handler that ends its thread (pthread_exit)
 * ends the process. */
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
  uint32_t busy_slots;    /* loops and threads in a handler; of a kernel also until the heartbeat after one */
  uint64_t polls;         /* looks at the ring; device path only */
  uint64_t hook_failures; /* launch hooks that threw; host path only */
  uint64_t
      dataplane_errors; /* of a CPU dataplane: calls of tx_publish that failed, and slots that rx_poll may not return */
} cudaq_dispatcher_stats_t;

/* Histogram of the times of one function's requests (cudaq_dispatcher_get_handler_times), of the present run, or of the
 * last one. A time begins when the dispatcher sees the rx flag of a request that it can take, and ends when the answer
 * is published: it includes the wait for a pool thread or a graph worker, the handler, and a deferred completion. On a
 * shared ring it begins when this dispatcher gets the request. Of a graph that answers itself it ends when the
 * dispatcher sees the graph's end. Requests that are answered without a handler are not counted; a
 * deferred one that a stop gives up is.
 *
 * Bucket b counts the times from CUDAQ_HANDLER_TIME_BUCKET_NS(b) up to, and without, that of b + 1. It is 1 ns wide up
 * to 63 ns, then at most 1/32 of its times; the last bucket also counts the times from 18 minutes on. */
#define CUDAQ_HANDLER_TIME_BUCKETS 1152u
#define CUDAQ_HANDLER_TIME_BUCKET_NS(b)                                                                                \
  ((b) < 64u ? (uint64_t)(b) : (uint64_t)((b) - (((b) / 32u - 1u) * 32u)) << ((b) / 32u - 1u))
typedef struct cudaq_handler_times_t {
  uint32_t struct_size; /* sizeof(cudaq_handler_times_t), or offsetof its buckets; set by the caller before the call */
  uint32_t reserved;
  uint64_t count;  /* the sum of the buckets */
  uint64_t sum_ns; /* of all times: sum_ns / count is the mean */
  uint64_t max_ns;
  /* Percentiles 50, 99, 99.9: the last time of their bucket, and never above max_ns. 0 if nothing is counted */
  uint64_t p50_ns;
  uint64_t p99_ns;
  uint64_t p999_ns;
  uint64_t buckets[CUDAQ_HANDLER_TIME_BUCKETS];
} cudaq_handler_times_t;

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

#ifdef __cplusplus
}
#endif

#endif
