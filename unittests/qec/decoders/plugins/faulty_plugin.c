/* SPDX-License-Identifier: Apache-2.0 */
/* Plug-ins that break their contract; FAULT selects how. decoder_plugin_test.cpp says what each must lead to. */
#include "cudaq/qec/decoding/decoder_plugin.h"

#include <stdlib.h>
#include <string.h>

enum {
  /* 1: the library has no function of the name that is looked for */
  OTHER_VERSION = 2,
  NO_TABLE = 3,
  SHORT_TABLE = 4,
  NULL_FUNCTION = 5,
  NO_DECODER = 6,
  ENDLESS_TEXT = 7,
  BAD_ANSWERS = 8,  /* decode returns the first event as its status, or sets too many bits */
  OLDER_TABLE = 9,  /* a table without `edges`, as an earlier header may have had it */
  OWN_DESTROY = 10, /* no fault: a destroy in the plug-in's own memory */
  UNKNOWN_FORM = 11,
  INSIDE_A_MEMBER = 12, /* its table ends there */
  LARGE_TABLE = 13,
  LATIN_1 = 14 /* its name; it refuses models of two detectors with such a text */
};

static int32_t create(const cudaq_qec_decoder_model_t *model, void **decoder, char *error, size_t error_size) {
  (void)model, (void)error_size;
  if (FAULT == ENDLESS_TEXT) {
    memset(error, 'x', error_size);
    return -7;
  }
  if (FAULT == LATIN_1 && model->num_detectors == 2) {
    strcpy(error, "caf\xe9");
    return -7;
  }
  if (FAULT == NO_DECODER)
    return CUDAQ_QEC_DECODE_OK;
  *decoder = malloc(1);
  return CUDAQ_QEC_DECODE_OK;
}

static int32_t decode(void *decoder, const uint64_t *events, size_t num_events, uint8_t *observables, double *weight) {
  (void)decoder;
  *weight = 2.5;
  if (num_events == 2)
    observables[0] = 0xFF;
  return num_events == 1 ? (int32_t)events[0] : CUDAQ_QEC_DECODE_OK;
}

static void destroy(void *decoder) { free(decoder); }

static size_t edges(void *decoder, cudaq_qec_correction_edge_t *edges, size_t max_edges) {
  (void)decoder;
  for (size_t i = 0; i < max_edges; ++i) {
    edges[i].first = 0;
    edges[i].second = 12345;
  }
  return 1;
}

#if FAULT == 1
const cudaq_qec_decoder_plugin_t *some_other_function(void) {
  static const cudaq_qec_decoder_plugin_t table = {
      CUDAQ_QEC_DECODER_PLUGIN_VERSION, sizeof table, "none", create, decode, destroy, edges, NULL, NULL, 0, 0, NULL};
  return &table;
}
#else
const cudaq_qec_decoder_plugin_t *cudaq_qec_decoder_plugin_get(uint32_t host_version) {
  static const cudaq_qec_decoder_plugin_t table = {CUDAQ_QEC_DECODER_PLUGIN_VERSION + (FAULT == OTHER_VERSION),
                                                   FAULT == SHORT_TABLE   ? 24
                                                   : FAULT == OLDER_TABLE ? offsetof(cudaq_qec_decoder_plugin_t, edges)
                                                   : FAULT == INSIDE_A_MEMBER ? 50
                                                   : FAULT == LARGE_TABLE     ? 1000
                                                                              : sizeof table,
                                                   FAULT == LATIN_1 ? "caf\xe9" : "faulty",
                                                   create,
                                                   FAULT == NULL_FUNCTION ? NULL : decode,
                                                   destroy,
                                                   edges,
                                                   NULL,
                                                   NULL,
                                                   FAULT == UNKNOWN_FORM ? 3 : CUDAQ_QEC_ERRORS_JOINED,
                                                   0,
                                                   NULL};
  (void)host_version;
  return FAULT == NO_TABLE ? NULL : &table;
}
#endif
