// SPDX-License-Identifier: Apache-2.0
// A kernel on a ring that other dispatchers serve, too: the common ledger, and the member that stands for the kernel there.
#include "lib/api/device_back_end.h"
#include "lib/host_dispatcher/diagnostics.h"
#include "lib/support/cuda_device.h"

namespace cudaq::realtime::detail {

finding device_back_end::take_ring(wiring &w) {
  if (shared() && w.rewired) { // a ring that is wired anew begins at slot 0, unless others are on it
    ledger_.reset();
    member_.forget_ring();
  }
  finding refused = shared() ? manager_.join_ring(view_of(*w.ring, config_, ring_side::host), ledger_)
                             : manager_.reserve_ring(identity_of(*w.ring));
  if (!refused)
    held_ring_ = identity_of(*w.ring);
  return refused;
}

finding device_back_end::prepare_sharing(const wiring &w, dispatch_params &p) {
  if (!shared())
    return {};
  if (inbox_memory_ == nullptr)
    if (finding refused = manager_.take_mapped_block(ring_inbox::bytes(config_.num_slots), inbox_memory_))
      return refused;
  void *address = nullptr;
  if (const cudaError_t error = cudaHostGetDevicePointer(&address, inbox_memory_, 0))
    return cuda_failed("cudaHostGetDevicePointer", error);
  member_.prepare({ledger_, table_.host_index(), p.rules, w.options.default_owner != 0, inbox_memory_});
  p.inbox = ring_inbox::in(address, config_.num_slots);
  p.sharing = ring_sharing::routed;
  return {};
}

/// Before the launch: a function that another dispatcher serves is then refused without a kernel. What is routed until
/// the kernel runs waits in its inbox, and is given back if none does.
finding device_back_end::join_ring(const wiring &w) {
  if (!shared())
    return {};
  const cudaq_dispatcher_options_t &o = w.options;
  return member_.join({o.dispatcher_core, o.numa_node, o.realtime_priority},
                      idle_strategy(static_cast<cudaq_wait_policy_t>(o.wait_policy), o.block_interval_ns),
                      [this] { return under_way_.load() != 0 && look() != run_phase::going; });
}

void device_back_end::read_stats(cudaq_dispatcher_stats_t &out) const {
  reports_.read(out);
  const lane &routed = member_.counts();
  out.received += routed.dropped();
  out.dropped_bad_magic += routed.dropped_bad_magic.value();
  out.dropped_unknown_function += routed.dropped_unknown_function.value();
  out.dropped_flag_value += routed.dropped_flag_value.value();
  out.unexpected_flag_values += routed.unexpected_flag_values.value();
  out.tx_busy_waits += routed.tx_busy_waits.value();
  out.cursor_jumps += routed.cursor_jumps.value();
}

std::string device_back_end::describe_sharing() const {
  std::string text;
  if (shared())
    append(text, "ring: shared, routed by the host; cursors of loops count in the inbox of %u entries\n",
           config_.num_slots);
  return text;
}

} // namespace cudaq::realtime::detail
