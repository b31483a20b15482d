/* SPDX-License-Identifier: Apache-2.0 */
/* A decoder plug-in: answers with the likeliest single error that causes the events, and with no flip where none does.
 * It takes models without loops and shifts (stim's dem.flattened()), with probabilities up to 1/2. */
#include <cudaq/qec/decoding/decoder_plugin.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
typedef struct {
  double probability;
  size_t num_detectors;
  uint8_t *flips; /* a byte for each detector, then one for each observable */
} fault;
typedef struct {
  size_t detectors, observables, count;
  fault faults[]; /* for each line; their flips follow */
} decoder;
/* Adds the error of one line, "error(p) D0 D1 ^ D2 L0"; 0: not understood. */
static int add(decoder *d, const char *line) {
  int used = 0;
  unsigned long long k;
  char kind;
  fault *f = &d->faults[d->count];
  if (strncmp(line, "detector", 8) == 0 || strncmp(line, "logical_observable", 18) == 0)
    return 1;
  if (sscanf(line, "error(%lf)%n", &f->probability, &used) != 1 || used == 0 || f->probability > 0.5)
    return 0;
  for (line += used + strspn(line + used, " ^"); sscanf(line, "%c%llu%n", &kind, &k, &used) == 2;
       line += used + strspn(line + used, " ^\r"))
    f->flips[kind == 'D' ? k : d->detectors + k] ^= 1; /* the caller has checked the text and its indices */
  for (size_t i = 0; i < d->detectors; ++i)
    f->num_detectors += f->flips[i];
  d->count += 1;
  return *line == '\0';
}

static int32_t create(const cudaq_qec_decoder_model_t *model, void **made, char *error, size_t error_size) {
  size_t lines = 1, width = model->num_detectors + model->num_observables;
  for (const char *at = model->dem_text; (at = strchr(at, '\n')) != NULL; ++at)
    ++lines;
  decoder *d = calloc(1, sizeof *d + lines * (sizeof(fault) + width));
  char *text = strdup(model->dem_text), *rest = text;
  int understood = d != NULL && text != NULL && model->num_settings == 0;
  snprintf(error, error_size, "out of memory, or a setting: this decoder has none");
  if (understood) {
    d->detectors = model->num_detectors;
    d->observables = model->num_observables;
    for (size_t i = 0; i < lines; ++i)
      d->faults[i].flips = (uint8_t *)(d->faults + lines) + i * width;
    for (char *line; understood && (line = strtok_r(rest, "\n", &rest)) != NULL;)
      if (!(understood = add(d, line)))
        snprintf(error, error_size, "\"%.60s\": only errors up to 1/2; flatten the model first", line);
  }
  free(text);
  free(understood ? NULL : d);
  *made = understood ? d : NULL;
  return understood ? CUDAQ_QEC_DECODE_OK : CUDAQ_QEC_DECODE_NOT_SUPPORTED;
}

static int32_t decode(void *self, const uint64_t *events, size_t num_events, uint8_t *observables, double *weight) {
  const decoder *d = self;
  const fault *best = NULL;
  for (const fault *f = d->faults; num_events != 0 && f != d->faults + d->count; ++f) {
    size_t same = 0;
    while (same < num_events && f->flips[events[same]])
      ++same;
    if (same == num_events && f->num_detectors == num_events && f->probability > (best != NULL ? best->probability : 0))
      best = f;
  }
  for (size_t k = 0; best != NULL && k < d->observables; ++k)
    observables[k / 8] |= (uint8_t)(best->flips[d->detectors + k] << k % 8);
  *weight = best != NULL ? log((1 - best->probability) / best->probability) : *weight;
  return CUDAQ_QEC_DECODE_OK;
}
const cudaq_qec_decoder_plugin_t *cudaq_qec_decoder_plugin_get(uint32_t host_version) {
  static const cudaq_qec_decoder_plugin_t table = {.version = CUDAQ_QEC_DECODER_PLUGIN_VERSION,
                                                   .struct_size = sizeof table,
                                                   .name = "single-fault",
                                                   .create = create,
                                                   .decode = decode,
                                                   .destroy = free};
  return host_version == CUDAQ_QEC_DECODER_PLUGIN_VERSION ? &table : NULL;
}
