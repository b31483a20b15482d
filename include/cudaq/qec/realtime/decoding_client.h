/* SPDX-License-Identifier: Apache-2.0 */
/* A client of the decoding server (cudaq-realtime serve) in C11, over UDP or shared memory. Library:
 * libcudaq-qec-client. It does what docs/transport/server_wire.md ("Repeated requests", "BUSY") asks of a requester:
 *   - each request has an id and a time; over UDP a frame without an answer is sent again with equal bytes, and the
 *     server executes it once;
 *   - BUSY (-1011) of the library is of one frame only: the same bytes are sent again;
 *   - BUSY (5) of the server: no frame of the request was or will be executed. It is sent as another request, with a
 *     new id and a new time.
 * docs/examples/decoding_client/decoding_client.c uses it. decoding_server_wire.h has functions, payloads and statuses.
 *
 * Threads: one thread uses a client at a time; clients are independent. No function starts a thread.
 * Processes: a client belongs to the process that opened it. In a child of fork each function returns CUDAQ_ERR_STATE
 * and sends nothing, except cudaq_qec_client_close, which there frees only what the child has.
 * Waiting: over UDP in the system (ppoll). Over shared memory it looks at the slot of the oldest open request for 50 us
 * without a pause, which takes a core, and then sleeps; at the slots of the others each 200 us.
 * Times are durations in nanoseconds; UINT64_MAX: without a limit. Pointers may be NULL where it is said.
 * Errors: a status other than CUDAQ_OK is of this side, and cudaq_qec_client_error has its text; the status of the
 * server is in the answer. Numbers of the wire are little-endian, and so must be those of this machine. */
#ifndef CUDAQ_QEC_REALTIME_DECODING_CLIENT_H
#define CUDAQ_QEC_REALTIME_DECODING_CLIENT_H

#include "cudaq/qec/realtime/decoding_server_wire.h"
#include "cudaq/realtime/daemon/dispatcher/cudaq_status.h"

#include <stdint.h>

#if defined(__GNUC__)
#define CUDAQ_QEC_CLIENT_API __attribute__((visibility("default")))
#else
#define CUDAQ_QEC_CLIENT_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define CUDAQ_QEC_CLIENT_NEVER UINT64_MAX

typedef struct cudaq_qec_client_t cudaq_qec_client_t;

typedef struct cudaq_qec_client_options_t {
  uint32_t struct_size; /* sizeof(cudaq_qec_client_options_t) */
  /* UDP: bytes of a slot of the server, which the longest request must fit, at most 65507; 0: 65507. A server in shared
   * memory says it. */
  uint32_t slot_size;
  uint32_t max_open; /* most requests that wait for an answer, a power of two, at most 64; 0: 1 */
  uint32_t reserved; /* 0 */
  /* UDP: a frame without an answer is sent again after this time, until CUDAQ_QEC_REPEAT_SECONDS after its first
   * attempt. 0: 20 ms. CUDAQ_QEC_CLIENT_NEVER: it is sent once, and the first report of the system that nothing listens
   * ends the wait. Shared memory loses nothing. */
  uint64_t repeat_after_ns;
  /* UDP: the system reports that nothing listens at any address of the server for so long, with or without requests
   * that ended meanwhile, while requests come at least every 2 s: the wait ends with CUDAQ_ERR_STATE, or the next
   * request is not sent. Until then the server may start. 0: 1 s. A server that is silent, because its machine is off
   * or its process stands still, is not reported: requests end without an answer. */
  uint64_t start_patience_ns;
} cudaq_qec_client_options_t;

typedef struct cudaq_qec_client_request_t {
  uint32_t function_id; /* CUDAQ_QEC_..., or that of another function of the server */
  uint32_t flags;       /* cudaq_qec_client_flag_t, or 0 */
  const void *head; /* the payload is `head` and then `body`; each may be NULL if it has no bytes. Both are copied */
  uint64_t head_bytes;
  const void *body;
  uint64_t body_bytes;
  uint64_t timeout_ns; /* from now; without an answer the request is given up */
} cudaq_qec_client_request_t;

