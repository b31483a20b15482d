// SPDX-License-Identifier: Apache-2.0
// Keys that are pressed while a program waits.
#pragma once

#include <cstdint>
#include <termios.h>

namespace cudaq::realtime::tools {

/// While it lives, stdin gives each key at once and shows none. Without a terminal, or in the background of one, it
/// does nothing.
class terminal_keys {
public:
  explicit terminal_keys(bool wanted);
  ~terminal_keys();
  terminal_keys(const terminal_keys &) = delete;
  terminal_keys &operator=(const terminal_keys &) = delete;

  [[nodiscard]] bool are_read() const noexcept { return read_; }
  /// Waits at most `wait_ns` for a key, 0 if none was pressed. May return early after a signal.
  [[nodiscard]] char wait(std::uint64_t wait_ns);

private:
  bool read_ = false;
  termios before_{};
};

} // namespace cudaq::realtime::tools
