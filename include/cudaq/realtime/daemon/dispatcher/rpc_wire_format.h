/* SPDX-License-Identifier: Apache-2.0 */
/* Contents of a slot: frame headers, tx-flag sentinels, protocol status codes.
 *
 * A slot holds one frame: 24 bytes of header, then the payload, then unused bytes. All integers are little-endian.
 * docs/message_protocol.md is the normative text. */
#ifndef CUDAQ_REALTIME_RPC_WIRE_FORMAT_H
#define CUDAQ_REALTIME_RPC_WIRE_FORMAT_H

#include <stdint.h>

#define CUDAQ_RPC_MAGIC_REQUEST 0x43555152u  /* "CUQR" */
#define CUDAQ_RPC_MAGIC_RESPONSE 0x43555153u /* "CUQS" */
#define CUDAQ_RPC_HEADER_SIZE 24u            /* bytes, request and response alike */

/* Values of a tx flag that are not an address. */
#define CUDAQ_TX_FLAG_IN_FLIGHT 0xEEEEEEEEEEEEEEEEull /* accepted, not answered yet */
#define CUDAQ_TX_FLAG_ERROR_TAG 0xDEADull             /* bits 63..48; bits 47..0 hold the cudaError_t */
#define CUDAQ_TX_FLAG_ERROR_SHIFT 48

/* Header of a request, written by the control system. */
typedef struct __attribute__((packed)) cudaq_rpc_header_t {
  uint32_t magic;         /* CUDAQ_RPC_MAGIC_REQUEST */
  uint32_t function_id;   /* FNV-1a hash of the handler's name */
  uint32_t arg_len;       /* payload bytes after this header */
  uint32_t request_id;    /* chosen by the requester, echoed in the response */
  uint64_t ptp_timestamp; /* opaque, echoed in the response; ns by convention, 0 if unused */
} cudaq_rpc_header_t;

/* Header of a response, written by the dispatcher or the handler. */
typedef struct __attribute__((packed)) cudaq_rpc_response_t {
  uint32_t magic;         /* CUDAQ_RPC_MAGIC_RESPONSE */
  int32_t status;         /* 0: success; > 0 and -1..-999: returned by the handler; <= -1000: see cudaq_rpc_status_t */
  uint32_t result_len;    /* result bytes after this header; 0 with a protocol error */
  uint32_t request_id;    /* echoed */
  uint64_t ptp_timestamp; /* echoed */
} cudaq_rpc_response_t;

/* Status codes that the library itself writes into a response. They are all <= -1000. Negative values above that are
 * returned by handlers: the library passes them on unchanged, and they cannot be confused with these. */
typedef enum cudaq_rpc_status_t {
  CUDAQ_RPC_OK = 0,
  CUDAQ_RPC_ERR_BAD_ARG_LEN = -1000,        /* arg_len does not fit in the slot */
  CUDAQ_RPC_ERR_NO_SUCH_FUNCTION = -1001,   /* unknown id (only if the policy is to answer) or routing key */
  CUDAQ_RPC_ERR_MODE_NOT_SERVED = -1002,    /* the entry's dispatch mode is not served here */
  CUDAQ_RPC_ERR_RESULT_TOO_LARGE = -1003,   /* result_len exceeds the slot */
  CUDAQ_RPC_ERR_NO_RESPONSE = -1004,        /* the handler wrote no valid response frame */
  CUDAQ_RPC_ERR_HANDLER_THREW = -1005,      /* an exception left the handler, or it ended its thread */
  CUDAQ_RPC_ERR_LAUNCH_FAILED = -1006,      /* a graph or kernel launch failed */
  CUDAQ_RPC_ERR_DEVICE_FAULT = -1007,       /* the device is in a sticky error state */
  CUDAQ_RPC_ERR_WORKER_UNAVAILABLE = -1008, /* no worker can take the request */
  CUDAQ_RPC_ERR_SHUTTING_DOWN = -1009,      /* accepted, but not answered in the grace period of a stop */
  CUDAQ_RPC_ERR_SCHEMA_MISMATCH = -1010,    /* only if the schema check is on */
  CUDAQ_RPC_ERR_BUSY = -1011,               /* written by a transport: no room for this frame; send the same again */
  CUDAQ_RPC_ERR_REQUEST_ID = -1012          /* written by a transport: the id is too old, or used again; not executed */
} cudaq_rpc_status_t;

/* Protocol errors are counted in an array, at index CUDAQ_RPC_ERROR_INDEX(status). */
#define CUDAQ_RPC_ERROR_COUNT 16
#define CUDAQ_RPC_ERROR_INDEX(status) (-1000 - (status))

#endif
