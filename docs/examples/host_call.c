/* SPDX-License-Identifier: Apache-2.0 */
/* One request through the library: a ring in host memory, a dispatcher, a decoder, an answer. Needs no GPU. */
#include <cudaq/realtime/daemon/dispatcher/host_dispatcher.h>
#include <stdio.h>
#define TRY(call)                                                                                                      \
  if ((call) != CUDAQ_OK)                                                                                              \
  return printf("%s\n", cudaq_last_error_message()), 1

/* The decoder's side: counts the detection events (set bits) of a request. */
static int32_t count_events(cudaq_host_call_t *call, void *user) {
  uint32_t *events = call->result;
  for (uint32_t i = *events = 0; i < 8 * call->payload_len; ++i)
    *events += ((const uint8_t *)call->payload)[i / 8] >> (i % 8) & 1;
  call->result_len = sizeof *events;
  return user == NULL ? 0 : 1; /* the response's status */
}

int main(void) {
  enum { COUNT = 0x7A11, SLOTS = 8, SLOT_SIZE = 256 };
  cudaq_ringbuffer_options_t options;
  cudaq_ringbuffer_memory_t *memory;
  cudaq_ringbuffer_t ring;
  TRY(cudaq_ringbuffer_options_init(&options, sizeof options));
  options.num_slots = SLOTS;
  options.slot_size = SLOT_SIZE;
  TRY(cudaq_ringbuffer_create(&options, &memory, &ring));

  cudaq_dispatcher_config_t config = {.num_slots = SLOTS, .dispatch_path = CUDAQ_DISPATCH_PATH_HOST};
  cudaq_dispatch_manager_t *manager;
  cudaq_dispatcher_t *dispatcher;
  volatile int shutdown = 0;
  uint64_t processed = 0;
  TRY(cudaq_dispatch_manager_create(&manager));
  TRY(cudaq_dispatcher_create(manager, &config, &dispatcher));
  TRY(cudaq_dispatcher_set_ringbuffer(dispatcher, &ring));
  TRY(cudaq_dispatcher_set_host_handler_v2(dispatcher, COUNT, count_events, NULL, NULL));
  TRY(cudaq_dispatcher_set_control(dispatcher, &shutdown, &processed));
  TRY(cudaq_dispatcher_start(dispatcher));

  /* The control system's side: fill slot 0, signal it, wait for the answer, give the slot back. */
  const uint8_t syndrome[] = {0x81, 0x03};
  cudaq_rpc_response_t response;
  const void *result;
  TRY(cudaq_host_ringbuffer_write_rpc_request(&ring, 0, COUNT, syndrome, sizeof syndrome, 1, 0));
  cudaq_host_ringbuffer_signal_slot(&ring, 0);
  while (cudaq_host_ringbuffer_poll_tx_flag(&ring, 0, NULL) != CUDAQ_TX_READY) {
  }
  TRY(cudaq_host_ringbuffer_read_rpc_response(&ring, 0, &response, &result));
  const uint32_t events = *(const uint32_t *)result;
  printf("request %u: status %d, %u detection events\n", response.request_id, response.status, events);
  cudaq_host_ringbuffer_clear_slot(&ring, 0);

  TRY(cudaq_dispatcher_destroy(dispatcher)); /* stops the dispatcher first */
  TRY(cudaq_dispatch_manager_destroy(manager));
  TRY(cudaq_ringbuffer_destroy(memory));
  return events == 4 ? 0 : 1;
}
