/* SPDX-License-Identifier: Apache-2.0 */
/* A program of the existing system on the host path: a table of host functions, a ring in plain memory, RX and TX
 * separate. Compiled with CUDAQ_REALTIME_UPSTREAM_INTERFACE it uses the loop of the newer interface on a thread of its
 * own, otherwise a dispatcher. */
#include "cudaq/realtime/daemon/dispatcher/cudaq_realtime.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SLOTS = 4, SLOT_SIZE = 128, REQUESTS = 1000 };

static _Alignas(64) uint64_t rx_flags[SLOTS], tx_flags[SLOTS];
static _Alignas(64) uint8_t rx_data[SLOTS * SLOT_SIZE], tx_data[SLOTS * SLOT_SIZE];

static void fail(const char *what) {
  printf("failed: %s: %s\n", what, cudaq_last_error_message());
  exit(1);
}
#define CHECK(call) ((call) == CUDAQ_OK ? (void)0 : fail(#call))

/* Answers the payload word plus `step`. */
static void answer(const void *rx_slot, void *tx_slot, uint32_t step) {
  uint32_t word;
  memcpy(&word, (const uint8_t *)rx_slot + sizeof(cudaq_rpc_header_t), sizeof(word));
  word += step;
  const cudaq_rpc_response_t response = {CUDAQ_RPC_MAGIC_RESPONSE, 0, sizeof(word), 0, 0};
  memcpy(tx_slot, &response, sizeof(response));
  memcpy((uint8_t *)tx_slot + sizeof(response), &word, sizeof(word));
}
static void add_one(const void *rx_slot, void *tx_slot, size_t slot_size) {
  (void)slot_size;
  answer(rx_slot, tx_slot, 1);
}
static void add_two(const void *rx_slot, void *tx_slot, size_t slot_size) {
  (void)slot_size;
  answer(rx_slot, tx_slot, 2);
}
static cudaq_function_entry_t table[2];
static uint64_t stats;

/* Waits until `done` is true, at most 20 s. */
#define AWAIT(done)                                                                                                    \
  for (const time_t end = time(NULL) + 20; !(done);)                                                                   \
    if (time(NULL) > end)                                                                                              \
      fail("no progress: " #done);                                                                                     \
    else                                                                                                               \
      CUDAQ_REALTIME_CPU_RELAX()

static void exchange_all(const cudaq_ringbuffer_t *ring) {
  for (uint32_t n = 0; n < REQUESTS; ++n) {
    const uint32_t slot = n % SLOTS, function = n % 2;
    cudaq_rpc_response_t header;
    const void *result;
    uint32_t word;
    AWAIT(cudaq_host_ringbuffer_slot_available(ring, slot));
    CHECK(cudaq_host_ringbuffer_write_rpc_request(ring, slot, table[function].function_id, &n, sizeof(n), n, n));
    cudaq_host_ringbuffer_signal_slot(ring, slot);
    AWAIT(cudaq_host_ringbuffer_poll_tx_flag(ring, slot, NULL) == CUDAQ_TX_READY);
    CHECK(cudaq_host_ringbuffer_read_rpc_response(ring, slot, &header, &result));
    memcpy(&word, result, sizeof(word));
    if (header.status != 0 || header.request_id != n || word != n + 1 + function)
      fail("a wrong answer");
    cudaq_host_ringbuffer_clear_slot(ring, slot);
  }
}

#if defined(CUDAQ_REALTIME_UPSTREAM_INTERFACE)
static void *run_loop(void *ctx) {
  cudaq_host_dispatcher_loop(ctx);
  return NULL;
}
static void serve(const cudaq_ringbuffer_t *ring, const cudaq_dispatcher_config_t *config) {
  static _Atomic int shutdown_flag;
  cudaq_host_dispatch_loop_ctx_t ctx;
  pthread_t loop;
  memset(&ctx, 0, sizeof(ctx));
  ctx.ringbuffer = *ring;
  ctx.config = *config;
  ctx.function_table.entries = table;
  ctx.function_table.count = 2;
  ctx.shutdown_flag = &shutdown_flag;
  ctx.stats_counter = &stats;
  if (pthread_create(&loop, NULL, run_loop, &ctx) != 0)
    fail("pthread_create");
  exchange_all(ring);
  atomic_store(&shutdown_flag, 1);
  pthread_join(loop, NULL);
}
#else
static void serve(const cudaq_ringbuffer_t *ring, const cudaq_dispatcher_config_t *config) {
  const cudaq_function_table_t functions = {table, 2};
  static volatile int shutdown_flag;
  cudaq_dispatch_manager_t *manager;
  cudaq_dispatcher_t *dispatcher;
  CHECK(cudaq_dispatch_manager_create(&manager));
  CHECK(cudaq_dispatcher_create(manager, config, &dispatcher));
  CHECK(cudaq_dispatcher_set_ringbuffer(dispatcher, ring));
  CHECK(cudaq_dispatcher_set_function_table(dispatcher, &functions));
  CHECK(cudaq_dispatcher_set_control(dispatcher, &shutdown_flag, &stats));
  CHECK(cudaq_dispatcher_start(dispatcher));
  exchange_all(ring);
  CHECK(cudaq_dispatcher_stop(dispatcher));
  CHECK(cudaq_dispatcher_destroy(dispatcher));
  CHECK(cudaq_dispatch_manager_destroy(manager));
}
#endif

int main(void) {
  cudaq_ringbuffer_t ring;
  cudaq_dispatcher_config_t config;
  memset(&ring, 0, sizeof(ring));
  memset(&config, 0, sizeof(config));
  ring.rx_flags_host = rx_flags;
  ring.tx_flags_host = tx_flags;
  ring.rx_data_host = rx_data;
  ring.tx_data_host = tx_data;
  ring.rx_stride_sz = ring.tx_stride_sz = SLOT_SIZE;
  config.num_slots = SLOTS;
  config.slot_size = SLOT_SIZE;
  config.dispatch_path = CUDAQ_DISPATCH_PATH_HOST;
  config.dispatch_mode = CUDAQ_DISPATCH_HOST_CALL;
  table[0].handler.host_fn = add_one;
  table[1].handler.host_fn = add_two;
  table[0].function_id = 0x1001;
  table[1].function_id = 0x1002;
  table[0].dispatch_mode = table[1].dispatch_mode = CUDAQ_DISPATCH_HOST_CALL;
  serve(&ring, &config);
  if (stats != REQUESTS)
    fail("the number of processed requests");
  printf("%d requests answered\n", REQUESTS);
  return 0;
}
