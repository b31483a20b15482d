// SPDX-License-Identifier: Apache-2.0
// A turn of lib/ring/turn.h at a slot whose address has a name, so that its machine code shows each access to it.
#include "lib/ring/turn.h"

namespace probe = cudaq::realtime::detail;

extern "C" {
__attribute__((visibility("hidden"))) extern std::uint64_t probe_flags[2];
__attribute__((visibility("hidden"))) extern std::uint8_t probe_slot[64], probe_answer[64];
void probe_serve(const probe::request *r, std::uint32_t route);
}

namespace {
struct probe_server {
  bool no_job(std::uint32_t) { return true; }
  bool may_take(std::uint32_t) { return true; }
  void note_taken(std::uint32_t, const probe::request &, bool) {}
  void note_dropped(probe::verdict) {}
  void note_refused() {}
  void note_answered(std::int32_t) {}
  probe::handler_result serve(std::uint32_t, const probe::request &r, std::uint32_t route) {
    probe_serve(&r, route);
    return {};
  }
};
} // namespace

extern "C" int probe_turn(const probe::function_index_view *index, const probe::judge_rules *rules) {
  probe::slot_ring ring;
  ring.rx_flags = probe_flags, ring.tx_flags = probe_flags + 1;
  ring.rx_data = probe_slot, ring.tx_data = probe_answer;
  ring.rx_stride = ring.tx_stride = 64;
  ring.num_slots = 1, ring.slot_size = 64;
  probe_server server;
  return static_cast<int>(probe::take_turn(ring, 0, *index, *rules, server));
}
