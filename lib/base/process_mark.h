// SPDX-License-Identifier: Apache-2.0
// Whether this process is the one that made an object: a child of fork has a copy of it, but must not use its socket or
// its memory, which the parent goes on using.
#pragma once

#include <cstddef>
#include <cstdint>
#include <sys/mman.h>
#include <unistd.h>

namespace cudaq::realtime::detail {

/// A word that the system sets to 0 in a child of fork: a look at it is a load, no system call.
class process_mark {
public:
  process_mark() noexcept {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    void *const at = ::mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) // NOLINT: the system's name for it is a cast
      return;
    if (::madvise(at, page, MADV_WIPEONFORK) != 0) {
      ::munmap(at, page);
      return;
    }
    bytes_ = page;
    word_ = static_cast<std::uint32_t *>(at);
    *word_ = 1;
  }
  ~process_mark() {
    if (word_ != nullptr)
      ::munmap(static_cast<void *>(word_), bytes_);
  }
  process_mark(const process_mark &) = delete;
  process_mark &operator=(const process_mark &) = delete;

  /// True in the process that made the mark. Any thread may ask.
  [[nodiscard]] bool is_of_this_process() const noexcept {
    return word_ != nullptr ? *word_ != 0 : ::getpid() == process_;
  }
  /// The process that made it.
  [[nodiscard]] pid_t process() const noexcept { return process_; }

private:
  std::uint32_t *word_ = nullptr; ///< NULL: the system has no such memory, and the number is compared
  std::size_t bytes_ = 0;
  pid_t process_ = ::getpid();
};

} // namespace cudaq::realtime::detail
