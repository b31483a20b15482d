/* SPDX-License-Identifier: Apache-2.0 */
/* What libcudaq-realtime-bridge-cpu-roce.so exports beside the provider's table. A program that loads the library by
 * name takes the functions from it by dlsym. docs/transport/cpu_roce.md describes the provider. */
#ifndef CUDAQ_REALTIME_CPU_ROCE_PROVIDER_H
#define CUDAQ_REALTIME_CPU_ROCE_PROVIDER_H

#include "cudaq/realtime/daemon/dispatcher/realtime_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Counts since create. Each message that is received is in exactly one of: accepted, and those that begin with dropped_
 * or answered_. */
typedef struct cudaq_cpu_roce_statistics_t {
  uint32_t struct_size; /* sizeof(cudaq_cpu_roce_statistics_t) of the caller */
  uint32_t reserved;
  uint64_t received;           /* messages that took a receive: writes with immediate, and others */
  uint64_t accepted;           /* requests that the dispatcher gets */
  uint64_t replied;            /* frames that were given to the adapter: answers and refusals */
  uint64_t dropped_immediate;  /* it names no slot, or the message is no write with immediate */
  uint64_t dropped_short;      /* shorter than a header */
  uint64_t dropped_long;       /* longer than a slot */
  uint64_t answered_truncated; /* BAD_ARG_LEN: the write ends before the payload does */
  uint64_t answered_busy;      /* BUSY: the slot was in use, so the write has broken the rule of credits */
  uint64_t overwritten;        /* of accepted: answered NO_RESPONSE, or BUSY if it was not executed, because a later
                                  write to the slot came before the answer */
  uint64_t unanswered;         /* of accepted: dropped by the dispatcher */
  uint64_t orphaned;           /* of accepted: the peer was gone, or another one connected, before the answer */
  uint64_t refusals_dropped;   /* of answered_: not sent, because too many wait to be sent */
  uint64_t peers;              /* that were connected */
  uint64_t peers_lost;         /* connections that the adapter has put in an error state */
  uint64_t callers_refused;    /* connections to the rendezvous port that were closed without a reply */
  uint64_t callers_delayed;    /* attempts to accept a caller for which the system had no socket: files, memory */
  uint64_t newest_address;     /* of the peer that was connected last: 10.0.0.2 is 0x0A000002; 0: there was none */
} cudaq_cpu_roce_statistics_t;

/* `endpoint`: the instance's line of cudaq_bridge_get_endpoint_info, because a handle of the loader is not known to the
 * provider. Any thread. A shorter struct of an older header gets the fields that it has. CUDAQ_ERR_INVALID_ARG: a
 * pointer is NULL, no instance has this line, or struct_size is smaller than 16 or larger than the struct of this
 * library; cudaq_realtime_get_bridge_error has the text. */
CUDAQ_REALTIME_API cudaq_status_t cudaq_cpu_roce_get_statistics(const char *endpoint, cudaq_cpu_roce_statistics_t *out);
typedef cudaq_status_t (*cudaq_cpu_roce_get_statistics_fn_t)(const char *endpoint, cudaq_cpu_roce_statistics_t *out);

#ifdef __cplusplus
}
#endif

#endif
