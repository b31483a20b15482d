/* SPDX-License-Identifier: Apache-2.0 */
/* What libcudaq-realtime-bridge-roce.so exports beside the provider's table. It exports the functions of
 * udp_provider.h, too: the counts of requests. A program that loads the library by name takes the functions from it by
 * dlsym. docs/transport/roce.md describes the provider. */
#ifndef CUDAQ_REALTIME_ROCE_PROVIDER_H
#define CUDAQ_REALTIME_ROCE_PROVIDER_H

#include "cudaq/realtime/daemon/dispatcher/realtime_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Counts since create. Each packet that is received is in exactly one of: messages, parts, and those that begin with
 * dropped_. A message becomes a request, which cudaq_udp_get_statistics counts as received. */
typedef struct cudaq_roce_statistics_t {
  uint32_t struct_size; /* sizeof(cudaq_roce_statistics_t) of the caller */
  uint32_t reserved;
  uint64_t packets;
  uint64_t messages;          /* packets that end a message which has arrived in full */
  uint64_t parts;             /* packets that belong to a message and do not end it */
  uint64_t dropped_short;     /* no room for the headers */
  uint64_t dropped_opcode;    /* not of the transport UC */
  uint64_t dropped_version;   /* of another version of the header */
  uint64_t dropped_padding;   /* the length is no multiple of 4 */
  uint64_t dropped_icrc;      /* a wrong ICRC; with --icrc full also one that is only checked in part */
  uint64_t dropped_qp;        /* for another queue pair */
  uint64_t dropped_pkey;      /* of another partition */
  uint64_t dropped_rkey;      /* a write with another rkey */
  uint64_t dropped_address;   /* a write that is not inside of one slot */
  uint64_t dropped_length;    /* the payload does not fit the opcode, the MTU, the length of the message, or a slot */
  uint64_t dropped_immediate; /* the immediate is not the number of the slot that was written */
  uint64_t dropped_sequence;  /* an earlier packet of the message is missing, or this one is late */
  uint64_t dropped_peers;     /* of a new peer, while there are --max-peers others */
  uint64_t icrc_partly;       /* packets whose ICRC is right for an identification that is not known */
  uint64_t icrc_unchecked;    /* packets with --icrc off */
  uint64_t packets_lost;      /* packet sequence numbers that were skipped */
  uint64_t packets_late;      /* packets with a number before the expected one */
  uint64_t messages_broken;   /* messages that were begun and not completed */
} cudaq_roce_statistics_t;

/* As cudaq_udp_get_statistics. */
CUDAQ_REALTIME_API cudaq_status_t cudaq_roce_get_statistics(const char *endpoint, cudaq_roce_statistics_t *out);
typedef cudaq_status_t (*cudaq_roce_get_statistics_fn_t)(const char *endpoint, cudaq_roce_statistics_t *out);

#ifdef __cplusplus
}
#endif

#endif
