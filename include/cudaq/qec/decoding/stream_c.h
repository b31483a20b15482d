/* SPDX-License-Identifier: Apache-2.0 */
/* Streams for C11: rounds of detection events in, as they come; final corrections out, a few rounds later. The same as
 * stream.h, which has the whole contract. Link cudaq::qec-decoding.
 *
 *   cudaq_qec_stream_t *stream;
 *   char error[256];
 *   if (cudaq_qec_stream_create(dem_text, dem_size, NULL, &stream, error, sizeof error) != CUDAQ_QEC_STREAM_OK)
 *     return report(error);
 *   while (more_rounds)
 *     status = cudaq_qec_stream_push(stream, bits, bytes, count);
 *   status = cudaq_qec_stream_finish(stream, tail_bits, tail_bytes, tail_count);
 *   status = cudaq_qec_stream_poll(stream, observables, observable_bytes, &progress);
 *
 * Threads: push, finish, reset and destroy are calls of one thread at a time. Without workers, so are all others. With
 * workers poll, wait and statistics may be called by any thread at any time before destroy. No call prints, aborts or
 * throws. Functions return a status of the list below. A null pointer where one is needed, and a struct_size that is
 * not that of this header, give CUDAQ_QEC_STREAM_NOT_SUPPORTED. docs/decoders/streaming.md explains windows. */
#ifndef CUDAQ_QEC_DECODING_STREAM_C_H
#define CUDAQ_QEC_DECODING_STREAM_C_H

#include "cudaq/qec/decoding/decoder_c.h" /* cudaq_qec_soft_kind_t */

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define CUDAQ_QEC_STREAM_API __attribute__((visibility("default")))
#else
#define CUDAQ_QEC_STREAM_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The values are those of decode_status (decode_status.h), and others of its values may be returned, too. */
typedef enum cudaq_qec_stream_status_t {
  CUDAQ_QEC_STREAM_OK = 0,
  CUDAQ_QEC_STREAM_NO_SOLUTION = 3,      /* no set of errors causes the events of a window: the stream is broken */
  CUDAQ_QEC_STREAM_BUFFER_TOO_SMALL = 4, /* fewer bytes than bits, or too little room for the observables; or values of
                                          * complete rounds are missing, or more than the experiment has */
  CUDAQ_QEC_STREAM_INTERNAL_ERROR = 5,   /* out of memory, or a fault of the decoder: the stream is broken */
  CUDAQ_QEC_STREAM_NOT_SUPPORTED = 6,    /* create: the text says why. push: more bits than the queue can ever take, or
                                          * values that the table does not take: the fault says why */
  CUDAQ_QEC_STREAM_MISALIGNED = 8,       /* the tail at a wrong place or with a wrong length; nothing was taken */
  CUDAQ_QEC_STREAM_DEADLINE = 9,         /* a window had no solution at its deadline: the stream is broken */
  CUDAQ_QEC_STREAM_BUSY = 11,            /* the queue is full; nothing was taken, push the same bits again */
  CUDAQ_QEC_STREAM_BAD_PROBABILITY =
      12 /* a flag is 3: nothing was taken; a value is not finite: the stream is broken */
} cudaq_qec_stream_status_t;

typedef enum cudaq_qec_stream_mode_t {
  CUDAQ_QEC_STREAM_AUTOMATIC = 0, /* sequential with at most one worker, and for models without parallel windows */
  CUDAQ_QEC_STREAM_SEQUENTIAL = 1,
  CUDAQ_QEC_STREAM_PARALLEL = 2
} cudaq_qec_stream_mode_t;

/* A stream, and threads that decode windows of any number of streams. */
typedef struct cudaq_qec_stream cudaq_qec_stream_t;
typedef struct cudaq_qec_stream_workers cudaq_qec_stream_workers_t;

