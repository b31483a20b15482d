// SPDX-License-Identifier: Apache-2.0
// One dispatcher of a shared ring: a host dispatcher, or a device represented by a host thread.
#pragma once

#include "lib/shared_ring/thread_counters.h"

namespace cudaq::realtime::detail {

/// One dispatcher of a shared ring, as the thread that reads the ring sees it. That thread calls these functions while
/// it holds the router role.
class ring_member {
public:
  virtual ~ring_member() = default;
  virtual const function_index_view &index() const = 0;
  virtual const judge_rules &rules() const = 0;
  /// True if the function is in its table, in a mode that it serves.
  bool owns(std::uint32_t function_id) const { return index().serves(function_id, rules().served_modes); }
  virtual bool is_default_owner() const = 0;
  /// Takes over a request that was judged by this member's rules.
  virtual void accept(std::uint32_t slot, const request &r, const judgement &what) = 0;
  /// True if it has answered the last request that it was given in this slot, and has cleared rx. Called in phase
  /// given.
  virtual bool has_answered(std::uint32_t) const { return false; }
  /// True if a job may be in phase given with this member as its owner.
  virtual bool was_given_jobs() const { return false; }
  /// Counters that any thread may add to.
  virtual thread_counters &shared_counters() = 0;
};

} // namespace cudaq::realtime::detail
