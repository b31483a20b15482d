/* SPDX-License-Identifier: Apache-2.0 */
/* A decoder that is busy for ten minutes if detector 3 fires. */
#include "cudaq/qec/decoding/decoder_plugin.h"

#include <stddef.h>
#include <time.h>

static char nothing;

static int32_t create(const cudaq_qec_decoder_model_t *model, void **decoder, char *error, size_t error_size) {
  (void)model, (void)error, (void)error_size;
  *decoder = &nothing;
  return CUDAQ_QEC_DECODE_OK;
}

static int32_t decode(void *decoder, const uint64_t *events, size_t num_events, uint8_t *observables, double *weight) {
  const struct timespec pause = {600, 0};
  (void)decoder, (void)observables, (void)weight;
  if (num_events > 0 && events[num_events - 1] == 3)
    nanosleep(&pause, NULL);
  return CUDAQ_QEC_DECODE_OK;
}

static void destroy(void *decoder) { (void)decoder; }

const cudaq_qec_decoder_plugin_t *cudaq_qec_decoder_plugin_get(uint32_t host_version) {
  static const cudaq_qec_decoder_plugin_t table = {
      CUDAQ_QEC_DECODER_PLUGIN_VERSION, sizeof table, "stuck", create, decode, destroy, NULL};
  (void)host_version;
  return &table;
}
