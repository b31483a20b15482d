/* SPDX-License-Identifier: Apache-2.0 */
/* The interface of a decoder plug-in: a shared library that exports one function, cudaq_qec_decoder_plugin_get. C11 and
 * C++. A plug-in includes only this header and links nothing of this project. It is loaded by make_decoder (decoder.h)
 * and by every command with --decoder PATH.so. Example: docs/decoder_plugin.md.
 *
 * Threads: create may be called from several threads at the same time. The functions of one decoder are called by one
 * thread at a time; different decoders are used at the same time.
 *
 * A plug-in's functions must not throw, exit the thread, or write after the memory that they are given. The caller
 * checks what a plug-in returns, not what it does: a plug-in runs with the rights of the program. A broken promise is
 * CUDAQ_QEC_DECODE_INTERNAL_ERROR of its shot, with a text that names the promise and the values.
 *
 * What the caller catches, so that one bad plug-in does not end the program: a C++ exception of any type. After one,
 * create has failed, and decode or edges have returned CUDAQ_QEC_DECODE_INTERNAL_ERROR; the decoder is used again.
 * What it cannot catch, and what ends the program: exit and abort, a signal (a bad address, a
 * division by zero), a full stack, std::terminate (an exception that leaves a noexcept function or a frame without
 * unwind tables, or one from a constructor of a static object while the library is loaded), and pthread_exit, after a
 * line on stderr that names the function. A function that never returns keeps its thread. */
#ifndef CUDAQ_QEC_DECODING_DECODER_PLUGIN_H
#define CUDAQ_QEC_DECODING_DECODER_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Changes when a plug-in of an older version can no longer be used. Members may be added at the ends of the structs
 * within a version: struct_size says which are there. A table of an older header is accepted. Refused: a table that is
 * larger than that of the library, and a struct_size where no member ends. */
#define CUDAQ_QEC_DECODER_PLUGIN_VERSION 1

/* What decode, decode_until, replace_probabilities and create return. The values are those of decode_status
 * (decode_status.h). */
enum {
  CUDAQ_QEC_DECODE_OK = 0,
  CUDAQ_QEC_DECODE_NO_SOLUTION = 3,    /* no set of errors of the model causes the events */
  CUDAQ_QEC_DECODE_INTERNAL_ERROR = 5, /* out of memory, a fault; create: the machine lacks something */
  CUDAQ_QEC_DECODE_NOT_SUPPORTED = 6,  /* create: this decoder does not take the model, the text says why;
                                          replace_probabilities: it does not take these */
  CUDAQ_QEC_DECODE_NOT_CONVERGED = 7,  /* decode: it found no solution within its limits; there may be one */
  CUDAQ_QEC_DECODE_DEADLINE = 9,       /* decode_until: it ended at the deadline */
  CUDAQ_QEC_DECODE_CANCELLED = 10      /* decode_until: the cancel word is not 0 */
};

/* How a decoder takes an error with several components (a ^ b). A window of a stream has an error that reaches over its
 * border in this form. */
enum {
  CUDAQ_QEC_ERRORS_JOINED = 0,     /* by components, but it knows which belong together: correlated matching */
  CUDAQ_QEC_ERRORS_COMPONENTS = 1, /* each component as an error of its own: matching */
  CUDAQ_QEC_ERRORS_WHOLE = 2       /* as one error: belief propagation, and search for the likeliest errors */
};

/* One setting of the decoder's name: "./my_decoder.so:key=value". */
typedef struct cudaq_qec_decoder_setting_t {
  const char *key;
  const char *value;
} cudaq_qec_decoder_setting_t;

/* What errors flip, as two sparse matrices: row k has the detectors detectors[first_detector[k]] to
 * detectors[first_detector[k + 1] - 1], and its observables in the same way. Ascending, each once: a target that a row
 * has twice is left out. first_detector and first_observable have num_rows + 1 numbers. */
typedef struct cudaq_qec_decoder_flips_t {
  uint64_t num_rows;
  const uint64_t *first_detector;
  const uint64_t *detectors;
  const uint64_t *first_observable;
  const uint64_t *observables;
} cudaq_qec_decoder_flips_t;

/* The text of the model as arrays, with all loops unrolled and all shifts added. Nothing is merged. No pointer is NULL.
 */
typedef struct cudaq_qec_decoder_errors_t {
  size_t struct_size;
  cudaq_qec_decoder_flips_t
      errors;                  /* row k: error k, as `columns` of a plug-in counts them; all its components XORed */
  const double *probabilities; /* of each error; 0 for one that flips nothing */
  cudaq_qec_decoder_flips_t components; /* the same by components: the parts of an error between ^, such as edges */
  const uint64_t *first_component;  /* error k has the components first_component[k] to first_component[k + 1] - 1; none
                                      if its probability is 0. Components that flip nothing are left out. */
  const uint64_t *first_coordinate; /* detector d: coordinates[first_coordinate[d]] to [first_coordinate[d + 1] - 1] */
  const double *coordinates;
} cudaq_qec_decoder_errors_t;

/* The model a decoder is made for. All memory is the caller's and is valid during create only. A plug-in that uses the
 * last members refuses a model whose struct_size is smaller: the library is older. */
typedef struct cudaq_qec_decoder_model_t {
  size_t struct_size;
  const char *dem_text; /* Stim's text format, ends with a zero byte; the caller has parsed it without an error */
  size_t dem_size;      /* bytes of dem_text, without the zero byte */
  uint64_t num_detectors;
  uint64_t num_observables;
  const cudaq_qec_decoder_setting_t *settings;
  size_t num_settings;
  const cudaq_qec_decoder_errors_t *errors; /* the same model as dem_text; never NULL */
} cudaq_qec_decoder_model_t;

