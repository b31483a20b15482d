// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <sys/types.h>

namespace cudaq::qec::realtime {

/// The bytes of a file or a pipe, as they come. One thread at a time.
class byte_input {
public:
  /// `path`: "-" is stdin. Throws shot_file_error (shot_stream.h) if the file cannot be opened.
  explicit byte_input(const std::string &path);
  ~byte_input();
  byte_input(const byte_input &) = delete;
  byte_input &operator=(const byte_input &) = delete;

  /// Waits until there are bytes, and returns how many of them it has written to `to`. 0: the end, or stopped();
  /// negative: the file cannot be read, and error() has the errno.
  ssize_t read(std::span<char> to);

  /// After `stop_requested` returns true, read() returns 0, even while it waits for a pipe: then it calls
  /// `stop_requested` about every 100 ms.
  void stop_when(std::function<bool()> stop_requested) noexcept { stop_requested_ = std::move(stop_requested); }
  /// The last read() ended because of stop_requested.
  [[nodiscard]] bool stopped() const noexcept { return stopped_; }

  [[nodiscard]] int error() const noexcept { return error_; }
  [[noreturn]] void fail() const; ///< throws shot_file_error with the text of error()
  /// Read so far.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
  /// Of a regular file; 0 of others.
  [[nodiscard]] std::uint64_t size() const noexcept;
  /// The path, or "stdin".
  [[nodiscard]] const std::string &name() const noexcept { return name_; }

private:
  [[nodiscard]] bool wait_for_input_or_stop() const;

  const std::string name_;
  int fd_;
  std::function<bool()> stop_requested_; ///< may be empty
  bool stopped_ = false;
  int error_ = 0;
  std::uint64_t bytes_ = 0;
};

} // namespace cudaq::qec::realtime
