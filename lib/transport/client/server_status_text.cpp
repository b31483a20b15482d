// SPDX-License-Identifier: Apache-2.0
// What the statuses of the decoding server mean. unittests/lint/statuses.py compares them with the header and with all
// other lists.
#include "cudaq/qec/realtime/decoding_client.h"
#include "cudaq/realtime/daemon/dispatcher/cudaq_realtime.h"

#include <array>
#include <cstdint>

namespace {

constexpr std::array kTexts = {
    "OK",
    "INVALID_DECODER: no decoder has this id",
    "BAD_REQUEST: a length or a field that is not accepted",
    "INTERNAL: the decoder failed",
    "NOT_READY: the server ends and takes no new shot; not executed",
    "BUSY: not executed: send it as another request, with a new id and time",
    "SYNDROMES_DROPPED: a request is missing, the server was started again, or a tail lacks bits",
    "STREAM_MISALIGNED: a tail at a wrong place or with a wrong length",
    "DEADLINE: the decode reached its deadline: the next shot begins; a stream is broken",
    "NOT_CONVERGED: the decoder found no solution: send a reset before the next shot",
};

} // namespace

extern "C" const char *cudaq_qec_server_status_string(int32_t status) {
  const auto number = static_cast<std::uint32_t>(status < 0 ? -static_cast<std::int64_t>(status) : status);
  return number < kTexts.size() ? kTexts[number] : cudaq_rpc_status_string(status);
}
