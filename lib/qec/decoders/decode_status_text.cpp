// SPDX-License-Identifier: Apache-2.0
// What the statuses of a decode mean. Also a part of libcudaq-qec-client, whose clients get them as answers.
#include "cudaq/qec/decoding/decoder.h"

namespace cudaq::qec::realtime {

const char *decode_status_text(decode_status status) noexcept {
  switch (status) {
  case decode_status::ok:
    return "ok";
  case decode_status::bad_detector_index:
    return "a detection event names a detector outside the model";
  case decode_status::duplicate_detector_index:
    return "a detection event is listed twice";
  case decode_status::no_solution:
    return "no error of the model causes these detection events (odd parity without a boundary?)";
  case decode_status::buffer_too_small:
    return "a buffer is too small for the model";
  case decode_status::internal_error:
    return "internal error of the decoder";
  case decode_status::not_supported:
    return "the decoder does not give what was asked for";
  case decode_status::not_converged:
    return "the decoder found no solution within its limits";
  case decode_status::stream_misaligned:
    return "the bits are not those of the model's tail after a whole repetition";
  case decode_status::deadline:
    return "the decoder reached its deadline before it was done";
  case decode_status::cancelled:
    return "the decode was cancelled";
  case decode_status::busy:
    return "the stream's queue is full; push the same bits again later";
  case decode_status::bad_probability:
    return "a probability of the shot is not from 0 to 1, or its error is listed twice or cannot be replaced";
  }
  return "unknown decode status";
}

std::string decode_status_text(decode_status status, const char *fault) {
  const char *const text = decode_status_text(status);
  const bool has_fault = status == decode_status::internal_error || status == decode_status::bad_probability;
  return !has_fault || *fault == '\0' ? text : std::string(text) + ": " + fault;
}

} // namespace cudaq::qec::realtime
