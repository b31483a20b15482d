/* SPDX-License-Identifier: Apache-2.0 */
/* The decoding server inside a program, in C11: decoders from a configuration, for requests of a dispatcher or of the
 * program itself. Library: libcudaq-qec-server. `cudaq-realtime serve` is such a program. decoding_server_wire.h has
 * functions, payloads and statuses; docs/transport/server_wire.md has their rules, server_config.md the configuration.
 * docs/examples/decoding_server/decoding_server.c uses it.
 *
 * Threads: submit, call and the functions that get counts, times and rates by any number of threads at once; create,
 * serve, drain and destroy by one control thread; reload and go_back by that one or by another one, one call at a time.
 * The server has threads of its own, which take no signals.
 * Processes: a server belongs to the process that created it. In a child of fork each function returns CUDAQ_ERR_STATE,
 * and cudaq_qec_decoding_server_destroy has no effect.
 * Times are durations in nanoseconds; UINT64_MAX: without a limit. Pointers may be NULL where it is said.
 * Errors: a status other than CUDAQ_OK is of the call, and cudaq_qec_decoding_server_error has its text. The status of
 * a request is in its answer. Payloads and results are little-endian, and so must be the numbers of this machine. */
#ifndef CUDAQ_QEC_REALTIME_DECODING_SERVER_H
#define CUDAQ_QEC_REALTIME_DECODING_SERVER_H

#include "cudaq/qec/realtime/decoding_server_wire.h"
#include "cudaq/realtime/daemon/dispatcher/realtime_types.h"

#include <stdint.h>

#if defined(__GNUC__)
#define CUDAQ_QEC_SERVER_API __attribute__((visibility("default")))
#else
#define CUDAQ_QEC_SERVER_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cudaq_qec_decoding_server_t cudaq_qec_decoding_server_t;

typedef struct cudaq_qec_decoding_server_options_t {
  uint32_t struct_size;            /* sizeof(cudaq_qec_decoding_server_options_t) */
  cudaq_wait_policy_t wait_policy; /* how the threads of the decoders wait for requests */
  /* Threads that the decoders share, never more than there are decoders with a queue. 0: as many as the machine has
   * cores, at least 8. */
  uint32_t max_threads;
  uint32_t reserved;  /* 0 */
  const char *folder; /* where relative paths of a configuration begin; copied. NULL: the working folder */
} cudaq_qec_decoding_server_options_t;

typedef struct cudaq_qec_decoding_server_request_t {
  uint32_t function_id; /* CUDAQ_QEC_... of decoding_server_wire.h */
  /* With `timestamp` it tells a request that is sent again from another one (server_wire.md, "Repeated requests"). Both
   * 0: it is never taken for a repetition. */
  uint32_t request_id;
  uint64_t timestamp;     /* nanoseconds, of the first attempt; 0: none */
  const void *payload;    /* read during the call only; NULL if it has no bytes */
  uint64_t payload_bytes; /* at most UINT32_MAX */
  void *result;           /* the caller's; the answer is written to it. NULL if it has no bytes */
  uint64_t result_bytes;  /* room in `result`; an answer that needs more is a status, mostly BAD_REQUEST */
} cudaq_qec_decoding_server_request_t;

/* The answer to a request: `status` is cudaq_qec_server_status_t, of CUDAQ_QEC_DECODE as decoding_server_wire.h says,
 * or CUDAQ_RPC_ERR_BUSY: this copy of a request that waits has no place, and had no effect. `result_bytes` were written
 * to the result of the request. It must return soon and must not throw: the decoder waits for it. It may submit
 * requests, and must not call the other functions, except those that get counts and times. A request that it submits
 * may be answered before that submit returns (by a decoder with queue_length 0; BUSY; NOT_READY), by a call of
 * `answered` inside this one. So it must not submit again after BUSY or NOT_READY, nor make a chain of requests to a
 * decoder with queue_length 0: each would need more of the stack. */
typedef void (*cudaq_qec_decoding_server_answered_t)(void *user, int32_t status, uint64_t result_bytes);

