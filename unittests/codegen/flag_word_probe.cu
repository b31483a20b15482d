// SPDX-License-Identifier: Apache-2.0
// A whole turn of lib/ring/turn.h, compiled as device code: it contains the same accesses to the flags.
#include "unittests/codegen/flag_word_probe.h"

#include "lib/ring/turn.h"

namespace {

struct echo_server {
  __device__ bool no_job(std::uint32_t) { return true; }
  __device__ bool may_take(std::uint32_t) { return true; }
  __device__ void note_taken(std::uint32_t, const probe::request &, bool) {}
  __device__ void note_dropped(probe::verdict) {}
  __device__ void note_refused() {}
  __device__ void note_answered(std::int32_t) {}
  template <class Route>
  __device__ probe::handler_result serve(std::uint32_t, const probe::request &, Route) {
    return {};
  }
};

} // namespace

extern "C" __global__ void probe_turn_kernel(probe::slot_ring ring, probe::function_index_view index,
                                             probe::judge_rules rules, const int *turns) {
  echo_server server;
  std::uint32_t slot = 0;
  for (int i = 0; i < *turns; ++i)
    if (probe::take_turn(ring, slot, index, rules, server) != probe::turn_result::idle)
      slot = ring.next(slot);
}
