/* SPDX-License-Identifier: Apache-2.0 */
/* A decoder that is busy for ten minutes if detector 3 fires; with the setting hang=create or hang=destroy in that
 * function. The setting mark=PATH names a file that it makes before it hangs in one of them. With hang=exit its create
 * ends the thread. */
#include "cudaq/qec/decoding/decoder_plugin.h"

#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct stuck {
  char hang[16], mark[256];
};

static void sleep_long(void) {
  const struct timespec pause = {600, 0};
  nanosleep(&pause, NULL);
}

static void hang_in(const char *function, const struct stuck *self) {
  if (strcmp(self->hang, function) != 0)
    return;
  FILE *const mark = fopen(self->mark, "w");
  if (mark != NULL)
    fclose(mark);
  sleep_long();
}

static int32_t create(const cudaq_qec_decoder_model_t *model, void **decoder, char *error, size_t error_size) {
  struct stuck *const self = calloc(1, sizeof *self);
  (void)error, (void)error_size;
  if (self == NULL)
    return CUDAQ_QEC_DECODE_INTERNAL_ERROR;
  for (size_t k = 0; k < model->num_settings; ++k) {
    const cudaq_qec_decoder_setting_t *const s = &model->settings[k];
    if (strcmp(s->key, "hang") == 0)
      strncpy(self->hang, s->value, sizeof self->hang - 1);
    else
      strncpy(self->mark, s->value, sizeof self->mark - 1);
  }
  if (strcmp(self->hang, "exit") == 0) {
    free(self);
    pthread_exit(NULL);
  }
  *decoder = self;
  hang_in("create", self);
  return CUDAQ_QEC_DECODE_OK;
}

static int32_t decode(void *decoder, const uint64_t *events, size_t num_events, uint8_t *observables, double *weight) {
  (void)decoder, (void)observables, (void)weight;
  if (num_events > 0 && events[num_events - 1] == 3)
    sleep_long();
  return CUDAQ_QEC_DECODE_OK;
}

static void destroy(void *decoder) {
  hang_in("destroy", decoder);
  free(decoder);
}

const cudaq_qec_decoder_plugin_t *cudaq_qec_decoder_plugin_get(uint32_t host_version) {
  static const cudaq_qec_decoder_plugin_t table = {
      CUDAQ_QEC_DECODER_PLUGIN_VERSION, sizeof table, "stuck", create, decode, destroy, NULL, NULL, NULL, 0, 0, NULL};
  (void)host_version;
  return &table;
}
