// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/shots/byte_input.h"

#include "lib/qec/shots/shot_stream.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

namespace cudaq::qec::realtime {

byte_input::byte_input(const std::string &path)
    : name_(path == "-" ? "stdin" : path), fd_(path == "-" ? STDIN_FILENO : open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
  if (fd_ < 0)
    throw shot_file_error(name_ + ": cannot be opened: " + std::strerror(errno));
}

byte_input::~byte_input() {
  if (fd_ > STDIN_FILENO)
    close(fd_);
}

ssize_t byte_input::read(std::span<char> to) {
  stopped_ = wait_for_input_or_stop();
  if (stopped_)
    return 0;
  ssize_t got = 0;
  do
    got = ::read(fd_, to.data(), to.size());
  while (got < 0 && errno == EINTR);
  if (got < 0)
    error_ = errno;
  else
    bytes_ += static_cast<std::uint64_t>(got);
  return got;
}

/// Waits until there is something to read. True: the reader is to stop.
bool byte_input::wait_for_input_or_stop() const {
  constexpr int kPollMs = 100;
  if (!stop_requested_)
    return false;
  for (pollfd readable{fd_, POLLIN, 0}; !stop_requested_();)
    if (poll(&readable, 1, kPollMs) > 0)
      return stop_requested_();
  return true;
}

void byte_input::fail() const { throw shot_file_error(name_ + ": cannot be read: " + std::strerror(error_)); }

std::uint64_t byte_input::size() const noexcept {
  struct stat file {};
  return fstat(fd_, &file) == 0 && S_ISREG(file.st_mode) ? static_cast<std::uint64_t>(file.st_size) : 0;
}

} // namespace cudaq::qec::realtime
