// SPDX-License-Identifier: Apache-2.0
// The end of a program after its report: objects are destroyed, and a destructor may wait for a thread that is inside
// a decoder that never returns. That wait has a limit.
#pragma once

#include "tools/common/terminal.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <thread>
#include <unistd.h>

namespace cudaq::realtime::tools {

/// While an object lives, the process ends at the latest kLimit after report_written(): with a line on stderr, and the
/// status of the report. One at a time, in main.
class end_watch {
public:
  static constexpr std::chrono::seconds kLimit{3};

  explicit end_watch(const char *program) { program_name().store(program); }
  ~end_watch() { program_name().store(nullptr); }
  end_watch(const end_watch &) = delete;
  end_watch &operator=(const end_watch &) = delete;

  /// `status`: of the program. Has no effect without an object, as in tests.
  static void report_written(int status) noexcept {
    if (program_name().load() == nullptr)
      return;
    try {
      std::thread([status] { watch(status); }).detach(); // it uses nothing that is destroyed
    } catch (const std::exception &) {                   // no thread or memory is left: as without this object
    }
  }

  /// For a subcommand that has a limit of its own.
  static void leave_out() noexcept { program_name().store(nullptr); }

private:
  static std::atomic<const char *> &program_name() {
    static std::atomic<const char *> name{nullptr};
    return name;
  }
  static void watch(int status) {
    for (const auto end = std::chrono::steady_clock::now() + kLimit; std::chrono::steady_clock::now() < end;
         std::this_thread::sleep_for(std::chrono::milliseconds(50)))
      if (program_name().load() == nullptr)
        return;
    const char *const name = program_name().load();
    if (name == nullptr)
      return;
    print_error("{}: the report is complete, but the program has not ended after {} s: does a decoder or a plug-in not "
                "return? It ends now\n",
                name, kLimit.count());
    std::fflush(stdout);
    _exit(status);
  }
};

} // namespace cudaq::realtime::tools
