// SPDX-License-Identifier: Apache-2.0
// Several scheduler graphs (members) take turns: an execution of a graph may launch only a limited number of graphs,
// and its relaunch waits for all of these. The member that holds the token serves. When it has used up its launches,
// it passes the token to a member that is there, and comes back after its own graphs have ended.
//
//   member     arrives: there -> polls the token -> has it: away -> serves -> passes or frees it -> relaunches itself
//   token      names a member only while that member is on the device, so that some member always reads the shutdown
//              words:
//              named   to a member that was seen there
//              free    at the beginning, and when no member was there: the first member on the device takes it
//
// unittests/model/graph_token.pml checks these steps.
#pragma once

#include "cudaq/realtime/detail/loop/thread_group.h"
#include "lib/kernel_abi/graph_params.h"

namespace cudaq::realtime::detail {

/// The graphs that one execution has launched.
enum class launched_graphs {
  running, ///< some may run
  ended,
  unknown, ///< the member that launched them is lost and reported no end
};

class graph_rotation {
  static constexpr auto kDevice = thread_scope_device;

public:
  CUDAQ_REALTIME_HOST_DEVICE graph_rotation(graph_rotation_words &words, std::uint32_t &fault, std::uint32_t number,
                                            std::uint32_t members)
      : words_(words), fault_(fault), number_(number), members_(members) {}

  CUDAQ_REALTIME_HOST_DEVICE void arrive() const { note(graph_presence::there); }
  enum class call { wait, serve, leave };
  /// After arrive(): what to do now. With `serve`, everything that the last holder wrote is visible.
  CUDAQ_REALTIME_HOST_DEVICE call poll() const {
    const std::uint32_t token = load_acquire<std::uint32_t, kDevice>(words_.token);
    if (token != number_ && token != kTokenEnd &&
        (token != kTokenFree || !claim_word<std::uint32_t, kDevice>(words_.token, kTokenFree, number_)))
      return call::wait;
    note(graph_presence::away);
    return token == kTokenEnd ? call::leave : call::serve;
  }

  // --- who holds the token ---

  /// A member that can take the token, or this member if there is none. Called by the whole group.
  template <class Group>
  CUDAQ_REALTIME_HOST_DEVICE std::uint32_t successor() const {
    for (std::uint32_t d = 1; d < members_; d += Group::kWidth) {
      const std::uint32_t there = others<Group>(d, graph_presence::there);
      if (there != 0)
        return (number_ + d + lowest_bit(there)) % members_;
    }
    return number_;
  }
  /// No other member will come back. Called by the whole group.
  template <class Group>
  CUDAQ_REALTIME_HOST_DEVICE bool alone() const {
    std::uint32_t lost = 0;
    for (std::uint32_t d = 1; d < members_; d += Group::kWidth)
      lost += count_bits(others<Group>(d, graph_presence::lost));
    return lost == members_ - 1;
  }
  CUDAQ_REALTIME_HOST_DEVICE void pass(std::uint32_t to) const {
    store_release<std::uint32_t, kDevice>(words_.token, to);
  }
  /// Called when the holder's execution begins. Every execution has another number.
  CUDAQ_REALTIME_HOST_DEVICE void begin(std::uint32_t execution) const {
    store_relaxed(words_.execution[number_], execution);
  }
  /// Whether the graphs that an execution of this run has launched have ended. A member comes back when all graphs that
  /// it has launched have ended, with or without a signal. Their writes are visible then.
  CUDAQ_REALTIME_HOST_DEVICE launched_graphs launched_by(std::uint32_t execution) const {
    std::uint32_t m = 0;
    while (m < members_ && load_relaxed(words_.execution[m]) != execution)
      ++m;
    if (m == members_) // a later execution of that member has begun
      return launched_graphs::ended;
    const auto seen = static_cast<graph_presence>(load_acquire<std::uint32_t, kDevice>(words_.presence[m]));
    return seen == graph_presence::there  ? launched_graphs::ended
           : seen == graph_presence::lost ? launched_graphs::unknown
                                          : launched_graphs::running;
  }
  /// For the first member on the device. Also called by the root kernel when it has launched all members.
  CUDAQ_REALTIME_HOST_DEVICE void set_free() const { pass(kTokenFree); }
  /// All members leave. fault: the error that ends the run, or 0.
  CUDAQ_REALTIME_HOST_DEVICE void end(int fault) const {
    if (fault != 0)
      store_relaxed(fault_, static_cast<std::uint32_t>(fault));
    pass(kTokenEnd);
  }

  // --- who has passed the token ---

  CUDAQ_REALTIME_HOST_DEVICE void lose() const { note(graph_presence::lost); }

private:
  CUDAQ_REALTIME_HOST_DEVICE void note(graph_presence what) const {
    store_release<std::uint32_t, kDevice>(words_.presence[number_], static_cast<std::uint32_t>(what));
  }
  /// Bit k: `what` is the presence of the member d + k numbers after this one.
  template <class Group>
  CUDAQ_REALTIME_HOST_DEVICE std::uint32_t others(std::uint32_t d, graph_presence what) const {
    const std::uint32_t mine = d + Group::lane();
    return Group::ballot(mine < members_ &&
                         load_acquire<std::uint32_t, kDevice>(words_.presence[(number_ + mine) % members_]) ==
                             static_cast<std::uint32_t>(what));
  }

  graph_rotation_words &words_;
  std::uint32_t &fault_; ///< the host reads it
  const std::uint32_t number_, members_;
};

} // namespace cudaq::realtime::detail
