/* SPDX-License-Identifier: Apache-2.0 */
/* A control system in C over shared memory: requests in the slots of its ring, one after the other. An answer that does
 * not come in time is collected later, before its slot is used again.
 *   shm_client NAME FUNCTION_ID [REQUESTS [LIMIT_US]] */
#include <cudaq/realtime/daemon/bridge/shm_client.h>
#include <cudaq/realtime/daemon/dispatcher/ring_producer.h>

#include <stdio.h>
#include <stdlib.h>

static const uint64_t long_ns = 10000000000ull; /* after it the server counts as stuck */
static cudaq_shm_client_t *client;
static cudaq_ringbuffer_t ring;
static cudaq_ringbuffer_producer_t *producer; /* only of a ring with requests in the memory of a GPU */

static cudaq_status_t open_ring(const char *name, uint32_t *num_slots) {
  cudaq_status_t status = cudaq_shm_client_attach(&client, name, long_ns, NULL);
  if (status == CUDAQ_OK)
    status = cudaq_shm_client_ring(client, &ring, num_slots, NULL);
  const uint32_t kind = status == CUDAQ_OK ? cudaq_shm_client_memory_kind(client) : 0;
  if (kind == CUDAQ_MEMORY_DEVICE_RX)
    status = cudaq_ringbuffer_producer_open_ring(&ring, *num_slots, kind, &producer);
  return status;
}

/* The slot must be free. */
static cudaq_status_t send_request(uint32_t slot, uint32_t function_id, uint32_t request_id) {
  if (producer != NULL) /* it takes the slots in the same order */
    return cudaq_ringbuffer_producer_send(producer, function_id, "HAL", 3, request_id, 0, long_ns, &slot);
  const cudaq_status_t status =
      cudaq_host_ringbuffer_write_rpc_request(&ring, slot, function_id, "HAL", 3, request_id, 0);
  if (status == CUDAQ_OK)
    cudaq_shm_client_signal(client, slot);
  return status;
}

/* The answer in the slot, which is free after it. After CUDAQ_ERR_TIMEOUT it is not: the answer still comes into it. */
static cudaq_status_t collect(uint32_t slot, uint64_t limit_ns, const char *when) {
  cudaq_rpc_response_t header;
  const void *result = NULL;
  cudaq_status_t status = cudaq_shm_client_wait(client, slot, limit_ns);
  if (status == CUDAQ_OK)
    status = cudaq_host_ringbuffer_read_rpc_response(&ring, slot, &header, &result);
  if (status == CUDAQ_OK) {
    printf("%s%u: status %d, %.*s\n", when, header.request_id, header.status, (int)header.result_len,
           (const char *)result);
    cudaq_host_ringbuffer_clear_slot(&ring, slot);
  }
  return status;
}

static cudaq_status_t play(uint32_t num_slots, uint32_t function_id, uint32_t requests, uint64_t limit_ns) {
  unsigned char *const is_late = calloc(num_slots, 1);
  cudaq_status_t status = is_late != NULL ? CUDAQ_OK : CUDAQ_ERR_INTERNAL;
  for (uint64_t id = 0; id < (uint64_t)requests + num_slots && status == CUDAQ_OK; ++id) {
    const uint32_t slot = (uint32_t)(id % num_slots);
    if (is_late[slot]) /* also after the last request, one pass of the ring: nothing is left */
      status = collect(slot, long_ns, "late ");
    is_late[slot] = 0;
    if (status != CUDAQ_OK || id >= requests)
      continue;
    status = send_request(slot, function_id, (uint32_t)id);
    if (status == CUDAQ_OK)
      status = collect(slot, limit_ns, "");
    is_late[slot] = status == CUDAQ_ERR_TIMEOUT;
    if (is_late[slot])
      status = CUDAQ_OK; /* the control system goes on without the answer */
  }
  free(is_late);
  return status;
}

int main(int argc, char **argv) {
  if (argc < 3)
    return fprintf(stderr, "usage: shm_client NAME FUNCTION_ID [REQUESTS [LIMIT_US]]\n"), 2;
  const uint32_t function_id = (uint32_t)strtoul(argv[2], NULL, 0);
  const uint32_t requests = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 1;
  const uint64_t limit_ns = argc > 4 ? strtoull(argv[4], NULL, 10) * 1000 : long_ns;
  uint32_t num_slots = 0;
  cudaq_status_t status = open_ring(argv[1], &num_slots);
  if (status == CUDAQ_OK)
    status = play(num_slots, function_id, requests, limit_ns);
  if (status != CUDAQ_OK) /* the first of these texts that is not empty has the reason */
    fprintf(stderr, "%s: %s%s\n", cudaq_status_string(status), cudaq_shm_client_error(), cudaq_last_error_message());
  if (producer != NULL)
    cudaq_ringbuffer_producer_close(producer);
  if (client != NULL)
    cudaq_shm_client_detach(client);
  return status == CUDAQ_OK ? 0 : 1;
}
