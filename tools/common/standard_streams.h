// SPDX-License-Identifier: Apache-2.0
// Standard streams that were closed when the program started.
#pragma once

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

namespace cudaq::realtime::tools {

class standard_streams {
public:
  /// Opens /dev/null in the place of each closed one: else the next file, socket or memory that is opened would get its
  /// number, and what the program prints would go there. Called first in main.
  static void open_closed() noexcept {
    for (int number = STDIN_FILENO; number <= STDERR_FILENO; ++number) {
      if (fcntl(number, F_GETFD) >= 0 || errno != EBADF)
        continue;
      closed()[static_cast<std::size_t>(number)] = true;
      // The number is the lowest free one, so it is the one that is returned. Without /dev/null any file does that can
      // be neither read nor written.
      if (open("/dev/null", O_RDWR) < 0)
        (void)open("/", O_PATH);
    }
  }
  /// It was closed at the start: what is written to it is lost, and nothing can be read from it.
  [[nodiscard]] static bool was_closed(int number) noexcept { return closed()[static_cast<std::size_t>(number)]; }

private:
  static std::array<bool, 3> &closed() noexcept {
    static std::array<bool, 3> flags{};
    return flags;
  }
};

} // namespace cudaq::realtime::tools
