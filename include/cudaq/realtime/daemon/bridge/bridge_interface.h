/* SPDX-License-Identifier: Apache-2.0 */
/* Transports: the table that a provider exports, and the loader that calls it. docs/transport/transports.md has the
 * order of the calls, an example, and what each provider of this library promises.
 *
 * A provider is a shared library. It moves requests between a control system and the slots of a ring: over a network,
 * shared memory, or a bus. It has one of two shapes, chosen when it is created:
 *
 *   ring      The provider's own threads fill the slots of a ring and set the rx flags. Any dispatcher serves the ring.
 *   unified   The dispatcher's loop calls the provider: on the CPU through a cudaq_cpu_dataplane_t, on the GPU through
 *             the provider's own launch function. There is no thread between the transport and the handler.
 *
 * Rules for a provider. All entries are called from one thread at a time for each handle, except that disconnect may
 * come from another thread while connect waits, or just before connect begins; connect should then return. connect runs
 * on a thread of the loader: state of a thread, such as the current CUDA device, differs from that in create. Strings
 * are UTF-8 and end with 0. An entry must not throw. A provider may be loaded into a process more than once and must
 * not assume that it is alone. */
#ifndef CUDAQ_REALTIME_BRIDGE_INTERFACE_H
#define CUDAQ_REALTIME_BRIDGE_INTERFACE_H

#include "cudaq/realtime/daemon/bridge/bridge_types.h"
#include "cudaq/realtime/daemon/dispatcher/cudaq_realtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --------------------------------------------------------------- the loader -- */

typedef enum cudaq_realtime_bridge_provider_t {
  CUDAQ_PROVIDER_GPU_ROCE = 0, /* libcudaq-realtime-bridge-gpu-roce.so */
  CUDAQ_PROVIDER_HOLOLINK = 0, /* the same, by the name of the existing system */
  CUDAQ_PROVIDER_EXTERNAL = 1  /* the library that the environment variable CUDAQ_REALTIME_BRIDGE_LIB names */
} cudaq_realtime_bridge_provider_t;
typedef cudaq_realtime_bridge_provider_t cudaq_realtime_transport_provider_t;

/* Loads a provider and creates an instance. `library`: a path, or a file name for the dynamic linker's search. The
 * provider gets a copy of argv, with a NULL after it. The provider's status is passed on, and *out_handle is set only
 * if it is CUDAQ_OK. A library stays loaded until the process ends. While an entry of the provider runs, no lock is
 * held.
 *   CUDAQ_ERR_INVALID_ARG   a NULL pointer, an empty name, an unknown provider, or the variable is not set
 *   CUDAQ_ERR_INTERNAL      the library cannot be loaded, has no getter, or its table is incomplete or of a version
 *                           outside 1 to 3, or create threw; cudaq_last_error_message has the text */
CUDAQ_REALTIME_API cudaq_status_t cudaq_bridge_create(cudaq_realtime_bridge_handle_t *out_handle,
                                                      cudaq_realtime_bridge_provider_t provider, int argc, char **argv);
CUDAQ_REALTIME_API cudaq_status_t cudaq_bridge_create_from_library(cudaq_realtime_bridge_handle_t *out_handle,
                                                                   const char *library, int argc, char **argv);

/* All functions below return CUDAQ_ERR_INVALID_ARG for a handle that is unknown or destroyed, and CUDAQ_ERR_STATE for a
 * call that is out of order, or while another call of the same handle runs; the text names the order. Different handles
 * may be used at the same time. The order is create, connect, launch, disconnect, destroy:
 *
 *   after                      allowed
 *   create                     connect, disconnect, destroy, get_*, set_function_table
 *   connect with a time-out    connect, disconnect
 *   connect                    launch, disconnect, destroy, get_*, set_function_table
 *   launch                     disconnect, destroy, get_*
 *   disconnect                 disconnect (without effect), destroy, get_*
 *
 * After an error the state is the same as before, and the call may be repeated. An instance connects once: after
 * disconnect, make a new one. A provider's status that is no cudaq_status_t, and an exception, give
 * CUDAQ_ERR_INTERNAL. */

/* Disconnects a connected instance first, unless disconnect has failed before. CUDAQ_ERR_STATE: connect still runs;
 * disconnect cancels it. The handle stays valid unless the result is CUDAQ_OK. */
CUDAQ_REALTIME_API cudaq_status_t cudaq_bridge_destroy(cudaq_realtime_bridge_handle_t handle);
CUDAQ_REALTIME_API cudaq_status_t cudaq_bridge_get_transport_context(cudaq_realtime_bridge_handle_t handle,
                                                                     cudaq_realtime_transport_context_t context_type,
                                                                     void *out);
/* Waits without limit, or until disconnect is called by another thread: then CUDAQ_ERR_STATE. */
CUDAQ_REALTIME_API cudaq_status_t cudaq_bridge_connect(cudaq_realtime_bridge_handle_t handle);
/* CUDAQ_ERR_TIMEOUT after timeout_ns: connect goes on, the call may be repeated, and disconnect cancels it. */
CUDAQ_REALTIME_API cudaq_status_t cudaq_bridge_connect_timeout(cudaq_realtime_bridge_handle_t handle,
                                                               uint64_t timeout_ns);
CUDAQ_REALTIME_API cudaq_status_t cudaq_bridge_launch(cudaq_realtime_bridge_handle_t handle);
/* Before connect: a later connect is refused. While connect runs: cancels it and waits for its end.
 * CUDAQ_ERR_TIMEOUT: the provider's connect has not returned within 5 s; the call may be repeated, to wait on. */
CUDAQ_REALTIME_API cudaq_status_t cudaq_bridge_disconnect(cudaq_realtime_bridge_handle_t handle);
/* CUDAQ_ERR_UNSUPPORTED: the provider's version is below 2, or it has no such entry. The same for the next two. */
CUDAQ_REALTIME_API cudaq_status_t cudaq_bridge_get_cpu_dataplane(cudaq_realtime_bridge_handle_t handle,
                                                                 cudaq_cpu_dataplane_t *out);
/* The line ends with 0 in any case; a provider may cut it off to fit in `length` bytes. */
CUDAQ_REALTIME_API cudaq_status_t cudaq_bridge_get_endpoint_info(cudaq_realtime_bridge_handle_t handle, char *buffer,
                                                                 size_t length);
CUDAQ_REALTIME_API cudaq_status_t cudaq_bridge_get_ring_geometry(cudaq_realtime_bridge_handle_t handle,
                                                                 uint32_t *num_slots, uint32_t *slot_size);
/* The arguments are checked before the handle. CUDAQ_OK without effect: the provider does not run handlers itself; its
 * version is below 3, or it has no such entry. */
CUDAQ_REALTIME_API cudaq_status_t cudaq_bridge_set_function_table(cudaq_realtime_bridge_handle_t handle,
                                                                  const cudaq_function_table_t *table);

#ifdef __cplusplus
}
#endif

#endif
