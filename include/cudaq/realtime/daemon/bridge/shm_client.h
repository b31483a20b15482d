/* SPDX-License-Identifier: Apache-2.0 */
/* The client's end of the provider shm: a process that sends requests to a server on the same machine through shared
 * memory. Library: libcudaq-realtime-shm-client. docs/transport/transport_shm.md has an example and the promises.
 *
 * A client gets a ring of its own. It works on the ring with the slot helpers of cudaq_realtime.h: fill slots 0, 1, ...
 * and 0 again, in this order, collect the answers in any order. A client is used by one thread at a time.
 *
 * The connection belongs to the process that attached, and the kernel closes it when that process ends. A child process
 * that is forked without exec keeps it open, but must not use it: both would fill the same slots. There the functions
 * return CUDAQ_ERR_STATE, signal has no effect, alive is 0, and detach only frees what the child has. The slot helpers
 * of cudaq_realtime.h do not know the process: a child must not call them on this ring. */
#ifndef CUDAQ_REALTIME_SHM_CLIENT_H
#define CUDAQ_REALTIME_SHM_CLIENT_H

#include "cudaq/realtime/daemon/dispatcher/cudaq_realtime.h"

#if defined(__GNUC__)
#define CUDAQ_SHM_CLIENT_API __attribute__((visibility("default")))
#else
#define CUDAQ_SHM_CLIENT_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cudaq_shm_client_t cudaq_shm_client_t;

typedef struct cudaq_shm_client_options_t {
  uint32_t struct_size; /* sizeof(cudaq_shm_client_options_t) */
  /* cudaq_wait_policy_t: how cudaq_shm_client_wait waits. CUDAQ_WAIT_BLOCK sleeps in the kernel after spin_ns; a
   * unified server wakes it, in the ring shape it looks again after sleep_ns. */
  uint32_t wait_policy;
  uint64_t spin_ns;  /* 0: 50 us */
  uint64_t sleep_ns; /* longest sleep of CUDAQ_WAIT_BLOCK; 0: 1 ms. At most 100 ms */
} cudaq_shm_client_options_t;

/* Attaches to the server `name` and waits for it, or for a free ring, until timeout_ns has passed; 0: one attempt. An
 * attempt waits at most 1 s for the reply of a server that is stopped. options may be NULL: spin. *out_client is set
 * only if the result is CUDAQ_OK.
 *   CUDAQ_ERR_INVALID_ARG   a NULL pointer, a wrong name, a wrong option
 *   CUDAQ_ERR_TIMEOUT       there is no such server, or all its rings are in use
 *   CUDAQ_ERR_UNSUPPORTED   the server has another version of the attach protocol, or its requests are in the memory
 *                           of a GPU that this process cannot map
 *   CUDAQ_ERR_INTERNAL      the system refused access or memory
 * cudaq_shm_client_error has the text. */
CUDAQ_SHM_CLIENT_API cudaq_status_t cudaq_shm_client_attach(cudaq_shm_client_t **out_client, const char *name,
                                                            uint64_t timeout_ns,
                                                            const cudaq_shm_client_options_t *options);

/* The ring (host views only), valid until detach. The other pointers may be NULL. */
CUDAQ_SHM_CLIENT_API cudaq_status_t cudaq_shm_client_ring(const cudaq_shm_client_t *client,
                                                          cudaq_ringbuffer_t *out_ring, uint32_t *out_num_slots,
                                                          uint32_t *out_slot_size);

/* CUDAQ_MEMORY_HOST, or CUDAQ_MEMORY_DEVICE_RX if the server has the requests in the memory of a GPU (--requests gpu).
 * The slot helpers are right on both kinds, but on the second one each test for a free slot reads across the bus, about
 * 1 us. So write it through a producer's handle, which reads nothing there: cudaq_ringbuffer_producer_open_ring of
 * ring_producer.h, with this kind. Answers are collected as before. */
CUDAQ_SHM_CLIENT_API uint32_t cudaq_shm_client_memory_kind(const cudaq_shm_client_t *client);

/* 1 while the server lives, 0 after it has ended or has closed the connection. Makes one system call. */
CUDAQ_SHM_CLIENT_API int cudaq_shm_client_alive(const cudaq_shm_client_t *client);

/* As cudaq_host_ringbuffer_signal_slot; also wakes a server that sleeps (--wait-us). */
CUDAQ_SHM_CLIENT_API void cudaq_shm_client_signal(cudaq_shm_client_t *client, uint32_t slot);

/* Waits until slot `slot` is answered or free.
 *   CUDAQ_OK                there is an answer: cudaq_host_ringbuffer_poll_tx_flag says which
 *   CUDAQ_ERR_UNSUPPORTED   the slot is free: the server dropped the request (wrong magic, unknown function), or there
 *                           was none, or it was signalled before the slot was free; the text says which, if it is known
 *   CUDAQ_ERR_TIMEOUT       neither until timeout_ns had passed
 *   CUDAQ_ERR_STATE         the server has ended; this is detected within 10 ms, or with CUDAQ_WAIT_BLOCK within
 *                           sleep_ns if that is longer. Or another process has attached */
CUDAQ_SHM_CLIENT_API cudaq_status_t cudaq_shm_client_wait(cudaq_shm_client_t *client, uint32_t slot,
                                                          uint64_t timeout_ns);

/* Gives the ring back. Answers that were not collected are lost. The handle and the ring must not be used again. */
CUDAQ_SHM_CLIENT_API cudaq_status_t cudaq_shm_client_detach(cudaq_shm_client_t *client);

/* The reason of the last failed call of this thread. Empty before the first failure. */
CUDAQ_SHM_CLIENT_API const char *cudaq_shm_client_error(void);

#ifdef __cplusplus
}
#endif

#endif
