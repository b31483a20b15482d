/* SPDX-License-Identifier: Apache-2.0 */
/* A C program that serves one HOST_CALL request through the installed library.
 * Usage: consumer [--no-driver-loaded]. The option also checks that the process has loaded no CUDA library. */
#include <cudaq/realtime/daemon/dispatcher/cudaq_realtime.h>
#include <cudaq/realtime/daemon/dispatcher/host_dispatcher.h>
#include <cudaq/realtime/version.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define FUNCTION 0x1234u
#define SLOTS 4u

#define CHECK(call)                                                                                                    \
  do {                                                                                                                 \
    if ((call) != CUDAQ_OK) {                                                                                          \
      fprintf(stderr, "line %d: %s\n", __LINE__, cudaq_last_error_message());                                          \
      return 1;                                                                                                        \
    }                                                                                                                  \
  } while (0)

static void twice(const void *rx_slot, void *tx_slot, size_t slot_size) {
  cudaq_rpc_header_t request;
  cudaq_rpc_response_t response;
  uint32_t value;
  memcpy(&request, rx_slot, sizeof request);
  memcpy(&value, (const char *)rx_slot + sizeof request, sizeof value);
  value *= 2;
  memset(&response, 0, sizeof response);
  response.magic = CUDAQ_RPC_MAGIC_RESPONSE;
  response.result_len = sizeof value;
  memcpy(tx_slot, &response, sizeof response);
  memcpy((char *)tx_slot + sizeof response, &value, sizeof value);
  (void)slot_size;
}

static int cuda_library_is_loaded(void) {
  char line[512];
  int found = 0;
  FILE *maps = fopen("/proc/self/maps", "r");
  if (!maps)
    return -1;
  while (fgets(line, sizeof line, maps))
    if (strstr(line, "libcuda.so") || strstr(line, "libcudart.so")) {
      fprintf(stderr, "loaded: %s", line);
      found = 1;
    }
  fclose(maps);
  return found;
}

static int wait_for_answer(const cudaq_ringbuffer_t *ring, uint32_t slot) {
  const time_t deadline = time(NULL) + 20;
  while (cudaq_host_ringbuffer_poll_tx_flag(ring, slot, NULL) != CUDAQ_TX_READY)
    if (time(NULL) > deadline) {
      fprintf(stderr, "no answer in slot %u\n", slot);
      return 0;
    }
  return 1;
}

int main(int argc, char **argv) {
  cudaq_ringbuffer_options_t options;
  cudaq_ringbuffer_memory_t *memory;
  cudaq_ringbuffer_t ring;
  cudaq_dispatcher_config_t config;
  cudaq_function_entry_t entry;
  cudaq_function_table_t table = {&entry, 1};
  cudaq_dispatch_manager_t *manager;
  cudaq_dispatcher_t *dispatcher;
  volatile int shutdown = 0;
  uint64_t processed = 0;
  uint32_t i;

  if (cudaq_realtime_version() != CUDAQ_REALTIME_VERSION) {
    fprintf(stderr, "library %06x, headers %06x\n", cudaq_realtime_version(), CUDAQ_REALTIME_VERSION);
    return 1;
  }
  CHECK(cudaq_ringbuffer_options_init(&options, sizeof options));
  options.num_slots = SLOTS;
  options.slot_size = 128;
  CHECK(cudaq_ringbuffer_create(&options, &memory, &ring));
  memset(&entry, 0, sizeof entry);
  entry.handler.host_fn = twice;
  entry.function_id = FUNCTION;
  entry.dispatch_mode = CUDAQ_DISPATCH_HOST_CALL;
  memset(&config, 0, sizeof config);
  config.num_slots = SLOTS;
  config.slot_size = 128;
  config.dispatch_mode = CUDAQ_DISPATCH_HOST_CALL;
  config.dispatch_path = CUDAQ_DISPATCH_PATH_HOST;
  CHECK(cudaq_dispatch_manager_create(&manager));
  CHECK(cudaq_dispatcher_create(manager, &config, &dispatcher));
  CHECK(cudaq_dispatcher_set_ringbuffer(dispatcher, &ring));
  CHECK(cudaq_dispatcher_set_function_table(dispatcher, &table));
  CHECK(cudaq_dispatcher_set_control(dispatcher, &shutdown, &processed));
  CHECK(cudaq_dispatcher_start(dispatcher));

  for (i = 0; i < 3 * SLOTS; ++i) {
    cudaq_rpc_response_t response;
    const void *result;
    uint32_t answer;
    CHECK(cudaq_host_ringbuffer_write_rpc_request(&ring, i % SLOTS, FUNCTION, &i, sizeof i, 100 + i, 7));
    cudaq_host_ringbuffer_signal_slot(&ring, i % SLOTS);
    if (!wait_for_answer(&ring, i % SLOTS))
      return 1;
    CHECK(cudaq_host_ringbuffer_read_rpc_response(&ring, i % SLOTS, &response, &result));
    memcpy(&answer, result, sizeof answer);
    if (response.status != 0 || response.request_id != 100 + i || response.ptp_timestamp != 7 || answer != 2 * i) {
      fprintf(stderr, "request %u: status %d, id %u, answer %u\n", i, response.status, response.request_id, answer);
      return 1;
    }
    cudaq_host_ringbuffer_clear_slot(&ring, i % SLOTS);
  }
  CHECK(cudaq_dispatcher_stop(dispatcher));
  CHECK(cudaq_dispatcher_destroy(dispatcher));
  CHECK(cudaq_dispatch_manager_destroy(manager));
  CHECK(cudaq_ringbuffer_destroy(memory));
  printf("%u requests answered\n", 3 * SLOTS);
  return argc > 1 && strcmp(argv[1], "--no-driver-loaded") == 0 ? cuda_library_is_loaded() : 0;
}
