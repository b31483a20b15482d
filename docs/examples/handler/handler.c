/* SPDX-License-Identifier: Apache-2.0 */
#include "handler.h"

/* The handler, called for each request of function 7: detection events in, a correction out. */
static int32_t parity(cudaq_host_call_t *call, void *user) {
  uint8_t *const correction = call->result;
  (void)user; /* as given to set_host_handler_v2 */
  *correction = 0;
  for (uint32_t i = 0; i < call->payload_len; ++i)
    *correction ^= ((const uint8_t *)call->payload)[i];
  call->result_len = 1;
  return 0; /* the status of the answer */
}

/* After it, requests in the slots of the ring, or of the dispatcher's dataplane, are answered. */
int serve(cudaq_dispatcher_t *dispatcher, const cudaq_ringbuffer_t *ring, volatile int *end, uint64_t *processed) {
  return (ring != NULL && cudaq_dispatcher_set_ringbuffer(dispatcher, ring) != CUDAQ_OK) ||
         cudaq_dispatcher_set_host_handler_v2(dispatcher, 7, parity, NULL, NULL) != CUDAQ_OK ||
         cudaq_dispatcher_set_control(dispatcher, end, processed) != CUDAQ_OK ||
         cudaq_dispatcher_start(dispatcher) != CUDAQ_OK;
}
