// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cudaq/qec/decoding/decoder.h"
#include "lib/qec/decoders/propagation/tanner_graph.h"

#include <cstdint>
#include <span>

namespace cudaq::qec::realtime {

/// Writes the answer of a decoder of columns: the observables, and what `details` wants, which may be null. `weight`:
/// of the columns. Returns `status`, that of the solver, or buffer_too_small.
inline decode_status answer_columns(const tanner_graph &graph, std::span<const std::uint32_t> columns, double weight,
                                    decode_status status, std::span<std::uint8_t> observables,
                                    decode_details *details) noexcept {
  graph.flip_observables(columns, observables);
  if (details == nullptr)
    return status;
  details->has_solution = true;
  details->weight = weight + graph.certain_weight;
  if (details->errors.empty())
    return status;
  details->num_errors = graph.list_errors(columns, details->errors);
  return details->num_errors <= details->errors.size() ? status : decode_status::buffer_too_small;
}

} // namespace cudaq::qec::realtime
