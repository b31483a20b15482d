// SPDX-License-Identifier: Apache-2.0
// One dispatcher of a ring: a host dispatcher, or a device that a host thread stands for.
#pragma once

#include "lib/shared_ring/thread_counters.h"

namespace cudaq::realtime::detail {

/// One dispatcher of a shared ring, as the thread that reads the ring sees it. Called under the router role only.
class ring_member {
public:
  virtual ~ring_member() = default;
  virtual const function_index_view &index() const = 0;
  virtual const judge_rules &rules() const = 0;
  /// The function is in its table, in a mode that it serves.
  bool owns(std::uint32_t function_id) const { return index().serves(function_id, rules().served_modes); }
  virtual bool is_default_owner() const = 0;
  /// Takes over a request that was judged by this member's rules.
  virtual void accept(std::uint32_t slot, const request &r, const judgement &what) = 0;
  /// It has answered the request that it was last given in this slot, and cleared rx. Asked in phase given.
  virtual bool has_answered(std::uint32_t) const { return false; }
  /// Counters that any thread may add to.
  virtual thread_counters &shared_counters() = 0;
};

} // namespace cudaq::realtime::detail
