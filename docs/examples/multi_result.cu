// SPDX-License-Identifier: Apache-2.0
// A handler with an argument of variable size and two results, inlined into the dispatch kernel.
#include "device_session.h"

#include <cudaq/realtime/daemon/dispatcher/device_arguments.h>
#include <cudaq/realtime/daemon/dispatcher/dispatch_kernel.cuh>

using namespace cudaq::realtime;

/// Arguments: any number of detection events, and their number. Results: a correction at offset 0, a confidence at
/// offset 1.
CUDAQ_REALTIME_HOST_DEVICE constexpr cudaq_handler_schema_t rate_schema() {
  return make_schema({make_type_desc(TYPE_BIT_PACKED, 0), make_type_desc(TYPE_UINT32, 1)},
                     {make_type_desc(TYPE_UINT8, 1), make_type_desc(TYPE_FLOAT32, 1)});
}

/// The correction is the parity of the events. The confidence is the fraction of events that are not set.
__device__ int rate_rpc(const void *input, void *output, std::uint32_t arg_len, std::uint32_t max_result_len,
                        std::uint32_t *result_len) {
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

/// Ignores the dispatcher's function table, which may be empty: the only handler is part of the kernel.
static cudaError_t launch_inlined(const cudaq_dispatch_launch_params_t *params) {
  using handlers = handler_list<static_handler<fnv1a_hash("rate"), rate_rpc>>;
  return launch_dispatch_kernel<RegularKernel, handlers>(*params);
}

static std::vector<std::uint8_t> request_of(const std::vector<std::uint8_t> &events, std::uint32_t num_events) {
  std::vector<std::uint8_t> payload = events;
  payload.resize(events.size() + sizeof(num_events));
  std::memcpy(payload.data() + events.size(), &num_events, sizeof(num_events));
  return payload;
}

/// Sends `count` requests, with 1 to `count` events. In each the first and the last event are set. Returns the number
/// of wrong answers.
static int rate_all(example::device_session &session, std::uint32_t count) {
  int wrong = 0;
  for (std::uint32_t n = 1; n <= count; ++n) {
    std::vector<std::uint8_t> events((n + 7) / 8);
    events[0] |= 1;
    events[(n - 1) / 8] = static_cast<std::uint8_t>(events[(n - 1) / 8] | 1u << ((n - 1) % 8));
    const example::answer got = session.call(fnv1a_hash("rate"), request_of(events, n), n);
    float confidence = -1;
    if (got.result.size() == 5)
      std::memcpy(&confidence, got.result.data() + 1, sizeof(confidence));
    const std::uint32_t set = n == 1 ? 1 : 2;
    wrong += got.header.status != 0 || got.result.size() != 5 || got.result[0] != set % 2 ||
             confidence != 1 - static_cast<float>(set) / static_cast<float>(n);
  }
  return wrong;
}

int main() {
  if (const int status = example::status_without_gpu())
    return status;
  constexpr std::uint32_t kCount = 1000;
  int wrong = 0;
  {
    example::device_session session(launch_inlined, {nullptr, 0});
    wrong += rate_all(session, kCount);
    wrong += session.call(fnv1a_hash("rate"), request_of({0xFF}, 9), 0).header.status != 2;
  }
  std::printf("multi_result: %u requests of variable size and one that claims too much, %d wrong\n", kCount, wrong);
  return wrong == 0 ? 0 : 1;
}
