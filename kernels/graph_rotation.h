// SPDX-License-Identifier: Apache-2.0
// Several scheduler graphs take turns, since each may launch only so often before it has to relaunch itself, and a relaunch
// waits for everything that it has launched. Who holds the token serves; who has spent its launches passes the token to a
// member that is there and unspent, and is back when its own children have ended.
//
//   member     arrives: ready = 1 -> polls the token -> has it: ready = 0 -> serves -> passes it -> relaunches itself
//   token      whoever holds it may write it; kTokenEnd: everybody leaves
#pragma once

#include "kernels/team.h"
#include "lib/device/graph_params.h"

namespace cudaq::realtime::detail {

class graph_rotation {
  static constexpr auto kDevice = cuda::thread_scope_device;

public:
  CUDAQ_REALTIME_HOST_DEVICE graph_rotation(graph_rotation_words &words, std::uint32_t number, std::uint32_t members)
      : words_(words), number_(number), members_(members) {}

  CUDAQ_REALTIME_HOST_DEVICE void arrive() const {
    store_release<std::uint32_t, kDevice>(words_.ready[number_], std::uint32_t{1});
  }
  enum class call { wait, serve, leave };
  /// After arrive: what the token says. With serve, everything that the last holder wrote is visible.
  CUDAQ_REALTIME_HOST_DEVICE call look() const {
    const std::uint32_t token = load_acquire<std::uint32_t, kDevice>(words_.token);
    if (token == kTokenEnd)
      return call::leave;
    if (token != number_)
      return call::wait;
    store_release<std::uint32_t, kDevice>(words_.ready[number_], std::uint32_t{0});
    return call::serve;
  }

  // --- who holds the token ---

  /// A member that can take it, or this one if there is none. By the whole team.
  template <class Team>
  CUDAQ_REALTIME_HOST_DEVICE std::uint32_t successor() const {
    for (std::uint32_t d = 1; d < members_; d += Team::kWidth) {
      const std::uint32_t mine = d + Team::lane();
      const std::uint32_t there = Team::ballot(
          mine < members_ && load_acquire<std::uint32_t, kDevice>(words_.ready[(number_ + mine) % members_]) != 0);
      if (there != 0)
        return (number_ + d + lowest_bit(there)) % members_;
    }
    return number_;
  }
  CUDAQ_REALTIME_HOST_DEVICE void pass(std::uint32_t to) const {
    store_release<std::uint32_t, kDevice>(words_.token, to);
  }
  CUDAQ_REALTIME_HOST_DEVICE void end() const { pass(kTokenEnd); }

private:
  graph_rotation_words &words_;
  const std::uint32_t number_, members_;
};

} // namespace cudaq::realtime::detail
