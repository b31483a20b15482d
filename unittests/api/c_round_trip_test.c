/* SPDX-License-Identifier: Apache-2.0 */
/* A C11 program that links the shared library as a user's program does: one round trip per handler form. It checks
 * every return value, prints the first failure and then returns 1. */
#include "cudaq/realtime/daemon/bridge/bridge_interface.h"
#include "cudaq/realtime/daemon/dispatcher/cpu_relax.h"
#include "cudaq/realtime/daemon/dispatcher/cudaq_realtime.h"
#include "cudaq/realtime/daemon/dispatcher/host_dispatcher.h"
#include "cudaq/realtime/daemon/dispatcher/host_dispatcher_thread.h"
#include "cudaq/realtime/version.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define SLOTS 4u
#define CHECK(condition)                                                                                               \
  do {                                                                                                                 \
    if (!(condition)) {                                                                                                \
      fprintf(stderr, "line %d: %s: %s\n", __LINE__, #condition, cudaq_last_error_message());                          \
      return 1;                                                                                                        \
    }                                                                                                                  \
  } while (0)

static void add_one(const void *rx_slot, void *tx_slot, size_t slot_size) {
  cudaq_rpc_header_t request;
  memcpy(&request, rx_slot, sizeof(request));
  uint32_t number = 0;
  if (slot_size >= sizeof(request) + sizeof(number) && request.arg_len == sizeof(number))
    memcpy(&number, (const uint8_t *)rx_slot + sizeof(request), sizeof(number));
  ++number;
  const cudaq_rpc_response_t response = {CUDAQ_RPC_MAGIC_RESPONSE, 0, sizeof(number), 0, 0};
  memcpy(tx_slot, &response, sizeof(response));
  memcpy((uint8_t *)tx_slot + sizeof(response), &number, sizeof(number));
}

static int32_t add_user(cudaq_host_call_t *call, void *user) {
  uint32_t number = 0;
  if (call->payload_len != sizeof(number))
    return 1;
  memcpy(&number, call->payload, sizeof(number));
  number += *(const uint32_t *)user;
  memcpy(call->result, &number, sizeof(number));
  call->result_len = sizeof(number);
  return 0;
}

/* Sends `number` in `slot` and waits at most 20 s for the answer. Returns 0 if the answer is missing or wrong. */
static uint32_t call_function(const cudaq_ringbuffer_t *ring, uint32_t slot, uint32_t function_id, uint32_t number) {
  if (cudaq_host_ringbuffer_slot_available(ring, slot) != 1 ||
      cudaq_host_ringbuffer_write_rpc_request(ring, slot, function_id, &number, sizeof(number), number, 99) != CUDAQ_OK)
    return 0;
  cudaq_host_ringbuffer_signal_slot(ring, slot);
  const time_t end = time(NULL) + 20;
  while (cudaq_host_ringbuffer_poll_tx_flag(ring, slot, NULL) != CUDAQ_TX_READY) {
    CUDAQ_REALTIME_CPU_RELAX();
    if (time(NULL) > end)
      return 0;
  }
  cudaq_rpc_response_t header;
  const void *result = NULL;
  uint32_t answer = 0;
  if (cudaq_host_ringbuffer_read_rpc_response(ring, slot, &header, &result) == CUDAQ_OK &&
      header.status == CUDAQ_RPC_OK && header.request_id == number && header.ptp_timestamp == 99 &&
      header.result_len == sizeof(answer))
    memcpy(&answer, result, sizeof(answer));
  cudaq_host_ringbuffer_clear_slot(ring, slot);
  return answer;
}

/* The loop by the names of the existing system. */
static int run_thread(const cudaq_ringbuffer_t *ring, const cudaq_function_table_t *table,
                      const cudaq_dispatcher_config_t *config) {
  const cudaq_realtime_transport_provider_t provider = CUDAQ_PROVIDER_HOLOLINK;
  CHECK(provider == CUDAQ_PROVIDER_GPU_ROCE);
  volatile int shutdown_flag = 0;
  uint64_t stats = 0;
  CHECK(cudaq_host_dispatcher_start_thread(ring, table, NULL, &shutdown_flag, &stats, NULL) == NULL);
  CHECK(strstr(cudaq_last_error_message(), "config is NULL") != NULL);
  CHECK(cudaq_host_dispatcher_start_thread(ring, table, config, NULL, &stats, NULL) == NULL);
  CHECK(strstr(cudaq_last_error_message(), "shutdown_flag is NULL") != NULL);
  cudaq_host_dispatcher_stop(NULL);
  cudaq_dispatcher_config_t device = *config;
  device.dispatch_path = CUDAQ_DISPATCH_PATH_DEVICE;
  cudaq_host_dispatcher_handle_t *const handle =
      cudaq_host_dispatcher_start_thread(ring, table, &device, &shutdown_flag, &stats, NULL);
  CHECK(handle != NULL);
  for (uint32_t n = 1; n <= 2 * SLOTS; ++n)
    CHECK(call_function(ring, (n - 1) % SLOTS, 1, n) == n + 1);
  CHECK(cudaq_host_dispatcher_release_worker(handle, 0) != CUDAQ_OK);
  CHECK(cudaq_host_dispatcher_release_worker(NULL, 0) == CUDAQ_ERR_INVALID_ARG);
  cudaq_host_dispatcher_stop(handle);
  CHECK(stats == 2 * SLOTS && shutdown_flag == 1);
  return 0;
}

int main(void) {
  CHECK(cudaq_realtime_version() == CUDAQ_REALTIME_VERSION);
  cudaq_ringbuffer_options_t ring_options;
  CHECK(cudaq_ringbuffer_options_init(&ring_options, sizeof(ring_options)) == CUDAQ_OK);
  ring_options.num_slots = SLOTS;
  ring_options.slot_size = 64;
  cudaq_ringbuffer_memory_t *memory = NULL;
  cudaq_ringbuffer_t ring;
  CHECK(cudaq_ringbuffer_create(&ring_options, &memory, &ring) == CUDAQ_OK);
  cudaq_dispatch_manager_t *manager = NULL;
  CHECK(cudaq_dispatch_manager_create(&manager) == CUDAQ_OK);
  const cudaq_dispatcher_config_t config = {.num_slots = SLOTS,
                                            .slot_size = 64,
                                            .dispatch_mode = CUDAQ_DISPATCH_HOST_CALL,
                                            .dispatch_path = CUDAQ_DISPATCH_PATH_HOST};
  cudaq_dispatcher_t *dispatcher = NULL;
  CHECK(cudaq_dispatcher_create(manager, &config, &dispatcher) == CUDAQ_OK);
  cudaq_function_entry_t entry = {
      .handler.host_fn = add_one, .function_id = 1, .dispatch_mode = CUDAQ_DISPATCH_HOST_CALL};
  const cudaq_function_table_t table = {&entry, 1};
  uint32_t user = 100;
  volatile int shutdown_flag = 0;
  uint64_t stats = 0;
  CHECK(cudaq_dispatcher_set_ringbuffer(dispatcher, &ring) == CUDAQ_OK);
  CHECK(cudaq_dispatcher_set_function_table(dispatcher, &table) == CUDAQ_OK);
  CHECK(cudaq_dispatcher_set_host_handler_v2(dispatcher, 2, add_user, &user, NULL) == CUDAQ_OK);
  CHECK(cudaq_dispatcher_set_control(dispatcher, &shutdown_flag, &stats) == CUDAQ_OK);
  CHECK(cudaq_dispatcher_start(dispatcher) == CUDAQ_OK);
  CHECK(cudaq_dispatcher_start(dispatcher) == CUDAQ_OK);
  for (uint32_t n = 1; n <= 3 * SLOTS; ++n)
    CHECK(call_function(&ring, (n - 1) % SLOTS, n % 2 + 1, n) == (n % 2 ? n + 100 : n + 1));
  cudaq_dispatcher_state_t state = CUDAQ_DISPATCHER_CREATED;
  CHECK(cudaq_dispatcher_get_state(dispatcher, &state) == CUDAQ_OK && state == CUDAQ_DISPATCHER_RUNNING);
  CHECK(cudaq_dispatcher_stop(dispatcher) == CUDAQ_OK);
  CHECK(stats == 3 * SLOTS);
  cudaq_dispatcher_stats_t counters = {.struct_size = sizeof(counters)};
  CHECK(cudaq_dispatcher_get_stats(dispatcher, &counters) == CUDAQ_OK && counters.responded == 3 * SLOTS);
  CHECK(cudaq_dispatch_manager_destroy(manager) == CUDAQ_ERR_STATE);
  CHECK(cudaq_dispatcher_destroy(dispatcher) == CUDAQ_OK);
  CHECK(cudaq_dispatch_manager_destroy(manager) == CUDAQ_OK);
  CHECK(run_thread(&ring, &table, &config) == 0);
  CHECK(cudaq_ringbuffer_destroy(memory) == CUDAQ_OK);
  return 0;
}