/* All members may be 0, except struct_size. */
typedef struct cudaq_qec_stream_options_t {
  size_t struct_size;
  const char *decoder; /* of each window, or the whole form, as in stream.h; NULL: "auto" */
  const char *rounds;  /* "time", or "index:N"; NULL: "time" */
  uint64_t commit;     /* rounds that a window makes final; 0: the distance of the code */
  uint64_t buffer;     /* later rounds that it looks at; 0: the distance of the code */
  uint32_t mode;       /* cudaq_qec_stream_mode_t */
  uint32_t workers;    /* threads; with a pool: its threads that this stream uses at the same time, 0: all */
  cudaq_qec_stream_workers_t *pool; /* NULL: threads of its own, or none */
  uint64_t queue_rounds;            /* with workers: rounds that are kept at most; 0: a default */
  const char *readout;              /* the text of a table of a readout, readout_size bytes, not kept; NULL: none */
  size_t readout_size;
} cudaq_qec_stream_options_t;

/* Soft values and flags that come with bits: the next ones. All members may be 0, except struct_size. The memory is the
 * caller's, and is not kept. */
typedef struct cudaq_qec_stream_values_t {
  size_t struct_size;
  const uint8_t *soft; /* num_soft values: soft_bytes bytes */
  size_t soft_bytes;
  uint64_t num_soft;
  const uint8_t *leakage; /* num_leakage flags, 0, 1 or 2, 2 bits each, the lowest first: leakage_bytes bytes */
  size_t leakage_bytes;
  uint64_t num_leakage;
  uint32_t soft_kind; /* cudaq_qec_soft_kind_t */
  uint32_t reserved;
} cudaq_qec_stream_values_t;

/* The values and flags of an experiment with R repetitions: R times those of a repetition, and those of head and tail.
 * All 0 without a table. */
typedef struct cudaq_qec_stream_values_info_t {
  size_t struct_size;
  uint64_t body_soft, other_soft;
  uint64_t body_leakage, other_leakage;
  uint32_t kinds; /* bit k: cudaq_qec_soft_kind_t k suits all measurements */
  uint32_t reserved;
} cudaq_qec_stream_values_info_t;

typedef struct cudaq_qec_stream_info_t {
  size_t struct_size;
  uint64_t head_detectors; /* bits of the head, of one repetition, and of the tail */
  uint64_t body_detectors;
  uint64_t tail_detectors;
  uint64_t num_observables;
  const char *description; /* of the windows, in words; valid as long as the stream */
  uint32_t is_parallel;
  uint32_t reserved;
} cudaq_qec_stream_info_t;

typedef struct cudaq_qec_stream_progress_t {
  size_t struct_size;
  uint64_t committed_rounds; /* the observables are those of this number of rounds */
  uint64_t pushed_rounds;
  int32_t status;    /* CUDAQ_QEC_STREAM_OK, or why the stream is broken */
  uint32_t is_final; /* 1: the tail has come and all rounds are final */
} cudaq_qec_stream_progress_t;

/* Since the last reset. */
typedef struct cudaq_qec_stream_statistics_t {
  size_t struct_size;
  uint64_t windows;            /* decoded */
  uint64_t decode_ns;          /* time in the decoder, of all windows with events */
  uint64_t worst_decode_ns;    /* of one window */
  uint64_t worst_queue_rounds; /* of complete windows whose decode had not begun */
  uint64_t worst_lag_rounds;   /* that had come and were not final when a window became final */
  uint64_t deadlines_met;      /* of windows, if their decoder has a deadline: ended before it */
  uint64_t deadlines_missed;   /* all others: with the best solution so far, without one, or late */
  uint64_t deadlines_late;     /* of these: the decoder ignored it */
} cudaq_qec_stream_statistics_t;

/* Starts `count` threads, 1 to 1024. error: room for a text that ends with a zero byte, may be NULL with size 0. */
CUDAQ_QEC_STREAM_API int32_t cudaq_qec_stream_workers_create(size_t count, cudaq_qec_stream_workers_t **workers,
                                                             char *error, size_t error_size);
/* Gives the threads up; they end after the last stream that uses them. NULL: no effect. */
CUDAQ_QEC_STREAM_API void cudaq_qec_stream_workers_destroy(cudaq_qec_stream_workers_t *workers);

/* Makes a stream for a model in Stim's text format with a loop. dem_text: dem_size bytes, not kept. options: NULL: all
 * members 0. error: as above. All windows of long streams are built here, so it takes a while. */
