// SPDX-License-Identifier: Apache-2.0
// A process without a free descriptor.
#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>
#include <vector>

namespace cudaq::realtime::test {

/// While it lives, the process can open no file. What is open stays in use, whatever its number.
class no_files_left {
public:
  no_files_left() {
    getrlimit(RLIMIT_NOFILE, &before_);
    rlimit none = before_;
    none.rlim_cur = 0;
    for (rlim_t number = 0; number < before_.rlim_cur && number < kHighest; ++number)
      if (fcntl(static_cast<int>(number), F_GETFD) >= 0)
        none.rlim_cur = number + 1;
    setrlimit(RLIMIT_NOFILE, &none);
    for (int fd; (fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;)
      gaps_.push_back(fd);
  }
  ~no_files_left() {
    for (const int fd : gaps_)
      close(fd);
    setrlimit(RLIMIT_NOFILE, &before_);
  }
  no_files_left(const no_files_left &) = delete;
  no_files_left &operator=(const no_files_left &) = delete;

private:
  static constexpr rlim_t kHighest = 4096; ///< no test has as many

  rlimit before_{};
  std::vector<int> gaps_;
};

} // namespace cudaq::realtime::test