/* One error mechanism of a correction: an edge between two detectors, or to the boundary. */
#define CUDAQ_QEC_BOUNDARY UINT64_MAX
typedef struct cudaq_qec_correction_edge_t {
  uint64_t first;
  uint64_t second; /* CUDAQ_QEC_BOUNDARY: the boundary */
} cudaq_qec_correction_edge_t;

/* The probability that an error has in one shot. */
typedef struct cudaq_qec_error_probability_t {
  uint64_t error;     /* as `columns` counts them; below errors->errors.num_rows */
  double probability; /* 0 to 1 */
} cudaq_qec_error_probability_t;

/* What ends a decode before its own end. */
typedef struct cudaq_qec_decode_control_t {
  size_t struct_size;
  uint64_t deadline_ns;   /* nanoseconds of CLOCK_MONOTONIC; UINT64_MAX: none */
  const uint32_t *cancel; /* NULL, or a word that another thread sets to a value other than 0: read it atomically */
} cudaq_qec_decode_control_t;

typedef struct cudaq_qec_decoder_plugin_t {
  uint32_t version;   /* CUDAQ_QEC_DECODER_PLUGIN_VERSION */
  size_t struct_size; /* sizeof(cudaq_qec_decoder_plugin_t) */
  const char *name;   /* of the decoder, for reports; static */

  /* Makes a decoder for a model: CUDAQ_QEC_DECODE_OK and *decoder, or another value and a text of at most
   * error_size - 1 bytes in error. An unknown setting must be an error. */
  int32_t (*create)(const cudaq_qec_decoder_model_t *model, void **decoder, char *error, size_t error_size);

  /* Decodes one shot. events: the detectors that fired, ascending, each once, all below num_detectors.
   * observables: ceil(num_observables / 8) bytes, all 0; observable k is bit k % 8 of byte k / 8. weight: may be set to
   * the sum of log((1 - p) / p) of the correction; holds NaN, which means none. It is not infinite, and not below 0
   * unless an error of the model is above 1/2. With `columns` and CUDAQ_QEC_ERRORS_WHOLE it is the sum of the errors of
   * `columns`, to 1 %, equal errors counted by themselves or as one; it is compared with them when they are checked.
   * Should not allocate after the first shots. */
  int32_t (*decode)(void *decoder, const uint64_t *events, size_t num_events, uint8_t *observables, double *weight);

  /* Frees the decoder. */
  void (*destroy)(void *decoder);

  /* Optional (NULL): the edges of the correction of the last decode that returned CUDAQ_QEC_DECODE_OK; together they
   * cause exactly the events. Writes at most max_edges of them and returns how many there are. */
  size_t (*edges)(void *decoder, cudaq_qec_correction_edge_t *edges, size_t max_edges);

  /* Optional (NULL or absent): the errors of the correction of the last decode that returned CUDAQ_QEC_DECODE_OK. Error
   * k is the k-th error instruction of the model, from 0 in the order of the text, with all loops unrolled. Ascending,
   * each once; together they cause exactly the events, and flip exactly the observables of the answer. Writes at most
   * `max` of them and returns how many there are. Called and checked when the errors are wanted, and until 100
   * solutions of the decoder in a row were right. */
  size_t (*columns)(void *decoder, uint64_t *columns, size_t max);

  /* Optional (NULL or absent): decode, for shots that have a deadline or can be cancelled. Look at both after each
   * short step, some tens of microseconds. CUDAQ_QEC_DECODE_DEADLINE: the observables are those of the best solution so
   * far if *weight is a number (`edges` and `columns` then give that solution); else there is none. */
  int32_t (*decode_until)(void *decoder, const uint64_t *events, size_t num_events, uint8_t *observables,
                          double *weight, const cudaq_qec_decode_control_t *control);

  /* Optional (absent: 0): CUDAQ_QEC_ERRORS_JOINED, _COMPONENTS or _WHOLE. */
  uint32_t error_form;
  uint32_t reserved; /* 0 */

  /* Optional (NULL or absent): shots may replace the probabilities of some errors. Called before decode or decode_until
   * of such a shot, with each error at most once, and after it with num_errors 0: from then on all errors have the
   * probabilities of the model. So the two calls should take a time that is proportional to num_errors. Returns
   * CUDAQ_QEC_DECODE_OK; CUDAQ_QEC_DECODE_NOT_SUPPORTED: it does not take one of the probabilities, which the caller
   * sees as bad_probability (decode_status.h); or CUDAQ_QEC_DECODE_INTERNAL_ERROR. Without OK the shot is not decoded,
   * and a call with num_errors 0 follows, too. The list is valid during the call. Probabilities of 0 and of 1 are
   * allowed: count them as near to 0 or to 1 as weights can be finite. weight of such a shot is the sum of
   * log((1 - p) / p) with its probabilities; it is not compared with `columns`. Without this member, shots that replace
   * probabilities are refused. */
  int32_t (*replace_probabilities)(void *decoder, const cudaq_qec_error_probability_t *list, size_t num_errors);
} cudaq_qec_decoder_plugin_t;

#if defined(__GNUC__)
#define CUDAQ_QEC_DECODER_PLUGIN_EXPORT __attribute__((visibility("default")))
#else
#define CUDAQ_QEC_DECODER_PLUGIN_EXPORT
#endif

/* The function that a plug-in exports. The table is static. host_version: the CUDAQ_QEC_DECODER_PLUGIN_VERSION of the
 * program that loads it; a plug-in that cannot serve it returns NULL. */
CUDAQ_QEC_DECODER_PLUGIN_EXPORT const cudaq_qec_decoder_plugin_t *cudaq_qec_decoder_plugin_get(uint32_t host_version);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
