// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tools/common/clock.h"
#include "tools/common/interrupt.h"
#include "tools/common/terminal.h"

#include <cstdint>
#include <fmt/format.h>
#include <string>
#include <vector>

namespace cudaq::realtime::tools {

/// What went wrong in a run.
struct problem_list {
  void none(std::uint64_t count, const char *what) {
    if (count != 0)
      texts.push_back(fmt::format("{} {}", count, what));
  }
  std::vector<std::string> texts;
};

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
