// SPDX-License-Identifier: Apache-2.0
// What the statuses of the decoding server mean: the build writes server_statuses.inc from the comments of
// decoding_server_wire.h.
#include "cudaq/qec/realtime/decoding_client.h"
#include "cudaq/realtime/daemon/dispatcher/cudaq_realtime.h"

extern "C" const char *cudaq_qec_server_status_string(int32_t status) {
  switch (status < 0 ? -static_cast<int64_t>(status) : status) {
#include <server_statuses.inc> // case 5: return "BUSY: ...";
  default:
    return cudaq_rpc_status_string(status);
  }
}