CUDAQ_QEC_STREAM_API int32_t cudaq_qec_stream_create(const char *dem_text, size_t dem_size,
                                                     const cudaq_qec_stream_options_t *options,
                                                     cudaq_qec_stream_t **stream, char *error, size_t error_size);
/* Waits for windows that have begun. NULL: no effect. */
CUDAQ_QEC_STREAM_API void cudaq_qec_stream_destroy(cudaq_qec_stream_t *stream);

/* The model and the windows. The caller sets info->struct_size. */
CUDAQ_QEC_STREAM_API int32_t cudaq_qec_stream_get_info(const cudaq_qec_stream_t *stream, cudaq_qec_stream_info_t *info);

/* The next `count` bits, one for each detector: bit k % 8 of byte k / 8. Any number, also parts of rounds. bits: at
 * least (count + 7) / 8 bytes. With workers it never waits for a decode. */
CUDAQ_QEC_STREAM_API int32_t cudaq_qec_stream_push(cudaq_qec_stream_t *stream, const uint8_t *bits, size_t bytes,
                                                   uint64_t count);
/* The bits of the tail, after a whole repetition: the experiment ends. With workers it does not wait. */
CUDAQ_QEC_STREAM_API int32_t cudaq_qec_stream_finish(cudaq_qec_stream_t *stream, const uint8_t *bits, size_t bytes,
                                                     uint64_t count);

/* Both with values of a readout: any number of the next ones, not later than the bits of their round. What is refused,
 * and how long before they may come: stream.h. values: NULL: none. */
CUDAQ_QEC_STREAM_API int32_t cudaq_qec_stream_push_values(cudaq_qec_stream_t *stream, const uint8_t *bits, size_t bytes,
                                                          uint64_t count, const cudaq_qec_stream_values_t *values);
CUDAQ_QEC_STREAM_API int32_t cudaq_qec_stream_finish_values(cudaq_qec_stream_t *stream, const uint8_t *bits,
                                                            size_t bytes, uint64_t count,
                                                            const cudaq_qec_stream_values_t *values);
/* What the table has. The caller sets info->struct_size. */
CUDAQ_QEC_STREAM_API int32_t cudaq_qec_stream_get_values_info(const cudaq_qec_stream_t *stream,
                                                              cudaq_qec_stream_values_info_t *info);

/* What is final. observables: NULL with 0 bytes, or at least (num_observables + 7) / 8 bytes: bit k % 8 of byte k / 8
 * is 1 if the errors in progress->committed_rounds rounds flip observable k. The caller sets progress->struct_size.
 * Returns progress->status. */
CUDAQ_QEC_STREAM_API int32_t cudaq_qec_stream_poll(const cudaq_qec_stream_t *stream, uint8_t *observables, size_t bytes,
                                                   cudaq_qec_stream_progress_t *progress);
/* The same, as soon as `round` rounds are final, or nothing more will be, or at deadline_ns of CLOCK_MONOTONIC
 * (UINT64_MAX: none). Without workers: at once. */
CUDAQ_QEC_STREAM_API int32_t cudaq_qec_stream_wait(const cudaq_qec_stream_t *stream, uint64_t round,
                                                   uint64_t deadline_ns, uint8_t *observables, size_t bytes,
                                                   cudaq_qec_stream_progress_t *progress);

/* Back to the beginning of the head: the next stream. Waits for windows that have begun, drops the others. */
CUDAQ_QEC_STREAM_API int32_t cudaq_qec_stream_reset(cudaq_qec_stream_t *stream);

/* The caller sets statistics->struct_size. */
CUDAQ_QEC_STREAM_API int32_t cudaq_qec_stream_get_statistics(const cudaq_qec_stream_t *stream,
                                                             cudaq_qec_stream_statistics_t *statistics);

/* Of a stream that is broken: which window failed, and what was wrong, if its decoder says it. Never NULL; "" if
 * nothing is known, or stream is NULL. Valid until reset or destroy. After values were refused: why, until the next
 * call of the owner. */
CUDAQ_QEC_STREAM_API const char *cudaq_qec_stream_fault(const cudaq_qec_stream_t *stream);

/* Static text of a status, never NULL. */
CUDAQ_QEC_STREAM_API const char *cudaq_qec_stream_status_text(int32_t status);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
