/* SPDX-License-Identifier: Apache-2.0 */
/* The client of docs/transport/transport_shm.md, and the check that the header and the library serve a C program.
 *
 *   shm_example NAME FUNCTION_ID   sends "HAL", prints the answer */
#include "cudaq/realtime/daemon/bridge/shm_client.h"
#include "cudaq/realtime/daemon/dispatcher/ring_producer.h"

#include <stdio.h>
#include <stdlib.h>

/* For every kind of ring, if the server does not sleep (--wait-us). Only a ring with requests in the memory of a GPU
 * needs it. A program keeps its handle open. */
static cudaq_status_t send_by_handle(const cudaq_shm_client_t *client, const cudaq_ringbuffer_t *ring,
                                     uint32_t num_slots, uint32_t function_id) {
  uint32_t slot = 0;
  cudaq_ringbuffer_producer_t *producer = NULL;
  const uint32_t kind = cudaq_shm_client_memory_kind(client);
  cudaq_status_t status = cudaq_ringbuffer_producer_open_ring(ring, num_slots, kind, &producer);
  if (status == CUDAQ_OK)
    status = cudaq_ringbuffer_producer_send(producer, function_id, "HAL", 3, 1, 0, 10000000000ull, &slot);
  if (producer != NULL)
    cudaq_ringbuffer_producer_close(producer);
  return status;
}

static int send_one(const char *name, uint32_t function_id) {
  cudaq_rpc_response_t header;
  const void *result = NULL;
  uint32_t num_slots = 0;
  cudaq_shm_client_t *client = NULL;
  cudaq_ringbuffer_t ring;
  cudaq_status_t status = cudaq_shm_client_attach(&client, name, 10000000000ull, NULL);
  if (status == CUDAQ_OK)
    status = cudaq_shm_client_ring(client, &ring, &num_slots, NULL);
  if (status == CUDAQ_OK && cudaq_shm_client_memory_kind(client) == CUDAQ_MEMORY_DEVICE_RX) {
    status = send_by_handle(client, &ring, num_slots, function_id);
  } else {
    if (status == CUDAQ_OK)
      status = cudaq_host_ringbuffer_write_rpc_request(&ring, 0, function_id, "HAL", 3, 1, 0);
    if (status == CUDAQ_OK)
      cudaq_shm_client_signal(client, 0);
  }
  if (status == CUDAQ_OK)
    status = cudaq_shm_client_wait(client, 0, 10000000000ull);
  if (status == CUDAQ_OK)
    status = cudaq_host_ringbuffer_read_rpc_response(&ring, 0, &header, &result);
  if (status == CUDAQ_OK)
    printf("%.*s\n", (int)header.result_len, (const char *)result);
  else
    printf("%s: %s\n", cudaq_status_string(status), cudaq_shm_client_error());
  if (client != NULL)
    cudaq_shm_client_detach(client);
  return status == CUDAQ_OK ? 0 : 1;
}

int main(int argc, char **argv) {
  if (argc != 3)
    return 2;
  return send_one(argv[1], (uint32_t)strtoul(argv[2], NULL, 0));
}
