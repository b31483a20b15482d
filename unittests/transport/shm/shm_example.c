/* SPDX-License-Identifier: Apache-2.0 */
/* The client of docs/transport/transport_shm.md, and the check that the header and the library serve a C program.
 *
 *   shm_example NAME FUNCTION_ID   sends "HAL", prints the answer */
#include "cudaq/realtime/daemon/bridge/shm_client.h"

#include <stdio.h>
#include <stdlib.h>

static int send_one(const char *name, uint32_t function_id) {
  cudaq_rpc_response_t header;
  const void *result = NULL;
  cudaq_shm_client_t *client = NULL;
  cudaq_ringbuffer_t ring;
  cudaq_status_t status = cudaq_shm_client_attach(&client, name, 10000000000ull, NULL);
  if (status == CUDAQ_OK)
    status = cudaq_shm_client_ring(client, &ring, NULL, NULL);
  if (status == CUDAQ_OK)
    status = cudaq_host_ringbuffer_write_rpc_request(&ring, 0, function_id, "HAL", 3, 1, 0);
  if (status == CUDAQ_OK) {
    cudaq_shm_client_signal(client, 0);
    status = cudaq_shm_client_wait(client, 0, 10000000000ull);
  }
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
