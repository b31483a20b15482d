/* SPDX-License-Identifier: Apache-2.0 */
/* A decoder whose speed a test controls. It finds no correction, which is right for shots without events; with events
 * it says that there is no solution, or with the setting `wrong=1` it does not. While the gate is closed, decoders with
 * the setting `gated=1` wait in decode, and those with `slow_destroy=1` in destroy. Each decode notes the setting `id`
 * in a list. */
#include "cudaq/qec/decoding/decoder_plugin.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct settings_t {
  int id, gated, wrong, slow_destroy;
} settings_t;

static atomic_int gate_is_open;
static atomic_uint begun;
static atomic_int alive;
static atomic_int list[4096];

void gated_plugin_set(int is_open);
unsigned gated_plugin_begun(void);
int gated_plugin_listed(unsigned k);
int gated_plugin_alive(void);

__attribute__((visibility("default"))) void gated_plugin_set(int is_open) { atomic_store(&gate_is_open, is_open); }
/* Decodes that have begun, and the id of the k-th of them. */
__attribute__((visibility("default"))) unsigned gated_plugin_begun(void) { return atomic_load(&begun); }
__attribute__((visibility("default"))) int gated_plugin_listed(unsigned k) { return atomic_load(&list[k % 4096]); }

/* Decoders that were made and not destroyed. */
__attribute__((visibility("default"))) int gated_plugin_alive(void) { return atomic_load(&alive); }

static int32_t create(const cudaq_qec_decoder_model_t *model, void **decoder, char *error, size_t error_size) {
  settings_t *made = calloc(1, sizeof *made);
  (void)error;
  (void)error_size;
  for (size_t k = 0; k < model->num_settings; ++k) {
    const char *key = model->settings[k].key;
    *(strcmp(key, "id") == 0             ? &made->id
      : strcmp(key, "gated") == 0        ? &made->gated
      : strcmp(key, "slow_destroy") == 0 ? &made->slow_destroy
                                         : &made->wrong) = atoi(model->settings[k].value);
  }
  atomic_fetch_add(&alive, 1);
  *decoder = made;
  return CUDAQ_QEC_DECODE_OK;
}

static void wait_for_gate(int waits) {
  for (int ms = 0; waits && !atomic_load(&gate_is_open) && ms < 60000; ++ms) {
    const struct timespec one_ms = {0, 1000000};
    nanosleep(&one_ms, NULL);
  }
}

static int32_t decode(void *decoder, const uint64_t *events, size_t num_events, uint8_t *observables, double *weight) {
  const settings_t *self = decoder;
  (void)events;
  (void)observables;
  (void)weight;
  atomic_store(&list[atomic_fetch_add(&begun, 1) % 4096], self->id);
  wait_for_gate(self->gated);
  return num_events != 0 && !self->wrong ? CUDAQ_QEC_DECODE_NO_SOLUTION : CUDAQ_QEC_DECODE_OK;
}

static void destroy(void *decoder) {
  wait_for_gate(((const settings_t *)decoder)->slow_destroy);
  atomic_fetch_sub(&alive, 1);
  free(decoder);
}

const cudaq_qec_decoder_plugin_t *cudaq_qec_decoder_plugin_get(uint32_t host_version) {
  static const cudaq_qec_decoder_plugin_t table = {
      CUDAQ_QEC_DECODER_PLUGIN_VERSION, sizeof table, "gated", create, decode, destroy, NULL, NULL, NULL, 0, 0, NULL};
  (void)host_version;
  return &table;
}