typedef struct cudaq_qec_decoding_server_counts_t {
  uint32_t struct_size;  /* in: sizeof(cudaq_qec_decoding_server_counts_t) */
  uint32_t num_decoders; /* of the server */
  uint64_t reloads;      /* of the server: that were applied */
  uint64_t strays;       /* of the server: requests that named no decoder of it, or could not be read */
  /* Of the decoder, since create. They are read one after the other, while requests are served. */
  uint64_t requests;
  uint64_t waiting;        /* now: in its queue, and not begun */
  uint64_t shots;          /* decoded; of a stream: streams that ended */
  uint64_t failed_decodes; /* shots and windows without an answer */
  uint64_t repeated;       /* requests that came again, and got their first answer */
  uint64_t too_old;        /* requests that waited longer than age_limit_us */
  uint64_t exchanges;      /* new models that it has begun to use */
  uint64_t answers[16];    /* by cudaq_qec_server_status_t; 0 where there is no status */
} cudaq_qec_decoding_server_counts_t;

/* Reads a configuration (YAML, as of `cudaq-realtime serve --config`; `transport` is optional and not used), makes its
 * decoders and starts their threads. Files and plug-ins that it names are read during the call, which may take long.
 * `config` is a text with a 0 at its end, and is not used after the call. options may be NULL: CUDAQ_WAIT_BLOCK, 0
 * threads, the working folder. *out_server is set only with CUDAQ_OK; the caller destroys it.
 *   CUDAQ_ERR_INVALID_ARG   a NULL pointer, an option, or the configuration: the text names line, field, value and what
 *                           is accepted
 *   CUDAQ_ERR_UNSUPPORTED   this machine lacks something that the configuration needs: a GPU, a part of this build, an
 *                           open file, a thread of stream_workers
 *   CUDAQ_ERR_INTERNAL      the system refused a thread or memory */
CUDAQ_QEC_SERVER_API cudaq_status_t cudaq_qec_decoding_server_create(
    cudaq_qec_decoding_server_t **out_server, const char *config, const cudaq_qec_decoding_server_options_t *options);

/* *out_slot_size: bytes of a slot that holds a whole shot of each decoder in one request, and its answer, with their
 * headers: a multiple of 128, at least 256. 0: no slot is so large, and shots must come in several requests. */
CUDAQ_QEC_SERVER_API cudaq_status_t cudaq_qec_decoding_server_get_slot_size(const cudaq_qec_decoding_server_t *server,
                                                                            uint32_t *out_slot_size);

/* Makes the server the handler of its functions in a dispatcher of the host path (cudaq_dispatcher_t) that does not run
 * yet: its ring or its transport then serves them. `slot_size`: of its slots, in bytes. At most once for a server.
 * The dispatcher stays the caller's. Destroy it after drain has returned CUDAQ_OK, and before the server.
 *   CUDAQ_ERR_INVALID_ARG   a NULL pointer, or an answer of a decoder that is longer than a slot
 *   CUDAQ_ERR_UNSUPPORTED   a dispatcher of a device path, which takes no such handlers
 *   CUDAQ_ERR_STATE         the dispatcher runs, or the server has one */
CUDAQ_QEC_SERVER_API cudaq_status_t cudaq_qec_decoding_server_serve(cudaq_qec_decoding_server_t *server,
                                                                    cudaq_dispatcher_t *dispatcher, uint32_t slot_size);

/* Gives a request to the server and returns. After CUDAQ_OK `answered` is called exactly once with `user`: before the
 * return, or by a thread of the server. Until then `request->result` must stay; `request` need not. After another
 * status the request was not taken. Requests of one thread to one decoder are served in their order. A decoder with
 * queue_length 0 decodes during this call.
 *   CUDAQ_ERR_INVALID_ARG   a NULL pointer, or too many bytes
 *   CUDAQ_ERR_INTERNAL      no memory */
CUDAQ_QEC_SERVER_API cudaq_status_t cudaq_qec_decoding_server_submit(cudaq_qec_decoding_server_t *server,
                                                                     const cudaq_qec_decoding_server_request_t *request,
                                                                     cudaq_qec_decoding_server_answered_t answered,
                                                                     void *user);

/* The same, and waits for the answer, without a limit: the requests before it in the queue are decoded first. It must
 * not be called by `answered`. *out_result_bytes may be NULL. Statuses as of submit. */
