// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tools/common/clock.h"
#include "tools/common/interrupt.h"
#include "tools/common/terminal.h"

#include <cstdint>

namespace cudaq::realtime::tools {

/// Calls turn() until the player is done, and shows how far it is. After a signal it is interrupted.
template <class Player, class Count>
void play_to_end(Player &play, const interrupt_guard &interrupts, progress &display, const Count &count) {
  constexpr std::uint32_t kSpins = 200, kTurnsPerProgress = 1024;
  spin_then_yield idle(kSpins);
  for (std::uint32_t turn = 0; !play.done(); ++turn) {
    if (interrupts.interrupted())
      play.interrupt();
    play.turn() ? idle.worked() : idle.idle();
    if (turn % kTurnsPerProgress == 0)
      display.show(count(), now_ns());
  }
}

} // namespace cudaq::realtime::tools