typedef enum cudaq_qec_client_flag_t {
  /* BUSY (5; of qec_decode -5) of the server is an answer; the request is not sent again. For functions of your own,
   * whose status 5 means something else. And for several open requests to one decoder whose order counts: send those
   * that were refused again in their order, one at a time. */
  CUDAQ_QEC_CLIENT_BUSY_IS_AN_ANSWER = 1
} cudaq_qec_client_flag_t;

typedef enum cudaq_qec_client_event_t {
  CUDAQ_QEC_CLIENT_ANSWERED = 0, /* `status` is that of the server */
  /* The time of the request is over, and it may have been executed. If it is known that it was not, the event is
   * ANSWERED, with the BUSY that refused it last. If the transport had no room for it all the time, this library says
   * CUDAQ_RPC_ERR_BUSY (-1011): in shared memory, where requests without an answer keep their slots. */
  CUDAQ_QEC_CLIENT_NO_ANSWER = 1,
  CUDAQ_QEC_CLIENT_DROPPED = 2 /* shared memory: the server dropped the frame (an unknown function); not executed */
} cudaq_qec_client_event_t;

typedef struct cudaq_qec_client_answer_t {
  uint32_t request;      /* as cudaq_qec_client_send gave it */
  uint32_t event;        /* cudaq_qec_client_event_t */
  int32_t status;        /* cudaq_qec_server_status_t, cudaq_rpc_status_t, or of the function itself */
  uint32_t attempts;     /* frames that were sent for it */
  const uint8_t *result; /* valid until the next call with this client, except cudaq_qec_client_get_counts */
  uint64_t result_bytes;
} cudaq_qec_client_answer_t;

typedef struct cudaq_qec_client_counts_t {
  uint64_t repeated;   /* frames that were sent after the first one of their request */
  uint64_t busy;       /* answers BUSY of the server, of both kinds; not the one of this library (see NO_ANSWER) */
  uint64_t unexpected; /* datagrams and answers of no open request */
  uint64_t slot_size;  /* of the server; 0: not known yet */
} cudaq_qec_client_counts_t;

/* Opens a client over UDP. It sends nothing. `host`: a name, or a numeric address of IPv4 or IPv6. Of a name with
 * several addresses (localhost) the next one is tried when nothing listens at one. options may be NULL. *out_client is
 * set only with CUDAQ_OK.
 *   CUDAQ_ERR_INVALID_ARG   a NULL pointer, port 0, an option, or a name without an address
 *   CUDAQ_ERR_INTERNAL      the system refused a socket or memory */
CUDAQ_QEC_CLIENT_API cudaq_status_t cudaq_qec_client_open_udp(cudaq_qec_client_t **out_client, const char *host,
                                                              uint16_t port, const cudaq_qec_client_options_t *options);

/* Opens a client over shared memory, to the server `name` of this machine, and waits for it, or for a free ring, until
 * timeout_ns has passed; 0: one attempt. Statuses as of cudaq_shm_client_attach (shm_client.h). */
CUDAQ_QEC_CLIENT_API cudaq_status_t cudaq_qec_client_open_shm(cudaq_qec_client_t **out_client, const char *name,
                                                              uint64_t timeout_ns,
                                                              const cudaq_qec_client_options_t *options);

/* Sends a request and waits for its answer, or until its time is over. No other request may be open.
 *   CUDAQ_OK                there is an answer, with any status
 *   CUDAQ_ERR_INVALID_ARG   a NULL pointer, an unknown flag, or a request that is longer than a slot
 *   CUDAQ_ERR_TIMEOUT       no answer in time: the request may have been executed or not
 *   CUDAQ_ERR_UNSUPPORTED   the server has dropped the request
 *   CUDAQ_ERR_STATE         nothing listens at the address, or the server of shared memory has ended: the wait is over,
 *                           and a server that has just started may have executed the request; or another request is
 *                           open; or this process has not opened the client */
CUDAQ_QEC_CLIENT_API cudaq_status_t cudaq_qec_client_call(cudaq_qec_client_t *client,
                                                          const cudaq_qec_client_request_t *request,
                                                          cudaq_qec_client_answer_t *out_answer);

