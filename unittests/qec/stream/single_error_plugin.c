/* SPDX-License-Identifier: Apache-2.0 */
/* A decoder of models in which each detector has an error of its own: it takes this error for each event, which is a
 * solution, and not the likeliest one. It is built once for each form of errors (ERROR_FORM), and shows the text of the
 * last model.
 *
 * With a deadline it ends at once, with the status DEADLINE. The setting `best` says with what: 0 without a solution, 1
 * with the solution, 2 with one that does not explain the events. With 3 it ends without a deadline too, and says that
 * such a one is a solution. */
#include "cudaq/qec/decoding/decoder_plugin.h"

#include <stdlib.h>
#include <string.h>

typedef struct self_t {
  size_t bytes;
  uint8_t *observables; /* of the error of each detector: `bytes` each */
  int best;
} self_t;

static char last_text[1 << 16];

const char *single_error_plugin_text(void);
__attribute__((visibility("default"))) const char *single_error_plugin_text(void) { return last_text; }

/* The errors of one component with one detector. */
static void read_errors(self_t *self, const char *text) {
  char *copy = strdup(text), *rest = NULL;
  for (char *line = strtok_r(copy, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
    uint8_t *to = NULL;
    if (strncmp(line, "error(", 6) != 0 || strchr(line, '^') != NULL || strchr(line, 'D') != strrchr(line, 'D'))
      continue;
    for (char *inner = NULL, *word = strtok_r(line, " ", &inner); word != NULL; word = strtok_r(NULL, " ", &inner)) {
      const size_t number = strtoul(word + 1, NULL, 10);
      if (*word == 'D') {
        to = self->observables + number * self->bytes;
        memset(to, 0, self->bytes);
      } else if (*word == 'L' && to != NULL) {
        to[number / 8] = (uint8_t)(to[number / 8] | 1U << number % 8);
      }
    }
  }
  free(copy);
}

static int32_t create(const cudaq_qec_decoder_model_t *model, void **decoder, char *error, size_t error_size) {
  self_t *self = calloc(1, sizeof *self);
  (void)error;
  (void)error_size;
  self->bytes = (size_t)(model->num_observables + 7) / 8;
  self->observables = calloc((size_t)model->num_detectors + 1, self->bytes + 1);
  if (model->num_settings != 0)
    self->best = atoi(model->settings[0].value);
  strncpy(last_text, model->dem_text, sizeof last_text - 1);
  read_errors(self, model->dem_text);
  *decoder = self;
  return CUDAQ_QEC_DECODE_OK;
}

static int32_t decode(void *decoder, const uint64_t *events, size_t num_events, uint8_t *observables, double *weight) {
  const self_t *self = decoder;
  for (size_t k = 0; k < num_events && self->best != 3; ++k)
    for (size_t byte = 0; byte < self->bytes; ++byte)
      observables[byte] = (uint8_t)(observables[byte] ^ self->observables[events[k] * self->bytes + byte]);
  *weight = (double)num_events;
  return CUDAQ_QEC_DECODE_OK;
}

static int32_t decode_until(void *decoder, const uint64_t *events, size_t num_events, uint8_t *observables,
                            double *weight, const cudaq_qec_decode_control_t *control) {
  const self_t *self = decoder;
  (void)control;
  if (self->best == 1)
    decode(decoder, events, num_events, observables, weight);
  else if (self->best == 2)
    *weight = 0;
  return CUDAQ_QEC_DECODE_DEADLINE;
}

static void destroy(void *decoder) {
  self_t *self = decoder;
  free(self->observables);
  free(self);
}

const cudaq_qec_decoder_plugin_t *cudaq_qec_decoder_plugin_get(uint32_t host_version) {
  static const cudaq_qec_decoder_plugin_t table = {.version = CUDAQ_QEC_DECODER_PLUGIN_VERSION,
                                                   .struct_size = sizeof table,
                                                   .name = "single-error",
                                                   .create = create,
                                                   .decode = decode,
                                                   .destroy = destroy,
                                                   .decode_until = decode_until,
                                                   .error_form = ERROR_FORM};
  (void)host_version;
  return &table;
}
