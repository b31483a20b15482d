/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a ring and a dispatcher for the handler of handler.c, and sends it one request. */
#include "handler.h"

#include <stdio.h>

static int failed(void) {
  printf("%s\n", cudaq_last_error_message());
  return 1;
}

static int call_handler(const cudaq_ringbuffer_t *ring) {
  const uint8_t events[] = {0x05, 0x06};
  cudaq_rpc_response_t answer;
  const void *result;
  if (cudaq_host_ringbuffer_write_rpc_request(ring, 0, 7, events, sizeof events, 1, 0) != CUDAQ_OK)
    return failed();
  cudaq_host_ringbuffer_signal_slot(ring, 0);
  while (cudaq_host_ringbuffer_poll_tx_flag(ring, 0, NULL) != CUDAQ_TX_READY) {
  }
  if (cudaq_host_ringbuffer_read_rpc_response(ring, 0, &answer, &result) != CUDAQ_OK)
    return failed();
  const int correction = *(const uint8_t *)result;
  printf("status %d, correction %d\n", answer.status, correction);
  cudaq_host_ringbuffer_clear_slot(ring, 0);
  return answer.status == 0 && correction == 3 ? 0 : 1;
}

int main(void) {
  volatile int end = 0;
  uint64_t processed = 0;
  cudaq_ringbuffer_options_t options;
  cudaq_ringbuffer_memory_t *memory;
  cudaq_ringbuffer_t ring;
  cudaq_dispatch_manager_t *manager;
  cudaq_dispatcher_t *dispatcher;
  const cudaq_dispatcher_config_t config = {.num_slots = 8, .dispatch_path = CUDAQ_DISPATCH_PATH_HOST};
  if (cudaq_ringbuffer_options_init(&options, sizeof options) != CUDAQ_OK)
    return failed();
  options.num_slots = 8;
  options.slot_size = 256;
  if (cudaq_ringbuffer_create(&options, &memory, &ring) != CUDAQ_OK ||
      cudaq_dispatch_manager_create(&manager) != CUDAQ_OK ||
      cudaq_dispatcher_create(manager, &config, &dispatcher) != CUDAQ_OK ||
      serve(dispatcher, &ring, &end, &processed) != 0)
    return failed();
  const int wrong = call_handler(&ring);
  if (cudaq_dispatcher_destroy(dispatcher) != CUDAQ_OK || cudaq_dispatch_manager_destroy(manager) != CUDAQ_OK ||
      cudaq_ringbuffer_destroy(memory) != CUDAQ_OK)
    return failed();
  return wrong;
}
