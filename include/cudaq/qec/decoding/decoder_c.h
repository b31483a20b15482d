/* SPDX-License-Identifier: Apache-2.0 */
/* Decoders for C11: detection events of a shot in, flipped observables out; with what the shot knows besides. The same
 * as decoder.h and readout.h, which have the whole contract. Link cudaq::qec-decoding.
 *
 *   cudaq_qec_decoder_t *decoder;
 *   char error[256];
 *   if (cudaq_qec_decoder_create("pymatching", dem_text, dem_size, NULL, &decoder, error, sizeof error) != 0)
 *     return report(error);
 *   cudaq_qec_error_probability_t lost[] = {{17, 0.5}, {18, 0.5}};
 *   cudaq_qec_shot_t shot = {.struct_size = sizeof shot, .events = events, .num_events = count,
 *                            .probabilities = lost, .num_probabilities = 2};
 *   status = cudaq_qec_decoder_decode(decoder, &shot, observables, observable_bytes);
 *
 * Threads: an instance has scratch memory, so each thread needs its own; there may be any number. No call prints,
 * aborts or throws. A null pointer where one is needed, and a struct_size that is not that of this header, give
 * CUDAQ_QEC_DECODER_NOT_SUPPORTED. docs/decoders/shot_probabilities.md and docs/decoders/soft.md explain what a shot
 * may know. */
#ifndef CUDAQ_QEC_DECODING_DECODER_C_H
#define CUDAQ_QEC_DECODING_DECODER_C_H

#include "cudaq/qec/decoding/decoder_plugin.h" /* cudaq_qec_error_probability_t */

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define CUDAQ_QEC_DECODER_API __attribute__((visibility("default")))
#else
#define CUDAQ_QEC_DECODER_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The values are those of decode_status (decode_status.h), and others of its values may be returned, too. */
typedef enum cudaq_qec_decoder_status_t {
  CUDAQ_QEC_DECODER_OK = 0,
  CUDAQ_QEC_DECODER_BAD_DETECTOR_INDEX = 1,       /* an event names a detector that the model does not have */
  CUDAQ_QEC_DECODER_DUPLICATE_DETECTOR_INDEX = 2, /* an event is listed twice */
  CUDAQ_QEC_DECODER_NO_SOLUTION = 3,              /* no set of errors causes the events */
  CUDAQ_QEC_DECODER_BUFFER_TOO_SMALL = 4,         /* too little room for the observables, or another number of bytes of
                                                   * soft values or flags than the table needs */
  CUDAQ_QEC_DECODER_INTERNAL_ERROR = 5,           /* out of memory, or a fault of the decoder */
  CUDAQ_QEC_DECODER_NOT_SUPPORTED = 6,            /* create: the text says why. decode: the decoder, or the table, does
                                                   * not take what the shot knows, see the fault */
  CUDAQ_QEC_DECODER_NOT_CONVERGED = 7,            /* no solution within the limits of the decoder */
  CUDAQ_QEC_DECODER_DEADLINE = 9,                 /* the deadline of the decoder's name was reached */
  CUDAQ_QEC_DECODER_BAD_PROBABILITY = 12          /* a probability or a value of a readout is wrong: see fault */
} cudaq_qec_decoder_status_t;

typedef enum cudaq_qec_soft_kind_t {
  CUDAQ_QEC_SOFT_F32 = 0, /* IEEE 754 single precision, 4 bytes in the byte order of the machine */
  CUDAQ_QEC_SOFT_U8 = 1,  /* one byte */
  CUDAQ_QEC_SOFT_U4 = 2   /* two in a byte: measurement 0 in the low half of byte 0, measurement 1 in its high half */
} cudaq_qec_soft_kind_t;

typedef struct cudaq_qec_decoder cudaq_qec_decoder_t;

/* Texts that belong to the model. All members may be 0, except struct_size. */
typedef struct cudaq_qec_decoder_options_t {
  size_t struct_size;
  const char *heralds; /* the text of a file of heralds, heralds_size bytes; NULL: none */
  size_t heralds_size;
  const char *readout; /* the text of a table of a readout, readout_size bytes; NULL: none */
  size_t readout_size;
} cudaq_qec_decoder_options_t;

