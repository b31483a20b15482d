/* SPDX-License-Identifier: Apache-2.0 */
/* What libcudaq-realtime-bridge-udp.so exports beside the provider's table. A program that loads the library by name
 * takes the functions from it by dlsym. docs/transport/transport_udp.md describes the provider. */
#ifndef CUDAQ_REALTIME_UDP_PROVIDER_H
#define CUDAQ_REALTIME_UDP_PROVIDER_H

#include "cudaq/realtime/daemon/dispatcher/realtime_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Counts since create. Each datagram that is received is in exactly one of: accepted, replays, and those that begin
 * with dropped_ (except dropped_kernel) or answered_. */
typedef struct cudaq_udp_statistics_t {
  uint32_t struct_size; /* sizeof(cudaq_udp_statistics_t) of the caller */
  uint32_t reserved;
  uint64_t received;           /* datagrams */
  uint64_t accepted;           /* requests that got a slot */
  uint64_t replied;            /* datagrams that were sent: answers, replays, refusals */
  uint64_t dropped_magic;      /* not a request */
  uint64_t dropped_short;      /* shorter than a header */
  uint64_t dropped_long;       /* longer than a slot; a request is answered BAD_ARG_LEN */
  uint64_t dropped_duplicates; /* the same request is being executed, or was dropped by the dispatcher */
  uint64_t dropped_peers;      /* of a new peer, while there are --max-peers others */
  uint64_t dropped_kernel;     /* the socket's buffer was full, which is known when a later datagram is received; or too
                                  many requests waited for a slot, or there was no memory for one that would wait */
  uint64_t answered_truncated; /* BAD_ARG_LEN: the datagram ends before the payload does */
  uint64_t answered_busy;      /* BUSY: no slot was free (--busy-reply) */
  uint64_t answered_stale;     /* REQUEST_ID: the id is older than the replay window */
  uint64_t answered_reused;    /* REQUEST_ID: the id belongs to another request of the window */
  uint64_t replays;            /* answers that were sent again from the replay window */
  uint64_t reordered;          /* accepted after a request of the same peer with a newer id */
  uint64_t unanswered;         /* accepted, then dropped by the dispatcher */
  uint64_t send_errors;        /* datagrams that the system refused to send */
  uint64_t receive_errors;
  uint64_t peers_expired;
  uint64_t peers; /* that are remembered now; 0 without a replay window */
  /* Of the peer that was remembered last: IPv6, or IPv4 as ::ffff:a.b.c.d, in the order of the network, and its port.
   * All 0: there was none, or the next one comes just now. */
  uint8_t newest_address[16];
  uint64_t newest_port;
} cudaq_udp_statistics_t;

/* `endpoint`: the instance's line of cudaq_bridge_get_endpoint_info, because a handle of the loader is not known to the
 * provider. Any thread. A shorter struct of an older header gets the fields that it has. CUDAQ_ERR_INVALID_ARG: a
 * pointer is NULL, no instance has this line, or struct_size is smaller than 16 or larger than the struct of this
 * library; cudaq_realtime_get_bridge_error has the text. */
CUDAQ_REALTIME_API cudaq_status_t cudaq_udp_get_statistics(const char *endpoint, cudaq_udp_statistics_t *out);
typedef cudaq_status_t (*cudaq_udp_get_statistics_fn_t)(const char *endpoint, cudaq_udp_statistics_t *out);

/* Why the provider's last call of this thread failed: function, option, value. Empty before the first failure. The
 * loader takes it over as cudaq_last_error_message. */
CUDAQ_REALTIME_API const char *cudaq_realtime_get_bridge_error(void);

#ifdef __cplusplus
}
#endif

#endif
