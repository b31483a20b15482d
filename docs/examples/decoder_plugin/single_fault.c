/* SPDX-License-Identifier: Apache-2.0 */
/* A decoder plug-in: answers with the likeliest single error that causes the events. Where no single error does, it has
 * not converged. It takes every model; errors above 1/2 are never its answer. */
#include <cudaq/qec/decoding/decoder_plugin.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
typedef struct {
  double probability;
  size_t num_detectors, num_observables;
  uint64_t *detectors, *observables; /* ascending */
} fault;
typedef struct {
  size_t count;
  uint64_t best; /* of the last decode */
  uint64_t *indices;
  fault faults[];
} decoder;

static void destroy(void *self) {
  free(((decoder *)self)->indices);
  free(self);
}

/* Copies the model: its memory is valid until this returns. */
static int32_t create(const cudaq_qec_decoder_model_t *model, void **made, char *error, size_t error_size) {
  if (model->struct_size < sizeof *model || model->num_settings != 0) {
    snprintf(error, error_size, "the library is older than this plug-in, or a setting: this decoder has none");
    return CUDAQ_QEC_DECODE_NOT_SUPPORTED;
  }
  const cudaq_qec_decoder_flips_t *flips = &model->errors->errors;
  const size_t count = flips->num_rows, detectors = flips->first_detector[count];
  decoder *d = calloc(1, sizeof *d + count * sizeof(fault));
  uint64_t *indices = malloc((detectors + flips->first_observable[count] + 1) * sizeof *indices);
  if (d == NULL || indices == NULL) {
    free(d);
    free(indices);
    snprintf(error, error_size, "out of memory");
    return CUDAQ_QEC_DECODE_INTERNAL_ERROR;
  }
  memcpy(indices, flips->detectors, detectors * sizeof *indices);
  memcpy(indices + detectors, flips->observables, flips->first_observable[count] * sizeof *indices);
  d->count = count;
  d->indices = indices;
  for (size_t k = 0; k < count; ++k)
    d->faults[k] = (fault){model->errors->probabilities[k], flips->first_detector[k + 1] - flips->first_detector[k],
                           flips->first_observable[k + 1] - flips->first_observable[k],
                           indices + flips->first_detector[k], indices + detectors + flips->first_observable[k]};
  *made = d;
  return CUDAQ_QEC_DECODE_OK;
}

static int32_t decode(void *self, const uint64_t *events, size_t num_events, uint8_t *observables, double *weight) {
  decoder *d = self;
  const fault *best = NULL;
  for (const fault *f = d->faults; num_events != 0 && f != d->faults + d->count; ++f)
    if (f->num_detectors == num_events && memcmp(f->detectors, events, num_events * sizeof *events) == 0 &&
        f->probability <= 0.5 && f->probability > (best != NULL ? best->probability : 0))
      best = f;
  d->best = best != NULL ? (uint64_t)(best - d->faults) : UINT64_MAX;
  if (best == NULL) {
    *weight = num_events == 0 ? 0 : *weight;
    return num_events == 0 ? CUDAQ_QEC_DECODE_OK : CUDAQ_QEC_DECODE_NOT_CONVERGED;
  }
  for (size_t k = 0; k < best->num_observables; ++k)
    observables[best->observables[k] / 8] |= (uint8_t)(1U << best->observables[k] % 8);
  *weight = log((1 - best->probability) / best->probability);
  return CUDAQ_QEC_DECODE_OK;
}

/* The error of the last answer. The library compares it with the events and the observables. */
static size_t columns(void *self, uint64_t *columns, size_t max) {
  const decoder *d = self;
  if (d->best != UINT64_MAX && max != 0)
    columns[0] = d->best;
  return d->best != UINT64_MAX;
}

const cudaq_qec_decoder_plugin_t *cudaq_qec_decoder_plugin_get(uint32_t host_version) {
  static const cudaq_qec_decoder_plugin_t table = {.version = CUDAQ_QEC_DECODER_PLUGIN_VERSION,
                                                   .struct_size = sizeof table,
                                                   .name = "single-fault",
                                                   .create = create,
                                                   .decode = decode,
                                                   .destroy = destroy,
                                                   .columns = columns,
                                                   .error_form = CUDAQ_QEC_ERRORS_WHOLE};
  return host_version == CUDAQ_QEC_DECODER_PLUGIN_VERSION ? &table : NULL;
}
