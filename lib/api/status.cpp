// SPDX-License-Identifier: Apache-2.0
// Version, features, and the texts of status values.
#include "cudaq/realtime/daemon/dispatcher/cudaq_realtime.h"
#include "cudaq/realtime/version.h"
#include "lib/base/error_text.h"

extern "C" {

uint32_t cudaq_realtime_version(void) { return CUDAQ_REALTIME_VERSION; }

uint64_t cudaq_realtime_features(void) {
  uint64_t features = CUDAQ_REALTIME_FEATURE_HOST_PATH | CUDAQ_REALTIME_FEATURE_NUMA;
#if defined(CUDAQ_REALTIME_HAS_CUDART)
  features |= CUDAQ_REALTIME_FEATURE_CUDA_MEMORY | CUDAQ_REALTIME_FEATURE_DEVICE_PATH;
#endif
  return features;
}

const char *cudaq_last_error_message(void) { return cudaq::realtime::detail::last_error_text(); }

const char *cudaq_status_string(cudaq_status_t status) {
  switch (status) {
  case CUDAQ_OK:
    return "CUDAQ_OK: success";
  case CUDAQ_ERR_INVALID_ARG:
    return "CUDAQ_ERR_INVALID_ARG: an argument or the configuration is wrong";
  case CUDAQ_ERR_INTERNAL:
    return "CUDAQ_ERR_INTERNAL: the system refused a resource";
  case CUDAQ_ERR_CUDA:
    return "CUDAQ_ERR_CUDA: a CUDA call failed";
  case CUDAQ_ERR_UNSUPPORTED:
    return "CUDAQ_ERR_UNSUPPORTED: this build, this machine or the other side does not do it";
  case CUDAQ_ERR_TIMEOUT:
    return "CUDAQ_ERR_TIMEOUT: a deadline passed";
  case CUDAQ_ERR_STATE:
    return "CUDAQ_ERR_STATE: not allowed in the present state";
  }
  return "unknown cudaq_status_t";
}

const char *cudaq_rpc_status_string(int32_t status) {
  switch (status) {
  case CUDAQ_RPC_OK:
    return "success";
  case CUDAQ_RPC_ERR_BAD_ARG_LEN:
    return "arg_len does not fit in the slot";
  case CUDAQ_RPC_ERR_NO_SUCH_FUNCTION:
    return "no handler has this function_id and routing key";
  case CUDAQ_RPC_ERR_MODE_NOT_SERVED:
    return "the function's dispatch mode is not served by this dispatcher";
  case CUDAQ_RPC_ERR_RESULT_TOO_LARGE:
    return "the handler's result does not fit in the slot";
  case CUDAQ_RPC_ERR_NO_RESPONSE:
    return "the handler wrote no response frame";
  case CUDAQ_RPC_ERR_HANDLER_THREW:
    return "the handler threw an exception";
  case CUDAQ_RPC_ERR_LAUNCH_FAILED:
    return "a graph or kernel launch failed";
  case CUDAQ_RPC_ERR_DEVICE_FAULT:
    return "the device is in a sticky error state";
  case CUDAQ_RPC_ERR_WORKER_UNAVAILABLE:
    return "no worker can take the request";
  case CUDAQ_RPC_ERR_SHUTTING_DOWN:
    return "the dispatcher was stopped before the answer came";
  case CUDAQ_RPC_ERR_SCHEMA_MISMATCH:
    return "the payload or the result contradicts the handler's schema";
  case CUDAQ_RPC_ERR_BUSY:
    return "the transport had no free slot; the request was not executed and may be repeated";
  case CUDAQ_RPC_ERR_REQUEST_ID:
    return "the request id is older than the transport's window, or belongs to another request";
  default:
    return status > 0 ? "the handler's own status" : "unknown negative status, or the handler's own";
  }
}

} // extern "C"
