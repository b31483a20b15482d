// SPDX-License-Identifier: Apache-2.0
// What the statuses of the decoding server mean: the build writes server_statuses.inc from the comments of
// decoding_server_wire.h.
#include "cudaq/qec/decoding/decoder.h"
#include "cudaq/qec/realtime/decoding_client.h"
#include "cudaq/realtime/daemon/dispatcher/cudaq_realtime.h"

namespace qec = cudaq::qec::realtime;

extern "C" const char *cudaq_qec_server_status_string(int32_t status) {
  switch (status < 0 ? -static_cast<int64_t>(status) : status) {
#include <server_statuses.inc> // case 5: return "BUSY: ...";
  default:
    return cudaq_rpc_status_string(status);
  }
}

extern "C" const char *cudaq_qec_server_answer_string(uint32_t function_id, int32_t status) {
  switch (function_id) {
  case CUDAQ_QEC_DECODE:
  case CUDAQ_QEC_DECODE_READOUT:
    return status > 0 ? qec::decode_status_text(static_cast<qec::decode_status>(status))
                      : cudaq_qec_server_status_string(status);
  case CUDAQ_QEC_ENQUEUE_SYNDROMES:
  case CUDAQ_QEC_ENQUEUE_READOUT:
  case CUDAQ_QEC_GET_CORRECTIONS:
  case CUDAQ_QEC_RESET_DECODER:
  case CUDAQ_QEC_BEGIN_TAIL:
  case CUDAQ_QEC_GET_COMMITTED:
  case CUDAQ_QEC_DESCRIBE_DECODER:
  case CUDAQ_QEC_GET_DECODER_NAME:
    return cudaq_qec_server_status_string(status);
  default:
    return cudaq_rpc_status_string(status);
  }
}