CUDAQ_QEC_SERVER_API cudaq_status_t cudaq_qec_decoding_server_call(cudaq_qec_decoding_server_t *server,
                                                                   const cudaq_qec_decoding_server_request_t *request,
                                                                   int32_t *out_status, uint64_t *out_result_bytes);

/* Makes decoders from another configuration and exchanges them, each between two of its shots (a stream: before the
 * next one), while the server serves: server.md, "Live reload". Relative paths begin in the folder that create got.
 * timeout_ns: for the ends of shots, after the new decoders are made. After each status but CUDAQ_OK the old decoders
 * serve.
 *   CUDAQ_ERR_INVALID_ARG   a NULL pointer, a configuration that create would refuse, or one that changes what is fixed
 *   CUDAQ_ERR_UNSUPPORTED   as of create; also memory, where the text ends with std::bad_alloc
 *   CUDAQ_ERR_INTERNAL      the system refused a thread or memory
 *   CUDAQ_ERR_TIMEOUT       a decoder was inside a shot, or another reload is not over: try again; or the server has
 *                           ended inside a shot */
CUDAQ_QEC_SERVER_API cudaq_status_t cudaq_qec_decoding_server_reload(cudaq_qec_decoding_server_t *server,
                                                                     const char *config, uint64_t timeout_ns);

/* Which model a decoder that learns takes. */
typedef enum cudaq_qec_earlier_model_t {
  CUDAQ_QEC_MODEL_CONFIGURED = 0, /* of the configuration that create or the last reload got */
  CUDAQ_QEC_MODEL_BEFORE_SWAP = 1 /* that it used before its last swap. A second call takes that of the configuration */
} cudaq_qec_earlier_model_t;

/* Takes learned models back: each decoder with `learn` that uses a learned model uses the earlier one again, from
 * between two of its shots on, while the server serves; the others keep theirs. SIGUSR1 of `cudaq-realtime serve` is
 * CUDAQ_QEC_MODEL_CONFIGURED. Nothing is learned after this call, whatever its status is, until the next reload. An
 * exchange counts as one of cudaq_qec_decoding_server_counts_t. timeout_ns: for the ends of the shots of each decoder.
 *   CUDAQ_OK                the earlier models are in use; also if no decoder used a learned one
 *   CUDAQ_ERR_INVALID_ARG   server is NULL, or `to`
 *   CUDAQ_ERR_UNSUPPORTED   memory for the decoder of the earlier model; a learned model is still in use
 *   CUDAQ_ERR_INTERNAL      the system refused a thread or memory; the same
 *   CUDAQ_ERR_TIMEOUT       a decoder was inside a shot, and it and those after it in the configuration use their
 *                           learned models: try again; or the server has ended inside a shot */
CUDAQ_QEC_SERVER_API cudaq_status_t cudaq_qec_decoding_server_go_back(cudaq_qec_decoding_server_t *server,
                                                                      cudaq_qec_earlier_model_t to,
                                                                      uint64_t timeout_ns);

/* Ends the service without a loss: server.md, "The end". From now on no shot is begun. For read_ns shots that have
 * begun go on and corrections can be read; this ends earlier, 0.1 s after all are read. Then all requests are answered
 * NOT_READY, except those that describe a decoder. timeout_ns: of the whole call, which returns when each request that
 * was taken is answered, and `answered` has returned.
 *   CUDAQ_OK            all are answered; no thread of the server uses a dispatcher any more
 *   CUDAQ_ERR_TIMEOUT   a decoder, or an `answered` inside submit, has not ended, and the text says which; call it
 *                       again */
CUDAQ_QEC_SERVER_API cudaq_status_t cudaq_qec_decoding_server_drain(cudaq_qec_decoding_server_t *server,
                                                                    uint64_t read_ns, uint64_t timeout_ns);

/* The counts of a decoder and of the server. It waits for no decode.
 *   CUDAQ_ERR_INVALID_ARG   a NULL pointer, struct_size, or no decoder has this id */
CUDAQ_QEC_SERVER_API cudaq_status_t cudaq_qec_decoding_server_get_counts(
    const cudaq_qec_decoding_server_t *server, uint64_t decoder_id, cudaq_qec_decoding_server_counts_t *out_counts);

/* The stages of a request, each named by the moment that ends it; it begins at the moment before. Of a
 * decoder without a queue all but DECODED and WHOLE are 0. A request that waits for a round is decoded when its answer
 * is made. */
