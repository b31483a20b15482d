/* SPDX-License-Identifier: Apache-2.0 */
/* The wire of the decoding server (cudaq-realtime serve): function ids, payloads and statuses, for control systems in C
 * and C++. A request is a frame of rpc_wire_format.h with one of these payloads. docs/transport/server_wire.md has
 * the rules, and says how a request is repeated; decoding_client.h is a client that keeps them.
 *
 * The structs are the bytes of the wire: packed, all integers little-endian. On a machine with another byte order each
 * field must be converted. Bits are packed, the first one in bit 0 of byte 0. The server itself uses this header. */
#ifndef CUDAQ_QEC_REALTIME_DECODING_SERVER_WIRE_H
#define CUDAQ_QEC_REALTIME_DECODING_SERVER_WIRE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Ids of the functions: FNV-1a hashes of their names, 32 bits. */
#define CUDAQ_QEC_ENQUEUE_SYNDROMES 0x7ED8BE82u /* cudaq_qec_enqueue_syndromes_t and the bits; no result */
#define CUDAQ_QEC_ENQUEUE_READOUT 0xD1B0F222u   /* cudaq_qec_enqueue_readout_t and three arrays; no result */
#define CUDAQ_QEC_GET_CORRECTIONS 0x882D5BA1u   /* cudaq_qec_get_corrections_t; the bits, perhaps gaps */
#define CUDAQ_QEC_RESET_DECODER 0x977A59CFu     /* cudaq_qec_reset_decoder_t; no result */
#define CUDAQ_QEC_BEGIN_TAIL 0x21CDC649u        /* streams: cudaq_qec_begin_tail_t; no result */
#define CUDAQ_QEC_GET_COMMITTED 0x75DD3F12u     /* streams: cudaq_qec_get_committed_t; cudaq_qec_committed_t, bits */
#define CUDAQ_QEC_DESCRIBE_DECODER 0xD546EA57u  /* cudaq_qec_describe_decoder_t; cudaq_qec_decoder_description_t */
#define CUDAQ_QEC_GET_DECODER_NAME 0xF1697466u  /* as describe_decoder, without with_server; the text, without a 0 */
/* qec_decode: the events of one shot, and for a decoder with a table of a readout its soft values and flags; the
 * observables, perhaps gaps */
#define CUDAQ_QEC_DECODE 0xC4B0E4BFu
/* qec_decode_readout: the same for a decoder with a table, by its id, with the kind of the values: a whole shot as
 * cudaq_qec_enqueue_readout_t, whose counter is 0, and its three arrays. It has no place among the requests that have a
 * counter. */
#define CUDAQ_QEC_DECODE_READOUT 0x73895498u

#define CUDAQ_QEC_MAX_ENQUEUED_BITS 1048576u /* of one request: 2^20 */
/* A decoder knows a repeated request among its last REPEAT_REQUESTS that changed its state, for REPEAT_SECONDS. */
#define CUDAQ_QEC_REPEAT_REQUESTS 64u
#define CUDAQ_QEC_REPEAT_SECONDS 30u /* a requester repeats a request no longer than this after its first attempt */

/* Status of an answer; statuses of the library (cudaq_rpc_status_t) are -1000 and below. qec_decode and
 * qec_decode_readout have the status of a decode, or the negative of one of these: then nothing was decoded. */
typedef enum cudaq_qec_server_status_t {
  CUDAQ_QEC_SERVER_OK = 0,
  CUDAQ_QEC_SERVER_INVALID_DECODER = 1,   /* no decoder has this id */
  CUDAQ_QEC_SERVER_BAD_REQUEST = 2,       /* a wrong length or field, or a counter that was used: another client? */
  CUDAQ_QEC_SERVER_INTERNAL = 3,          /* the decoder failed */
  CUDAQ_QEC_SERVER_NOT_READY = 4,         /* the server ends and takes no new shot; not executed */
  CUDAQ_QEC_SERVER_BUSY = 5,              /* not executed: send it as another request, with a new id and time */
  CUDAQ_QEC_SERVER_SYNDROMES_DROPPED = 6, /* a request is missing, the server was started again, or a tail lacks bits */
  CUDAQ_QEC_SERVER_STREAM_MISALIGNED = 7, /* a tail at a wrong place or with a wrong length */
  CUDAQ_QEC_SERVER_DEADLINE = 8,     /* the decode reached its deadline: the next shot begins; a stream is broken */
  CUDAQ_QEC_SERVER_NOT_CONVERGED = 9 /* the decoder found no solution: send a reset before the next shot */
} cudaq_qec_server_status_t;

/* Payload of enqueue_syndromes; ceil(num_bits / 8) bytes follow it. */
typedef struct __attribute__((packed)) cudaq_qec_enqueue_syndromes_t {
  uint64_t decoder_id;
  uint64_t counter;    /* 1 more than that of the enqueue or begin_tail before; after the server's start 0 or 1 */
  uint64_t mapping_id; /* 0 */
  uint64_t num_bits;   /* at most CUDAQ_QEC_MAX_ENQUEUED_BITS */
} cudaq_qec_enqueue_syndromes_t;

/* Payload of enqueue_readout and qec_decode_readout, for a decoder with a table of a readout (docs/decoders/soft.md).
 * Three arrays follow it, each from a whole byte, and nothing after them: ceil(num_bits / 8) bytes of bits; the soft
 * values of the next num_values measurements; ceil(num_flags / 4) bytes with the next flags of leakage, 2 bits each,
 * the first one lowest. A shot may come in several requests of enqueue_readout; all its values and flags must have come
 * with the last of its bits. Rounds of a stream come with the next values and flags, or after them: those that a window
 * needs must have come with the request that completes it, and all of the experiment with the last bits of the tail. */
