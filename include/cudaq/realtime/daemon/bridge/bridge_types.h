/* SPDX-License-Identifier: Apache-2.0 */
/* What a provider of a transport is made of: its table, and the dataplane. No function of the library, and no CUDA
 * header. bridge_interface.h has the rules. */
#ifndef CUDAQ_REALTIME_BRIDGE_TYPES_H
#define CUDAQ_REALTIME_BRIDGE_TYPES_H

#include "cudaq/realtime/daemon/dispatcher/realtime_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The newest version of the table below. The loader accepts 1 to 3. */
#define CUDAQ_REALTIME_BRIDGE_INTERFACE_VERSION 3

/* ---------------------------------------------------------- the dataplane -- */

typedef enum cudaq_rx_status_t {
  CUDAQ_RX_READY = 0, /* *out_slot is a slot whose RX slot holds a complete frame */
  CUDAQ_RX_EMPTY = 1  /* nothing has arrived */
} cudaq_rx_status_t;

/* Must not block. Until tx_publish for the slot, or until the loop drops the request (see below), the slot belongs to
 * the loop, and rx_poll must not return it again. */
typedef cudaq_rx_status_t (*cudaq_cpu_rx_poll_fn_t)(void *ctx, uint32_t *out_slot);
/* Sends the response frame in TX slot `slot`. The slot is the provider's again, also if the result is an error. Slots
 * are published in any order. */
typedef cudaq_status_t (*cudaq_cpu_tx_publish_fn_t)(void *ctx, uint32_t slot);

/* How the host loop reaches a unified provider. Both functions are called by the loop's thread only; after that thread
 * has ended, by the thread that stops the dispatcher. They must return: one that throws, or ends its thread
 * (pthread_exit), ends the process.
 *
 * Of `ring`, the loop uses rx_data_host, tx_data_host and the strides. It never sets a flag of it. When it drops a
 * request (wrong magic; an unknown function, unless these are answered), no tx_publish follows: the loop then stores 0
 * to rx_flags_host[slot], if this array is not NULL. A provider that gives the array sets the flag before it returns
 * the slot, and takes a slot whose flag is 0 as its own again. */
typedef struct cudaq_cpu_dataplane_t {
  void *ctx; /* first argument of both functions */
  cudaq_ringbuffer_t ring;
  cudaq_cpu_rx_poll_fn_t rx_poll;
  cudaq_cpu_tx_publish_fn_t tx_publish;
} cudaq_cpu_dataplane_t;

/* What the device function cudaq_dev_rx_poll returns (device_transport.cuh). */
typedef enum cudaq_rx_dev_status_t {
  CUDAQ_RX_DEV_READY = 0,   /* *request and *response are a frame each */
  CUDAQ_RX_DEV_SHUTDOWN = 1 /* the kernel ends */
} cudaq_rx_dev_status_t;

/* What get_transport_context(UNIFIED) returns is a cudaq_unified_dispatch_ctx_t (cudaq_realtime.h), whose fields are
 * always both written:
 *   launch_fn NULL, transport_ctx NULL   the loop runs on the CPU: get_cpu_dataplane
 *   launch_fn NULL, transport_ctx set    device memory for the unified kernel that is linked with the provider's hooks
 *   launch_fn set                        the provider's own kernel: cudaq_dispatcher_set_unified_launch
 * launch_fn has 7 arguments (cudaq_unified_launch_upstream_fn_t), whatever CUDAQ_REALTIME_UPSTREAM_INTERFACE is. */

/* ---------------------------------------------------- the provider's table -- */

/* An instance of a provider. To users of the loader it is opaque: only the functions below take it. */
typedef void *cudaq_realtime_bridge_handle_t;

typedef enum cudaq_realtime_transport_context_t {
  RING_BUFFER = 0, /* out is a cudaq_ringbuffer_t */
  UNIFIED = 1      /* out is a cudaq_unified_dispatch_ctx_t */
} cudaq_realtime_transport_context_t;

typedef struct cudaq_realtime_bridge_interface_t {
  int version; /* 1 to 3: entries of later versions are not read */

  /* Version 1. Parses the options, allocates the ring, binds sockets: after it, others can reach the provider. argv is
   * valid during the call only. On an error *handle is not used. */
  cudaq_status_t (*create)(cudaq_realtime_bridge_handle_t *handle, int argc, char **argv);
  /* Frees everything. The last call for the handle if it returns CUDAQ_OK. */
  cudaq_status_t (*destroy)(cudaq_realtime_bridge_handle_t handle);
  /* Of the shape that the provider does not have: CUDAQ_ERR_UNSUPPORTED. */
  cudaq_status_t (*get_transport_context)(cudaq_realtime_bridge_handle_t handle,
                                          cudaq_realtime_transport_context_t context_type, void *out);
  /* Waits for the other side, if the transport needs it. */
  cudaq_status_t (*connect)(cudaq_realtime_bridge_handle_t handle);
  /* Starts the threads of a provider of the shape `ring`. */
  cudaq_status_t (*launch)(cudaq_realtime_bridge_handle_t handle);
  /* Ends them. No request arrives after it. */
  cudaq_status_t (*disconnect)(cudaq_realtime_bridge_handle_t handle);

  /* Version 2. Each may be NULL. */
  cudaq_status_t (*get_cpu_dataplane)(cudaq_realtime_bridge_handle_t handle, cudaq_cpu_dataplane_t *out);
  /* One line of `key=value` pairs that tells others how to reach the provider. Valid after create. */
  cudaq_status_t (*get_endpoint_info)(cudaq_realtime_bridge_handle_t handle, char *buffer, size_t length);
  cudaq_status_t (*get_ring_geometry)(cudaq_realtime_bridge_handle_t handle, uint32_t *num_slots, uint32_t *slot_size);

  /* Version 3. May be NULL. For a provider that runs the handlers itself. The table stays valid until disconnect. */
  cudaq_status_t (*set_function_table)(cudaq_realtime_bridge_handle_t handle, const cudaq_function_table_t *table);
} cudaq_realtime_bridge_interface_t;

/* The one symbol that a provider exports. The table is static. */
#define CUDAQ_REALTIME_BRIDGE_GETTER "cudaq_realtime_get_bridge_interface"
typedef cudaq_realtime_bridge_interface_t *(*cudaq_realtime_get_bridge_interface_fn_t)(void);

/* A provider may export this function, too: the reason of the entry that has failed last on the calling thread, for
 * cudaq_last_error_message. Called on that thread, immediately after the failure. NULL or "": no text. */
#define CUDAQ_REALTIME_BRIDGE_ERROR_GETTER "cudaq_realtime_get_bridge_error"
typedef const char *(*cudaq_realtime_get_bridge_error_fn_t)(void);

#ifdef __cplusplus
}
#endif

#endif