typedef enum cudaq_qec_request_stage_t {
  CUDAQ_QEC_STAGE_ACCEPTED = 0, /* from its arrival at the server; longer if several threads submit to the decoder */
  CUDAQ_QEC_STAGE_QUEUED = 1,   /* its bits are copied, and a thread of the decoders may take it */
  CUDAQ_QEC_STAGE_TAKEN = 2,    /* the time in the queue */
  CUDAQ_QEC_STAGE_DECODED = 3,
  CUDAQ_QEC_STAGE_ANSWERED = 4, /* the dispatcher has the answer, or `answered` has returned */
  CUDAQ_QEC_STAGE_WHOLE = 5     /* from its arrival to its answer */
} cudaq_qec_request_stage_t;

/* The times that a stage of the decoder's requests took since create, as the histogram of a dispatcher's handlers
 * (realtime_types.h). out_times->struct_size: sizeof(cudaq_handler_times_t). Counted are requests that were served and
 * answered, also those that wait for a round; not those that the queue refused. A request is counted after its answer
 * has left. It waits for no decode.
 *   CUDAQ_ERR_INVALID_ARG   a NULL pointer, struct_size, stage, or no decoder has this id */
CUDAQ_QEC_SERVER_API cudaq_status_t cudaq_qec_decoding_server_get_stage_times(const cudaq_qec_decoding_server_t *server,
                                                                              uint64_t decoder_id,
                                                                              cudaq_qec_request_stage_t stage,
                                                                              cudaq_handler_times_t *out_times);

/* A detector of a decoder: how often it fires now, and in the model. NAN where a number is not known: rate and sigma
 * before the first shot, model_rate and sigma of a herald or of H_sparse without rates of errors, a place without
 * coordinates in the model. */
typedef struct cudaq_qec_detector_rate_t {
  double rate;       /* share of the shots in which it fired */
  double model_rate; /* of the model that the decoder uses */
  double sigma;      /* by how many standard deviations `rate` is above the model's (below: < 0); 5 is certain */
  double x, y, time; /* its coordinates in the model */
} cudaq_qec_detector_rate_t;

typedef struct cudaq_qec_detector_rates_t {
  uint32_t struct_size;   /* in: sizeof(cudaq_qec_detector_rates_t) */
  uint32_t reserved;      /* out: 0 */
  uint64_t num_detectors; /* of a shot; of a stream those of its head, of one repetition, and of its tail */
  /* So many shots (of a stream: repetitions) would give rates as exact as these. Older shots count less:
   * `detector_rates` of the configuration says how fast. */
  double shots;
  uint64_t beyond_5_sigma; /* detectors with a sigma of 5 or more, or -5 or less */
} cudaq_qec_detector_rates_t;

/* The rates of a decoder's detectors, in the order of the bits of detection events. At most `room` of them are written
 * to out_rates, which may be NULL if room is 0; out_summary->num_detectors says how many there are. The counts begin
 * again when a reload exchanges the model. It waits for no decode.
 *   CUDAQ_ERR_INVALID_ARG   a NULL pointer, struct_size, or no decoder has this id
 *   CUDAQ_ERR_UNSUPPORTED   the decoder counts none: its detector_rates is 0, or its plug-in leaves detectors out
 *   CUDAQ_ERR_INTERNAL      no memory */
CUDAQ_QEC_SERVER_API cudaq_status_t cudaq_qec_decoding_server_get_detector_rates(
    const cudaq_qec_decoding_server_t *server, uint64_t decoder_id, cudaq_qec_detector_rate_t *out_rates, uint64_t room,
    cudaq_qec_detector_rates_t *out_summary);

/* Ends the server and frees it. Requests that were taken are answered first, so it waits as long as their decodes take;
 * those that wait for a round are answered NOT_READY. No other call may run. A dispatcher that it serves must be
 * destroyed before. The handle must not be used again. NULL has no effect. */
CUDAQ_QEC_SERVER_API void cudaq_qec_decoding_server_destroy(cudaq_qec_decoding_server_t *server);

/* The reason of the last failed call of this thread. Empty before the first failure. */
CUDAQ_QEC_SERVER_API const char *cudaq_qec_decoding_server_error(void);

#ifdef __cplusplus
}
#endif

#endif
