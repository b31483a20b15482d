/* SPDX-License-Identifier: Apache-2.0 */
/* A control system for a handler of your own: a request each CYCLE_US, and its answer within LIMIT_US.
 *   control_system HOST PORT REQUESTS CYCLE_US LIMIT_US [FUNCTION BYTES]     HOST shm: PORT is the name of the server
 * With FUNCTION, such as qec_decode of a decoding server: shots of BYTES bytes without an event. */
#include "control.h"

enum { kFunction = 7, kEvents = 8, kMaxEvents = 4096 }; /* the first two: of handler.c, the parity of all bytes */

int main(int argc, char **argv) {
  const int of_server = argc == 8;
  const uint32_t function = of_server ? (uint32_t)strtoul(argv[6], NULL, 0) : kFunction;
  const size_t bytes = of_server ? strtoull(argv[7], NULL, 10) : kEvents;
  if ((argc != 6 && !of_server) || strtoull(argv[3], NULL, 10) == 0 || bytes > kMaxEvents)
    return fprintf(stderr, "usage: control_system HOST PORT REQUESTS CYCLE_US LIMIT_US [FUNCTION BYTES]\n"), 2;
  const size_t requests = strtoull(argv[3], NULL, 10);
  const uint64_t cycle_ns = strtoull(argv[4], NULL, 10) * 1000;
  latencies_t times = {calloc(requests, sizeof(uint64_t)), 0, strtoull(argv[5], NULL, 10) * 1000, 0};
  cudaq_qec_client_t *const client = open_client(argv[1], argv[2]);
  if (client == NULL || times.ns == NULL)
    return 1;
  size_t missed = 0, wrong = 0;
  const uint64_t begin = now_ns();
  for (size_t k = 0; k < requests; ++k) {
    uint8_t events[kMaxEvents] = {0}; /* those of a real system come from its measurements */
    const uint8_t expected = of_server ? 0 : (uint8_t)(k % 3);
    events[k % kEvents] = expected;
    const uint64_t due = begin + k * cycle_ns;
    wait_until(due);
    const cudaq_qec_client_request_t request = {
        function, of_server ? 0 : CUDAQ_QEC_CLIENT_BUSY_IS_AN_ANSWER, events, bytes, NULL, 0, times.limit_ns};
    cudaq_qec_client_answer_t answer;
    const cudaq_status_t status = cudaq_qec_client_call(client, &request, &answer);
    if (status == CUDAQ_ERR_TIMEOUT) { /* no answer in time: go on without this correction */
      ++missed;
      record(&times, due); /* else the percentiles leave out the worst ones */
      continue;
    }
    if (status != CUDAQ_OK)
      return fprintf(stderr, "request %zu: %s\n", k, cudaq_qec_client_error()), 1;
    record(&times, due);
    if (answer.status != 0 && wrong == 0) /* the first one has the reason */
      fprintf(stderr, "request %zu: status %d\n", k, (int)answer.status);
    wrong += answer.status != 0 || answer.result_bytes != 1 || answer.result[0] != expected;
  }
  printf("requests %zu, missed %zu, wrong %zu\n", requests, missed, wrong);
  print_latencies(&times);
  cudaq_qec_client_close(client);
  free(times.ns);
  return wrong != 0 || missed == requests;
}
