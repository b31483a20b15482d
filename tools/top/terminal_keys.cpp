// SPDX-License-Identifier: Apache-2.0
#include "tools/top/terminal_keys.h"

#include <chrono>
#include <poll.h>
#include <thread>
#include <unistd.h>

namespace cudaq::realtime::tools {

terminal_keys::terminal_keys(bool wanted) {
  if (!wanted || tcgetattr(STDIN_FILENO, &before_) != 0 || tcgetpgrp(STDIN_FILENO) != getpgrp())
    return;
  termios keys = before_;
  keys.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  read_ = tcsetattr(STDIN_FILENO, TCSANOW, &keys) == 0;
}

terminal_keys::~terminal_keys() {
  if (read_)
    tcsetattr(STDIN_FILENO, TCSANOW, &before_);
}

char terminal_keys::wait(std::uint64_t wait_ns) {
  char key = 0;
  pollfd input{STDIN_FILENO, POLLIN, 0};
  if (!read_)
    std::this_thread::sleep_for(std::chrono::nanoseconds(wait_ns));
  else if (poll(&input, 1, static_cast<int>(wait_ns / 1'000'000) + 1) > 0 && read(STDIN_FILENO, &key, 1) != 1)
    read_ = false; // the terminal has gone
  return key;
}

} // namespace cudaq::realtime::tools
