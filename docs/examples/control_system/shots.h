/* SPDX-License-Identifier: Apache-2.0 */
/* What a control system sends, and the answers that it should get. */
#ifndef SHOTS_H
#define SHOTS_H
#include "control.h"

/* Row k % rows of both is that of request k. */
typedef struct {
  uint32_t function;
  size_t rows, event_bytes, answer_bytes;
  const uint8_t *events, *answers;
} shots_t;

/* For function 7 of handler.c, the parity of all bytes. */
static inline shots_t shots_of_handler(void) {
  static const uint8_t events[3][8] = {{0}, {0, 1}, {0, 3, 1}}, answers[3] = {0, 1, 2};
  return (shots_t){7, 3, sizeof events[0], 1, events[0], answers};
}

/* The number of rows of the file, and all its bytes; 0: it has none, or no whole number of them. */
static inline size_t read_rows(const char *path, size_t row_bytes, const uint8_t **bytes) {
  FILE *const file = fopen(path, "rb");
  const long size = file != NULL && fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
  uint8_t *const all = size > 0 && (size_t)size % row_bytes == 0 ? malloc((size_t)size) : NULL;
  const size_t rows = all == NULL ? 0 : (rewind(file), fread(all, row_bytes, (size_t)size / row_bytes, file));
  if (file != NULL)
    fclose(file);
  *bytes = all;
  return rows;
}

/* Recorded shots for decoder 0 of a decoding server. It says how many detectors and observables its model has; a row of
 * either file has a bit for each, so ceil(n / 8) bytes. No rows: after a text. */
static inline shots_t recorded_shots(cudaq_qec_client_t *client, const char *events, const char *answers) {
  shots_t shots = {CUDAQ_QEC_DECODE, 0, 0, 0, NULL, NULL};
  cudaq_qec_decoder_description_t model;
  int32_t status = 0;
  if (cudaq_qec_client_describe(client, 0, 5000000000u, &model, &status) != CUDAQ_OK || status != 0) {
    fprintf(stderr, "decoder 0: %s\n", status == 0 ? cudaq_qec_client_error() : cudaq_qec_server_status_string(status));
    return shots;
  }
  printf("decoder 0: %llu detectors, %llu observables, digest %016llx\n", (unsigned long long)model.detectors,
         (unsigned long long)model.observables, (unsigned long long)model.digest);
  shots.event_bytes = (size_t)(model.detectors + 7) / 8;
  shots.answer_bytes = (size_t)(model.observables + 7) / 8;
  if (shots.event_bytes == 0 || shots.answer_bytes == 0) { /* or so many that the sum wraps */
    fprintf(stderr, "decoder 0: no shots have so many detectors and observables\n");
    return shots;
  }
  const size_t rows = read_rows(events, shots.event_bytes, &shots.events);
  if (rows == 0 || rows != read_rows(answers, shots.answer_bytes, &shots.answers))
    fprintf(stderr, "%s and %s do not hold shots of such a model\n", events, answers);
  else
    shots.rows = rows;
  return shots;
}

#endif