typedef struct __attribute__((packed)) cudaq_qec_enqueue_readout_t {
  uint64_t decoder_id;
  uint64_t counter;    /* as of enqueue_syndromes, in one sequence with it; of qec_decode_readout 0 */
  uint64_t num_bits;   /* at most CUDAQ_QEC_MAX_ENQUEUED_BITS, as the next two */
  uint64_t num_values; /* 0: no soft values */
  uint64_t num_flags;  /* 0: no flags */
  uint32_t soft_kind; /* of a value, the same for all of a shot: 0 4 bytes (float), 1 one byte, 2 half a byte, the first
                        * one in the low half; these are the values of cudaq_qec_soft_kind_t (decoder_c.h) */
  uint32_t zero;
} cudaq_qec_enqueue_readout_t;

typedef struct __attribute__((packed)) cudaq_qec_get_corrections_t {
  uint64_t decoder_id;
  /* That are wanted; the result has ceil(num_observables / 8) bytes, and of a decoder whose gap_bytes are not 0 a gap
   * for each after them (cudaq_qec_gaps_description_t). */
  uint64_t num_observables;
  uint8_t clear; /* 1: all corrections are set to 0 after reading; else 0 */
} cudaq_qec_get_corrections_t;

typedef struct __attribute__((packed)) cudaq_qec_reset_decoder_t {
  uint64_t decoder_id;
} cudaq_qec_reset_decoder_t;

typedef struct __attribute__((packed)) cudaq_qec_begin_tail_t {
  uint64_t decoder_id;
  uint64_t counter; /* as of enqueue_syndromes */
} cudaq_qec_begin_tail_t;

typedef struct __attribute__((packed)) cudaq_qec_get_committed_t {
  uint64_t decoder_id;
  uint64_t num_observables; /* that are wanted */
  uint8_t clear;            /* as of get_corrections */
  uint8_t zeros[7];
  /* The answer waits until this number of rounds is final; 0: it does not wait. SYNDROMES_DROPPED when it has waited to
   * its limit: the round lacks bits of the tail. Send them, do not reset. */
  uint64_t wait_for_round;
} cudaq_qec_get_committed_t;

/* Result of get_committed; ceil(num_observables / 8) bytes follow it. */
typedef struct __attribute__((packed)) cudaq_qec_committed_t {
  uint64_t committed_through; /* rounds that are final */
  uint64_t pushed_rounds;     /* rounds that have come: those of the head, after it; then more for each repetition */
} cudaq_qec_committed_t;

/* Payload of describe_decoder: nothing (the decoder of qec_decode), its first 8 bytes, or all of it. The result ends
 * with `digest`; with with_server 1 it is a whole cudaq_qec_decoder_description_t, with 2 a
 * cudaq_qec_stream_description_t, with 3 a cudaq_qec_readout_description_t, with 4 a cudaq_qec_gaps_description_t. A
 * server that does not know a form answers BAD_REQUEST. */
typedef struct __attribute__((packed)) cudaq_qec_describe_decoder_t {
  uint64_t decoder_id;
  uint64_t with_server; /* 1; 2: and the parts of a stream; 3: and the readout; 4: and the gaps */
} cudaq_qec_describe_decoder_t;

typedef enum cudaq_qec_server_state_t {
  CUDAQ_QEC_SERVER_SERVES = 0,
  CUDAQ_QEC_SERVER_ENDS = 1 /* corrections can be read, and begun shots go on; new ones are answered NOT_READY */
} cudaq_qec_server_state_t;

typedef struct __attribute__((packed)) cudaq_qec_decoder_description_t {
  uint64_t detectors; /* of a shot; of a stream: of one repetition */
  uint64_t shot_bits; /* bits of a shot in requests; of a stream 0 */
  uint64_t observables;
  uint64_t digest;       /* of the model */
  uint64_t boot_id;      /* random, never 0; another number: the server was started again, and its decoders are empty */
  uint64_t server_state; /* cudaq_qec_server_state_t */
} cudaq_qec_decoder_description_t;

/* The three last fields are 0 for a decoder of shots. */
typedef struct __attribute__((packed)) cudaq_qec_stream_description_t {
  cudaq_qec_decoder_description_t decoder;
  uint64_t head_detectors;    /* before the first repetition */
  uint64_t tail_detectors;    /* after begin_tail */
  uint64_t missing_tail_bits; /* after begin_tail: bits that have not come yet; else 0 */
} cudaq_qec_stream_description_t;

/* The three last fields are 0 for a decoder without a table of a readout. Those of a stream are of a repetition. */
typedef struct __attribute__((packed)) cudaq_qec_readout_description_t {
  cudaq_qec_stream_description_t stream;
  uint64_t num_measurements; /* soft values of a shot */
  uint64_t num_flags;        /* flags of leakage of a shot */
  uint64_t soft_kinds;       /* that the decoder takes: bit k is 1 for the soft_kind k */
} cudaq_qec_readout_description_t;

/* A gap says how sure an observable is: how much heavier the lightest correction with its other value is, at least 0,
 * as a difference of natural logarithms of likelihoods; NaN: not known (docs/decoders/confidence.md). Answers to
 * qec_decode and get_corrections with the bits of R observables have the gaps of these R after the last byte of bits,
 * without padding. */
typedef struct __attribute__((packed)) cudaq_qec_gaps_description_t {
  cudaq_qec_readout_description_t readout;
  uint64_t gap_bytes; /* of a gap: 4, a float (IEEE 754); 0: answers have no gaps */
} cudaq_qec_gaps_description_t;

#ifdef __cplusplus
}
#endif

#endif
