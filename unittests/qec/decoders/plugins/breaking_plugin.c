/* SPDX-License-Identifier: Apache-2.0 */
/* A plug-in that breaks the promise of its setting break=WHAT, and without it keeps all. It takes models whose error k
 * flips detector k alone, so the errors of a shot are its events. decoder_plugin_test.cpp says what each must lead to.
 */
#include "cudaq/qec/decoding/decoder_plugin.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 64 };
typedef struct state {
  char broken[32];
  uint64_t observables, flips[MOST]; /* flips: bit k of an error is observable k */
  double weights[MOST];
  uint64_t events[MOST];
  size_t count;
  int replaced, restores; /* the probabilities are those of a shot; calls that should end this */
} state;

static int breaks(const state *s, const char *what) { return strcmp(s->broken, what) == 0; }

static int32_t create(const cudaq_qec_decoder_model_t *model, void **decoder, char *error, size_t error_size) {
  state *const s = calloc(1, sizeof *s);
  const cudaq_qec_decoder_flips_t *const errors = &model->errors->errors;
  if (s == NULL)
    return CUDAQ_QEC_DECODE_INTERNAL_ERROR;
  *decoder = s;
  for (size_t k = 0; k < model->num_settings; ++k)
    if (strcmp(model->settings[k].key, "break") == 0)
      snprintf(s->broken, sizeof s->broken, "%s", model->settings[k].value);
  s->observables = model->num_observables;
  if (errors->num_rows > MOST && s->broken[0] == '\0') {
    snprintf(error, error_size, "too many errors");
    free(s);
    return CUDAQ_QEC_DECODE_NOT_SUPPORTED;
  }
  for (uint64_t k = 0; k < errors->num_rows && k < MOST; ++k) {
    const double p = model->errors->probabilities[k];
    s->weights[k] = log((1 - p) / p);
    for (uint64_t at = errors->first_observable[k]; at < errors->first_observable[k + 1]; ++at)
      s->flips[k] |= UINT64_C(1) << errors->observables[at];
  }
  return CUDAQ_QEC_DECODE_OK;
}

static int32_t decode(void *decoder, const uint64_t *events, size_t count, uint8_t *observables, double *weight) {
  state *const s = decoder;
  if (breaks(s, "status"))
    return 17;
  if (breaks(s, "internal"))
    return CUDAQ_QEC_DECODE_INTERNAL_ERROR;
  if (breaks(s, "deadline"))
    return CUDAQ_QEC_DECODE_DEADLINE;
  s->count = count < MOST ? count : MOST;
  memcpy(s->events, events, s->count * sizeof *events);
  uint64_t flips = 0;
  for (size_t k = 0; k < s->count; ++k)
    flips ^= s->events[k] < MOST ? s->flips[s->events[k]] : 0;
  if (breaks(s, "answer") || (breaks(s, "answer_of_2") && count != 0 && events[count - 1] == 2))
    flips ^= 1;
  for (uint64_t k = 0; k < s->observables && k < 64; ++k)
    observables[k / 8] = (uint8_t)(observables[k / 8] | (flips >> k & 1) << k % 8);
  if (breaks(s, "bits"))
    observables[s->observables / 8] = (uint8_t)(observables[s->observables / 8] | 1U << s->observables % 8);
  *weight = breaks(s, "weight_sum") ? 0.2 : 0;
  for (size_t k = 0; k < s->count && !breaks(s, "weight_sum"); ++k)
    *weight += s->events[k] < MOST ? s->weights[s->events[k]] : 0;
  if (breaks(s, "weight_sign"))
    *weight = -1;
  if (s->replaced)
    *weight = -7;
  if (breaks(s, "weight_infinite"))
    *weight = HUGE_VAL;
  return CUDAQ_QEC_DECODE_OK;
}

static int32_t decode_until(void *decoder, const uint64_t *events, size_t count, uint8_t *observables, double *weight,
                            const cudaq_qec_decode_control_t *control) {
  (void)control;
  return breaks(decoder, "until") ? CUDAQ_QEC_DECODE_NOT_SUPPORTED
                                  : decode(decoder, events, count, observables, weight);
}

static size_t edges(void *decoder, cudaq_qec_correction_edge_t *edges, size_t max) {
  const state *const s = decoder;
  for (size_t k = 0; k < s->count && k < max; ++k) {
    edges[k].first = s->events[k];
    edges[k].second = breaks(s, "edge_range") ? 12345 : CUDAQ_QEC_BOUNDARY;
  }
  return s->count - (breaks(s, "edge_cause") && s->count != 0);
}

static size_t columns(void *decoder, uint64_t *columns, size_t max) {
  const state *const s = decoder;
  if (breaks(s, "column_count"))
    return 1000;
  for (size_t k = 0; k < s->count && k < max; ++k)
    columns[k] = breaks(s, "column_range") ? 1000 : s->events[breaks(s, "column_order") ? s->count - 1 - k : k];
  return s->count - (breaks(s, "column_cause") && s->count != 0);
}

static int32_t replace_probabilities(void *decoder, const cudaq_qec_error_probability_t *list, size_t count) {
  state *const s = decoder;
  (void)list;
  if (count != 0 && breaks(s, "replace"))
    return 17;
  if (count == 0 && breaks(s, "restore") && s->restores++ == 0)
    return CUDAQ_QEC_DECODE_INTERNAL_ERROR;
  s->replaced = count != 0;
  return CUDAQ_QEC_DECODE_OK;
}

const cudaq_qec_decoder_plugin_t *cudaq_qec_decoder_plugin_get(uint32_t host_version) {
  static const cudaq_qec_decoder_plugin_t table = {.version = CUDAQ_QEC_DECODER_PLUGIN_VERSION,
                                                   .struct_size = sizeof table,
                                                   .name = "breaking",
                                                   .create = create,
                                                   .decode = decode,
                                                   .destroy = free,
                                                   .edges = edges,
                                                   .columns = columns,
                                                   .decode_until = decode_until,
                                                   .error_form = CUDAQ_QEC_ERRORS_WHOLE,
                                                   .replace_probabilities = replace_probabilities};
  return host_version == CUDAQ_QEC_DECODER_PLUGIN_VERSION ? &table : NULL;
}
