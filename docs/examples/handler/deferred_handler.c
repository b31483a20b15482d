/* SPDX-License-Identifier: Apache-2.0 */
/* The handler of handler.c, but it answers later, from another thread; built in place of handler.c. A program with many
 * requests has a thread and a queue, not a new thread for each. */
#include "handler.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct later {
  cudaq_dispatcher_t *dispatcher;
  cudaq_host_call_t call; /* a copy: the struct and its payload end with the handler */
  uint8_t events[];
};

static void *answer(void *of) {
  struct later *const later = of;
  uint8_t *const correction = later->call.result; /* this request's until it is completed */
  *correction = 0;
  for (uint32_t i = 0; i < later->call.payload_len; ++i)
    *correction ^= later->events[i];
  cudaq_host_complete_deferred(later->dispatcher, &later->call.job, 0, 1);
  free(later);
  return NULL;
}

static int32_t parity_later(cudaq_host_call_t *call, void *user) {
  struct later *const later = malloc(sizeof *later + call->payload_len);
  pthread_t thread;
  if (later == NULL)
    return 1;
  later->dispatcher = user;
  later->call = *call;
  memcpy(later->events, call->payload, call->payload_len);
  if (pthread_create(&thread, NULL, answer, later) != 0) {
    free(later);
    return 1;
  }
  pthread_detach(thread);
  return CUDAQ_HOST_CALL_DEFERRED;
}

int serve(cudaq_dispatcher_t *dispatcher, const cudaq_ringbuffer_t *ring, volatile int *end, uint64_t *processed) {
  return (ring != NULL && cudaq_dispatcher_set_ringbuffer(dispatcher, ring) != CUDAQ_OK) ||
         cudaq_dispatcher_set_host_handler_v2(dispatcher, 7, parity_later, dispatcher, NULL) != CUDAQ_OK ||
         cudaq_dispatcher_set_control(dispatcher, end, processed) != CUDAQ_OK ||
         cudaq_dispatcher_start(dispatcher) != CUDAQ_OK;
}
