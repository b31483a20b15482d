/* SPDX-License-Identifier: Apache-2.0 */
/* A producer's handle: requests of any size to a ring of any kind of memory. Needs no GPU. */
#include <cudaq/realtime/daemon/dispatcher/host_dispatcher.h>
#include <stdio.h>
#include <string.h>
#define TRY(call)                                                                                                      \
  if ((call) != CUDAQ_OK)                                                                                              \
  return printf("%s\n", cudaq_last_error_message()), 1

static int32_t echo(cudaq_host_call_t *call, void *user) {
  memcpy(call->result, call->payload, call->payload_len);
  call->result_len = call->payload_len;
  return user == NULL ? 0 : 1;
}

int main(void) {
  enum { ECHO = 0xEC40, SLOTS = 8 };
  cudaq_ringbuffer_options_t options;
  cudaq_ringbuffer_memory_t *memory;
  cudaq_ringbuffer_t ring;
  TRY(cudaq_ringbuffer_options_init(&options, sizeof options));
  options.num_slots = SLOTS;
  options.slot_size = 256;
  options.memory_kind = CUDAQ_MEMORY_HOST; /* for a kernel: CUDAQ_MEMORY_AUTO */
  TRY(cudaq_ringbuffer_create(&options, &memory, &ring));

  cudaq_ringbuffer_info_t info;
  info.struct_size = sizeof info;
  TRY(cudaq_ringbuffer_get_info(memory, &info));
  printf("memory kind %u: %s\n", info.memory_kind, info.reason);

  cudaq_dispatcher_config_t config = {.num_slots = SLOTS, .dispatch_path = CUDAQ_DISPATCH_PATH_HOST};
  cudaq_dispatch_manager_t *manager;
  cudaq_dispatcher_t *dispatcher;
  volatile int shutdown = 0;
  uint64_t processed = 0;
  TRY(cudaq_dispatch_manager_create(&manager));
  TRY(cudaq_dispatcher_create(manager, &config, &dispatcher));
  TRY(cudaq_dispatcher_set_ringbuffer(dispatcher, &ring));
  TRY(cudaq_dispatcher_set_host_handler_v2(dispatcher, ECHO, echo, NULL, NULL));
  TRY(cudaq_dispatcher_set_control(dispatcher, &shutdown, &processed));
  TRY(cudaq_dispatcher_start(dispatcher));

  cudaq_ringbuffer_producer_t *producer;
  TRY(cudaq_ringbuffer_producer_open(memory, &producer));
  const uint8_t payload[] = {1, 2, 3};
  const uint64_t timeout_ns = 1000000000;
  uint32_t slot, right = 0;
  for (uint32_t id = 0; id < 20; ++id) {
    TRY(cudaq_ringbuffer_producer_send(producer, ECHO, payload, sizeof payload, id, 0, timeout_ns, &slot));
    while (cudaq_host_ringbuffer_poll_tx_flag(&ring, slot, NULL) != CUDAQ_TX_READY) {
    }
    cudaq_rpc_response_t response;
    const void *result;
    TRY(cudaq_host_ringbuffer_read_rpc_response(&ring, slot, &response, &result));
    right += response.request_id == id && memcmp(result, payload, sizeof payload) == 0;
    cudaq_host_ringbuffer_clear_slot(&ring, slot);
  }
  TRY(cudaq_ringbuffer_producer_close(producer));

  printf("%u of 20 answers are right\n", right);
  TRY(cudaq_dispatcher_destroy(dispatcher));
  TRY(cudaq_dispatch_manager_destroy(manager));
  TRY(cudaq_ringbuffer_destroy(memory));
  return right == 20 ? 0 : 1;
}