/* Sends a request and returns. *out_request: the number of the request, for its answer. While the transport has no room
 * the request waits here, and leaves in cudaq_qec_client_wait. Statuses as of call; after CUDAQ_ERR_STATE it was not
 * sent. That is also the status if max_open requests are open, or if CUDAQ_QEC_REPEAT_REQUESTS - 1 were sent after one
 * that is open: a server does not remember more, so collect answers first. */
CUDAQ_QEC_CLIENT_API cudaq_status_t cudaq_qec_client_send(cudaq_qec_client_t *client,
                                                          const cudaq_qec_client_request_t *request,
                                                          uint32_t *out_request);

/* Waits for the answer to any open request, or for the end of its time, at most timeout_ns (0: does not wait). Frames
 * are sent again only in here, so call it often.
 *   CUDAQ_OK                *out_answer says which request, and what has happened
 *   CUDAQ_ERR_TIMEOUT       nothing has happened; the requests stay open
 *   CUDAQ_ERR_STATE         as of call; or no request is open */
CUDAQ_QEC_CLIENT_API cudaq_status_t cudaq_qec_client_wait(cudaq_qec_client_t *client, uint64_t timeout_ns,
                                                          cudaq_qec_client_answer_t *out_answer);

/* Gives a request up before its time; a late answer is passed over. It may have been executed. CUDAQ_ERR_STATE: it is
 * not open. */
CUDAQ_QEC_CLIENT_API cudaq_status_t cudaq_qec_client_give_up(cudaq_qec_client_t *client, uint32_t request);

/* describe_decoder, by call: *out_description is set if *out_status is CUDAQ_QEC_SERVER_OK. Of a server of an earlier
 * version boot_id is 0. The client remembers the boot id for was_restarted. Statuses as of call; CUDAQ_ERR_INTERNAL:
 * the answer has a wrong length. */
CUDAQ_QEC_CLIENT_API cudaq_status_t cudaq_qec_client_describe(cudaq_qec_client_t *client, uint64_t decoder_id,
                                                              uint64_t timeout_ns,
                                                              cudaq_qec_decoder_description_t *out_description,
                                                              int32_t *out_status);

/* Asks again, after SYNDROMES_DROPPED or at the end of a run. *out_restarted is 1 if the server of this decoder was
 * started again since the client has described the decoder last: shots, streams and corrections are gone, and
 * reset_decoder begins anew. 0: it was not, or it is not known. With a router each decoder may have a server of its
 * own. Statuses as of describe. */
CUDAQ_QEC_CLIENT_API cudaq_status_t cudaq_qec_client_was_restarted(cudaq_qec_client_t *client, uint64_t decoder_id,
                                                                   uint64_t timeout_ns, int *out_restarted);

CUDAQ_QEC_CLIENT_API cudaq_status_t cudaq_qec_client_get_counts(const cudaq_qec_client_t *client,
                                                                cudaq_qec_client_counts_t *out_counts);

/* Ends the client; open requests may be executed or not. The handle must not be used again. NULL has no effect. */
CUDAQ_QEC_CLIENT_API void cudaq_qec_client_close(cudaq_qec_client_t *client);

/* What the status of an answer to `function_id` means. A number above 0 is a status of a decode for CUDAQ_QEC_DECODE
 * and CUDAQ_QEC_DECODE_READOUT, one of the server for its other functions, and the function's own for any other. Never
 * NULL; static. */
CUDAQ_QEC_CLIENT_API const char *cudaq_qec_server_answer_string(uint32_t function_id, int32_t status);

/* The name and the meaning of a status of the server, or of the library: "BUSY: ...". Not for numbers above 0 of
 * CUDAQ_QEC_DECODE and CUDAQ_QEC_DECODE_READOUT: there 4 is no NOT_READY. Never NULL; static. */
CUDAQ_QEC_CLIENT_API const char *cudaq_qec_server_status_string(int32_t status);

/* The reason of the last failed call of this thread. Empty before the first failure. */
CUDAQ_QEC_CLIENT_API const char *cudaq_qec_client_error(void);

#ifdef __cplusplus
}
#endif

#endif
