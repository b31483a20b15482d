// SPDX-License-Identifier: Apache-2.0
// Several scheduler graphs take turns, since each may launch only so often before it has to relaunch itself, and a
// relaunch waits for everything that it has launched. Who holds the token serves; who has spent its launches passes the
// token to a member that is there and unspent, and is back when its own children have ended.
//
//   member     arrives: there -> polls the token -> has it: away -> serves -> passes or frees it -> relaunches itself
//   token      a member's number only while that member is on the device, so somebody always sees the shutdown words:
//              named   to a member that was seen there
//              free    at the beginning, and where nobody was there: whoever is on the device first takes it
//
// unittests/model/graph_token.pml checks these steps.
#pragma once

#include "cudaq/realtime/detail/loop/thread_group.h"
#include "lib/kernel_abi/graph_params.h"

namespace cudaq::realtime::detail {

class graph_rotation {
  static constexpr auto kDevice = thread_scope_device;

public:
  CUDAQ_REALTIME_HOST_DEVICE graph_rotation(graph_rotation_words &words, std::uint32_t &fault, std::uint32_t number,
                                            std::uint32_t members)
      : words_(words), fault_(fault), number_(number), members_(members) {}

  CUDAQ_REALTIME_HOST_DEVICE void arrive() const { note(graph_presence::there); }
  enum class call { wait, serve, leave };
  /// After arrive: what the token says. With serve, everything that the last holder wrote is visible.
  CUDAQ_REALTIME_HOST_DEVICE call look() const {
    const std::uint32_t token = load_acquire<std::uint32_t, kDevice>(words_.token);
    if (token != number_ && token != kTokenEnd &&
        (token != kTokenFree || !claim_word<std::uint32_t, kDevice>(words_.token, kTokenFree, number_)))
      return call::wait;
    note(graph_presence::away);
    return token == kTokenEnd ? call::leave : call::serve;
  }

  // --- who holds the token ---

  /// A member that can take it, or this one if there is none. By the whole group.
  template <class Group>
  CUDAQ_REALTIME_HOST_DEVICE std::uint32_t successor() const {
    for (std::uint32_t d = 1; d < members_; d += Group::kWidth) {
      const std::uint32_t there = others<Group>(d, graph_presence::there);
      if (there != 0)
        return (number_ + d + lowest_bit(there)) % members_;
    }
    return number_;
  }
  /// None of the others will ever come back. By the whole group.
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
  /// To whoever is on the device first; also by who has launched all members.
  CUDAQ_REALTIME_HOST_DEVICE void set_free() const { pass(kTokenFree); }
  /// fault: why nobody can go on, if that is so.
  CUDAQ_REALTIME_HOST_DEVICE void end(int fault) const {
    if (fault != 0)
      store_relaxed(fault_, static_cast<std::uint32_t>(fault));
    pass(kTokenEnd);
  }

  // --- who has passed it ---

  CUDAQ_REALTIME_HOST_DEVICE void lose() const { note(graph_presence::lost); }

private:
  CUDAQ_REALTIME_HOST_DEVICE void note(graph_presence what) const {
    store_release<std::uint32_t, kDevice>(words_.presence[number_], static_cast<std::uint32_t>(what));
  }
  /// Bit k: member d + k behind this one is so.
  template <class Group>
  CUDAQ_REALTIME_HOST_DEVICE std::uint32_t others(std::uint32_t d, graph_presence what) const {
    const std::uint32_t mine = d + Group::lane();
    return Group::ballot(mine < members_ &&
                         load_acquire<std::uint32_t, kDevice>(words_.presence[(number_ + mine) % members_]) ==
                             static_cast<std::uint32_t>(what));
  }

  graph_rotation_words &words_;
  std::uint32_t &fault_; ///< where the host reads it
  const std::uint32_t number_, members_;
};

} // namespace cudaq::realtime::detail
