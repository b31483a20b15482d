/* SPDX-License-Identifier: Apache-2.0 */
/* The statuses of the C API. */
#ifndef CUDAQ_REALTIME_STATUS_H
#define CUDAQ_REALTIME_STATUS_H

typedef enum cudaq_status_t {
  CUDAQ_OK = 0,
  CUDAQ_ERR_INVALID_ARG = 1, /* an argument or the configuration is wrong; the message names field and value */
  CUDAQ_ERR_INTERNAL = 2,    /* the system refused a resource (memory, thread, affinity), or a callback threw */
  CUDAQ_ERR_CUDA = 3,        /* a CUDA call failed */
  CUDAQ_ERR_UNSUPPORTED = 4, /* not available in this build or on this machine */
  CUDAQ_ERR_TIMEOUT = 5,     /* a deadline passed; the call may be repeated */
  CUDAQ_ERR_STATE = 6        /* not allowed in the present state of the object */
} cudaq_status_t;

#endif /* CUDAQ_REALTIME_STATUS_H */