typedef struct cudaq_qec_decoder_info_t {
  size_t struct_size;
  uint64_t num_detectors; /* of a shot, with heralds */
  uint64_t num_observables;
  uint64_t num_measurements;    /* soft values of a shot; 0: the decoder has no table with any */
  uint64_t num_flags;           /* the same of flags of leakage */
  const char *name;             /* without settings; valid as long as the decoder */
  uint32_t takes_probabilities; /* 1: a shot may replace probabilities */
  uint32_t gives_gaps;          /* 1: cudaq_qec_decoder_decode_gaps can be called */
} cudaq_qec_decoder_info_t;

/* One shot. All members may be 0, except struct_size. The memory is the caller's, and is not kept. */
typedef struct cudaq_qec_shot_t {
  size_t struct_size;
  const uint64_t *events; /* the detectors that fired, num_events of them, each once, in any order */
  size_t num_events;
  const cudaq_qec_error_probability_t *probabilities; /* errors that have another probability in this shot, each once:
                                                       * by the numbers of their instructions, with loops unrolled */
  size_t num_probabilities;
  const uint8_t *soft; /* with a table: a value of each measurement, soft_bytes bytes */
  size_t soft_bytes;
  const uint8_t *leakage; /* the same: 0, 1 or 2 of each flag, 2 bits each, the lowest first: leakage_bytes bytes */
  size_t leakage_bytes;
  uint32_t soft_kind; /* cudaq_qec_soft_kind_t */
  uint32_t reserved;
} cudaq_qec_shot_t;

/* Makes a decoder. name: with settings, as of make_decoder in decoder.h. dem_text: a model in Stim's text format,
 * dem_size bytes. options: NULL: all members 0. No text is kept. *decoder: is NULL after a failure. error: room for a
 * text that ends with a zero byte, may be NULL with size 0; after a success it is not written. */
CUDAQ_QEC_DECODER_API int32_t cudaq_qec_decoder_create(const char *name, const char *dem_text, size_t dem_size,
                                                       const cudaq_qec_decoder_options_t *options,
                                                       cudaq_qec_decoder_t **decoder, char *error, size_t error_size);
/* While no other call uses it. NULL: no effect. */
CUDAQ_QEC_DECODER_API void cudaq_qec_decoder_destroy(cudaq_qec_decoder_t *decoder);

/* The caller sets info->struct_size. */
CUDAQ_QEC_DECODER_API int32_t cudaq_qec_decoder_get_info(const cudaq_qec_decoder_t *decoder,
                                                         cudaq_qec_decoder_info_t *info);

/* Decodes one shot. observables: at least (num_observables + 7) / 8 bytes: bit k % 8 of byte k / 8 is 1 if observable
 * k is flipped; 0 after an error of the shot. They may be in the memory of the events. The answer is that of a decoder
 * that was made for the probabilities of this shot alone. A decoder with a table needs soft values if the table has
 * measurements, and flags if it has flags. Errors that the table names in a shot may not be among its
 * `probabilities`. */
CUDAQ_QEC_DECODER_API int32_t cudaq_qec_decoder_decode(cudaq_qec_decoder_t *decoder, const cudaq_qec_shot_t *shot,
                                                       uint8_t *observables, size_t observable_bytes);

/* The same, and for each observable by how much the lightest correction with its other value is heavier than the
 * answer: a difference of natural logarithms of likelihoods, at least 0, infinite if no errors cause the events with
 * the other value, NaN if it is not known (decode_details::gaps in decoder.h). Of a decoder that was made with the
 * setting confidence=1, else CUDAQ_QEC_DECODER_NOT_SUPPORTED. gaps: num_gaps numbers, at least num_observables, else
 * CUDAQ_QEC_DECODER_BUFFER_TOO_SMALL, and the observables are not written; those after num_observables are not written.
 * After an error all are NaN. docs/decoders/confidence.md says which decoders give exact gaps. */
CUDAQ_QEC_DECODER_API int32_t cudaq_qec_decoder_decode_gaps(cudaq_qec_decoder_t *decoder, const cudaq_qec_shot_t *shot,
                                                            uint8_t *observables, size_t observable_bytes, double *gaps,
                                                            size_t num_gaps);

/* What was wrong in the last decode, if it is known. Never NULL; "" if nothing is known, after CUDAQ_QEC_DECODER_OK, or
 * if decoder is NULL. Valid until the next decode or destroy. */
CUDAQ_QEC_DECODER_API const char *cudaq_qec_decoder_fault(const cudaq_qec_decoder_t *decoder);

/* Static text of a status, never NULL. */
CUDAQ_QEC_DECODER_API const char *cudaq_qec_decoder_status_text(int32_t status);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
