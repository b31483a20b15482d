/* SPDX-License-Identifier: Apache-2.0 */
/* A plug-in with both optional members for early ends and errors. Error k of its models flips detector k and observable
 * 0. A shot with detector 0 never ends by itself; with detector 1, too, it has a best solution so far. Detector 2:
 * columns breaks its contract. Detector 4: decode_until breaks it, and takes a second whatever its control says. */
#include "cudaq/qec/decoding/decoder_plugin.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST = 8 };
typedef struct state {
  uint64_t events[MOST];
  size_t count;
} state;

static int32_t create(const cudaq_qec_decoder_model_t *model, void **decoder, char *error, size_t error_size) {
  (void)error, (void)error_size;
  if (model->num_detectors > MOST)
    return CUDAQ_QEC_DECODE_NOT_SUPPORTED;
  *decoder = calloc(1, sizeof(state));
  return *decoder != NULL ? CUDAQ_QEC_DECODE_OK : CUDAQ_QEC_DECODE_INTERNAL_ERROR;
}

static int has(const uint64_t *events, size_t count, uint64_t wanted) {
  for (size_t i = 0; i < count; ++i)
    if (events[i] == wanted)
      return 1;
  return 0;
}

static int32_t decode(void *decoder, const uint64_t *events, size_t count, uint8_t *observables, double *weight) {
  state *s = decoder;
  memcpy(s->events, events, count * sizeof *events);
  s->count = count;
  observables[0] = count % 2;
  *weight = 1.5 * (double)count;
  return CUDAQ_QEC_DECODE_OK;
}

static void destroy(void *decoder) { free(decoder); }

static size_t columns(void *decoder, uint64_t *columns, size_t max) {
  const state *s = decoder;
  for (size_t i = 0; i < s->count && i < max; ++i)
    columns[i] = s->events[i] == 2 ? 1000 : s->events[i];
  return s->count;
}

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

static int32_t decode_until(void *decoder, const uint64_t *events, size_t count, uint8_t *observables, double *weight,
                            const cudaq_qec_decode_control_t *control) {
  if (control->struct_size < sizeof *control)
    return CUDAQ_QEC_DECODE_INTERNAL_ERROR;
  if (has(events, count, 4)) {
    const struct timespec second = {1, 0};
    nanosleep(&second, NULL);
  }
  if (!has(events, count, 0))
    return decode(decoder, events, count, observables, weight);
  while (now_ns() < control->deadline_ns)
    if (control->cancel != NULL && atomic_load((const _Atomic uint32_t *)control->cancel) != 0)
      return CUDAQ_QEC_DECODE_CANCELLED;
  if (has(events, count, 1))
    decode(decoder, events, count, observables, weight);
  return CUDAQ_QEC_DECODE_DEADLINE;
}

const cudaq_qec_decoder_plugin_t *cudaq_qec_decoder_plugin_get(uint32_t host_version) {
  static const cudaq_qec_decoder_plugin_t table = {.version = CUDAQ_QEC_DECODER_PLUGIN_VERSION,
                                                   .struct_size = sizeof table,
                                                   .name = "early",
                                                   .create = create,
                                                   .decode = decode,
                                                   .destroy = destroy,
                                                   .columns = columns,
                                                   .decode_until = decode_until};
  return host_version == CUDAQ_QEC_DECODER_PLUGIN_VERSION ? &table : NULL;
}
