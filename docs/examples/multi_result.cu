// SPDX-License-Identifier: Apache-2.0
// A handler with an argument of variable size and two results, inlined into the dispatch kernel.
#include "device_session.h"
#include "rate_handler.h"

#include <cudaq/realtime/daemon/dispatcher/dispatch_kernel.cuh>

using namespace cudaq::realtime;

/// Ignores the dispatcher's function table, which may be empty: the only handler is part of the kernel.
static cudaError_t launch_inlined(const cudaq_dispatch_launch_params_t *params) {
  using handlers = handler_list<static_handler<fnv1a_hash("rate"), example::rate_rpc>>;
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
