// SPDX-License-Identifier: Apache-2.0
// A handler for the GPU that the compiler of the CPU takes, too: a test calls it without a GPU, and a server on the CPU
// has the same answers.
#pragma once

#include <cudaq/realtime/daemon/dispatcher/device_arguments.h>

namespace example {

using namespace cudaq::realtime;

/// Arguments: any number of detection events, and their number. Results: a correction at offset 0, a confidence at
/// offset 1.
CUDAQ_REALTIME_HOST_DEVICE constexpr cudaq_handler_schema_t rate_schema() {
  return make_schema({make_type_desc(TYPE_BIT_PACKED, 0), make_type_desc(TYPE_UINT32, 1)},
                     {make_type_desc(TYPE_UINT8, 1), make_type_desc(TYPE_FLOAT32, 1)});
}

/// The correction is the parity of the events. The confidence is the fraction of events that are not set.
CUDAQ_REALTIME_HOST_DEVICE inline int rate_rpc(const void *input, void *output, std::uint32_t arg_len,
                                               std::uint32_t max_result_len, std::uint32_t *result_len) {
  constexpr cudaq_handler_schema_t schema = rate_schema();
  argument_reader arguments(schema, input, arg_len);
  result_writer results(schema, output, max_result_len);
  const std::uint32_t num_events = arguments.get<std::uint32_t>(1);
  if (num_events == 0 || num_events > arguments.elements(0))
    return 2;
  std::uint32_t set = 0;
  for (std::uint32_t k = 0; k < num_events; ++k)
    set += arguments.bit(0, k) ? 1 : 0;
  results.set(0, static_cast<std::uint8_t>(set % 2));
  results.set(1, 1 - static_cast<float>(set) / static_cast<float>(num_events));
  return arguments.ok() && results.finish(result_len) ? 0 : 1;
}

} // namespace example
