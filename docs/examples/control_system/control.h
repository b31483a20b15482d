/* SPDX-License-Identifier: Apache-2.0 */
/* What the control systems of this folder share: the address of the server, the pace, and the percentiles. */
#ifndef CONTROL_H
#define CONTROL_H
#define _POSIX_C_SOURCE 200809L

#include <cudaq/qec/realtime/decoding_client.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Request k is due at begin_ns + k cycles, whatever the one before it took. */
typedef struct {
  uint64_t begin_ns, cycle_ns, limit_ns;
  uint64_t *ns;       /* from the time at which a request was due to its answer, or to the end of its time */
  size_t count, late; /* an answer after the limit is late */
} pace_t;

/* `host` shm: the server `port` of shared memory. Else UDP. NULL after a text. */
static inline cudaq_qec_client_t *open_client(const char *host, const char *port, uint32_t max_open) {
  const cudaq_qec_client_options_t options = {.struct_size = sizeof options, .max_open = max_open};
  cudaq_qec_client_t *client = NULL;
  const cudaq_status_t status = strcmp(host, "shm") == 0
                                    ? cudaq_qec_client_open_shm(&client, port, 5000000000u, &options)
                                    : cudaq_qec_client_open_udp(&client, host, (uint16_t)atoi(port), &options);
  if (status != CUDAQ_OK)
    fprintf(stderr, "%s %s: %s\n", host, port, cudaq_qec_client_error());
  return status == CUDAQ_OK ? client : NULL;
}

static inline uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline void wait_until(uint64_t due_ns) {
  const struct timespec due = {(time_t)(due_ns / 1000000000u), (long)(due_ns % 1000000000u)};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL) == EINTR) {
  }
}

/* The first one is due now. `ns` is NULL if there is no memory. */
static inline pace_t begin_pace(size_t requests, const char *cycle_us, const char *limit_us) {
  return (pace_t){now_ns(),
                  strtoull(cycle_us, NULL, 10) * 1000,
                  strtoull(limit_us, NULL, 10) * 1000,
                  calloc(requests, sizeof(uint64_t)),
                  0,
                  0};
}

static inline uint64_t due_ns(const pace_t *pace, size_t k) { return pace->begin_ns + k * pace->cycle_ns; }

/* The end of request k. From its due time, not from the send: one that waited for the one before it is late, too. */
static inline void record(pace_t *pace, size_t k) {
  pace->ns[pace->count] = now_ns() - due_ns(pace, k);
  pace->late += pace->ns[pace->count++] > pace->limit_ns;
}

static inline int by_size(const void *a, const void *b) {
  const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

static inline void print_latencies(pace_t *of) {
  const struct {
    const char *name;
    double share;
  } percentiles[] = {{"p50", 0.5}, {"p99", 0.99}, {"p99.9", 0.999}, {"max", 1}};
  qsort(of->ns, of->count, sizeof *of->ns, by_size);
  for (size_t k = 0; of->count != 0 && k < sizeof percentiles / sizeof *percentiles; ++k)
    printf("%s %.1f us  ", percentiles[k].name,
           (double)of->ns[(size_t)(percentiles[k].share * (double)(of->count - 1) + 0.5)] / 1e3);
  printf("late %zu of %zu\n", of->late, of->count);
}

#endif
