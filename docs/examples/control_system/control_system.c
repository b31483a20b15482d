/* SPDX-License-Identifier: Apache-2.0 */
/* A control system: a request each CYCLE_US, its answer within LIMIT_US, and at most OPEN requests that wait for one.
 *   control_system HOST PORT REQUESTS CYCLE_US LIMIT_US OPEN [EVENTS ANSWERS]
 * HOST shm: PORT is the name of the server. For the handler of handler.c; with two files of recorded shots, for decoder
 * 0 of a decoding server, the first one of its file. */
#include "shots.h"

#include <cudaq/realtime/daemon/dispatcher/rpc_wire_format.h>

static struct {
  uint32_t request; /* as the library counts */
  size_t k;         /* as this program counts */
} waiting[64];
static uint32_t num_waiting;
static size_t missed, refused, skipped, wrong;

/* Not executed, and no fault of the request: the experiment goes on without this correction. */
static int is_refusal(const shots_t *shots, int32_t status) {
  const int of_server = shots->function == CUDAQ_QEC_DECODE; /* -5 and -4 of a handler of your own are its own */
  return status == CUDAQ_RPC_ERR_BUSY ||
         (of_server && (status == -CUDAQ_QEC_SERVER_BUSY || status == -CUDAQ_QEC_SERVER_NOT_READY));
}

static void collect(const cudaq_qec_client_answer_t *answer, const shots_t *shots, pace_t *pace) {
  uint32_t at = 0;
  while (waiting[at].request != answer->request)
    ++at;
  const size_t k = waiting[at].k;
  waiting[at] = waiting[--num_waiting];
  record(pace, k); /* also without an answer, or the percentiles leave out the worst ones */
  if (answer->event == CUDAQ_QEC_CLIENT_NO_ANSWER) {
    ++missed;
    return;
  }
  if (answer->event == CUDAQ_QEC_CLIENT_DROPPED) { /* it has no status */
    if (refused + wrong++ == 0)
      fprintf(stderr, "request %zu: the server has dropped it: no function 0x%08X\n", k, (unsigned)shots->function);
    return;
  }
  const uint8_t *const expected = shots->answers + k % shots->rows * shots->answer_bytes;
  if (answer->status == 0 && answer->result_bytes == shots->answer_bytes &&
      memcmp(answer->result, expected, shots->answer_bytes) == 0)
    return;
  if (refused + wrong == 0) /* the first one has the reason */
    fprintf(stderr, "request %zu: status %d, %s\n", k, (int)answer->status,
            cudaq_qec_server_answer_string(shots->function, answer->status));
  ++*(is_refusal(shots, answer->status) ? &refused : &wrong);
}

int main(int argc, char **argv) {
  const uint32_t max_open = argc < 7 ? 0 : (uint32_t)strtoul(argv[6], NULL, 10);
  if ((argc != 7 && argc != 9) || max_open == 0 || strtoull(argv[3], NULL, 10) == 0)
    return fprintf(stderr, "usage: control_system HOST PORT REQUESTS CYCLE_US LIMIT_US OPEN [EVENTS ANSWERS]\n"), 2;
  const size_t requests = strtoull(argv[3], NULL, 10);
  cudaq_qec_client_t *const client = open_client(argv[1], argv[2], max_open);
  if (client == NULL)
    return 1;
  const shots_t shots = argc == 9 ? recorded_shots(client, argv[7], argv[8]) : shots_of_handler();
  pace_t pace = begin_pace(requests, argv[4], argv[5]);
  if (shots.rows == 0 || pace.ns == NULL)
    return 1;
  for (size_t k = 0; k < requests || num_waiting != 0;) {
    const uint64_t due = due_ns(&pace, k), too_late = due + pace.limit_ns, now = now_ns();
    const int is_due = k < requests && now >= due;
    if (is_due && now >= too_late) { /* its answer would be of no use */
      ++skipped;
      record(&pace, k++);
      continue;
    }
    if (is_due && num_waiting < max_open) {
      const uint8_t *const events = shots.events + k % shots.rows * shots.event_bytes;
      const cudaq_qec_client_request_t request = {
          shots.function, CUDAQ_QEC_CLIENT_BUSY_IS_AN_ANSWER, events, shots.event_bytes, NULL, 0, too_late - now};
      const cudaq_status_t status = cudaq_qec_client_send(client, &request, &waiting[num_waiting].request);
      if (status == CUDAQ_OK) {
        waiting[num_waiting++].k = k++;
        continue;
      }
      if (status != CUDAQ_ERR_STATE || num_waiting == 0) /* else the answer to an old one must come first */
        return fprintf(stderr, "request %zu: %s\n", k, cudaq_qec_client_error()), 1;
    }
    const uint64_t end = k == requests ? UINT64_MAX : is_due ? too_late : due;
    if (num_waiting == 0) {
      wait_until(end);
      continue;
    }
    cudaq_qec_client_answer_t answer; /* to any of those that wait */
    const cudaq_status_t status = cudaq_qec_client_wait(client, end - now, &answer);
    if (status == CUDAQ_OK)
      collect(&answer, &shots, &pace);
    else if (status != CUDAQ_ERR_TIMEOUT)
      return fprintf(stderr, "request %zu: %s\n", k, cudaq_qec_client_error()), 1;
  }
  printf("requests %zu, missed %zu, refused %zu, skipped %zu, wrong %zu\n", requests, missed, refused, skipped, wrong);
  print_latencies(&pace);
  cudaq_qec_client_close(client);
  free(pace.ns);
  return wrong != 0 || missed + refused + skipped == requests;
}
