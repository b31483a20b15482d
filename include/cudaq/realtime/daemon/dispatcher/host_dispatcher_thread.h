/* SPDX-License-Identifier: Apache-2.0 */
/* The host loop on a thread of the library, by the names of the existing system: a manager and a dispatcher in one
 * handle. New programs use cudaq_realtime.h, which has statuses, options and counters. */
#ifndef CUDAQ_REALTIME_HOST_DISPATCHER_THREAD_H
#define CUDAQ_REALTIME_HOST_DISPATCHER_THREAD_H

#include "cudaq/realtime/daemon/dispatcher/cudaq_realtime.h"

#include <stdlib.h>

typedef struct cudaq_host_dispatcher_handle_t {
  cudaq_dispatch_manager_t *manager;
  cudaq_dispatcher_t *dispatcher; /* for every function of cudaq_realtime.h */
} cudaq_host_dispatcher_handle_t;

/* Ends the thread, waits for accepted requests as cudaq_dispatcher_stop does, and frees the handle. NULL has no effect.
 * If a handler does not return within the grace period, its memory stays allocated. */
static inline void cudaq_host_dispatcher_stop(cudaq_host_dispatcher_handle_t *handle) {
  if (handle == NULL)
    return;
  if (handle->manager != NULL &&
      (handle->dispatcher == NULL || cudaq_dispatcher_destroy(handle->dispatcher) == CUDAQ_OK))
    (void)cudaq_dispatch_manager_destroy(handle->manager);
  free(handle);
}

/* Starts the loop. Ring, table and the two words as for a dispatcher on the host path; config->dispatch_path is not
 * read. mailbox may be NULL (cudaq_dispatcher_set_mailbox). NULL: it was refused, and cudaq_last_error_message has the
 * reason; without a new message there was no memory. */
static inline cudaq_host_dispatcher_handle_t *
cudaq_host_dispatcher_start_thread(const cudaq_ringbuffer_t *ringbuffer, const cudaq_function_table_t *table,
                                   const cudaq_dispatcher_config_t *config, volatile int *shutdown_flag,
                                   uint64_t *stats, void **mailbox) {
  cudaq_host_dispatcher_handle_t *const handle = (cudaq_host_dispatcher_handle_t *)calloc(1, sizeof(*handle));
  cudaq_dispatcher_config_t host;
  if (handle == NULL)
    return NULL;
  if (config != NULL) {
    host = *config;
    host.dispatch_path = CUDAQ_DISPATCH_PATH_HOST;
  }
  if (cudaq_dispatch_manager_create(&handle->manager) == CUDAQ_OK &&
      cudaq_dispatcher_create(handle->manager, config == NULL ? NULL : &host, &handle->dispatcher) == CUDAQ_OK &&
      cudaq_dispatcher_set_ringbuffer(handle->dispatcher, ringbuffer) == CUDAQ_OK &&
      cudaq_dispatcher_set_function_table(handle->dispatcher, table) == CUDAQ_OK &&
      cudaq_dispatcher_set_control(handle->dispatcher, shutdown_flag, stats) == CUDAQ_OK &&
      (mailbox == NULL || cudaq_dispatcher_set_mailbox(handle->dispatcher, mailbox) == CUDAQ_OK) &&
      cudaq_dispatcher_start(handle->dispatcher) == CUDAQ_OK)
    return handle;
  cudaq_host_dispatcher_stop(handle);
  return NULL;
}

/* cudaq_host_release_worker of the handle's dispatcher. */
static inline cudaq_status_t cudaq_host_dispatcher_release_worker(cudaq_host_dispatcher_handle_t *handle,
                                                                  int worker_id) {
  return cudaq_host_release_worker(handle == NULL ? NULL : handle->dispatcher, worker_id);
}

#endif
