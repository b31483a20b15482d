/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HANDLER_H
#define HANDLER_H

#include <cudaq/realtime/daemon/dispatcher/host_dispatcher.h>

#ifdef __cplusplus /* a handler may be in C++, too */
extern "C" {
#endif

/* 0: served. `end` and `processed` stay in use until the dispatcher is destroyed. Else cudaq_last_error_message(). */
int serve(cudaq_dispatcher_t *dispatcher, const cudaq_ringbuffer_t *ring, volatile int *end, uint64_t *processed);

#ifdef __cplusplus
}
#endif
#endif
