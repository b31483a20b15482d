// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/qec/shots/byte_input.h"
#include "lib/qec/stream/stream_readout.h"
#include "tools/shots/recorded_readout.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace cudaq::realtime::tools {

/// Soft values, or flags, of one experiment of any length, from a file or a pipe: one after another without anything
/// between, also those of 4 and of 2 bits. The memory depends on what is read at once only.
class value_input {
public:
  /// `what`: in error texts. Throws shot_file_error.
  value_input(const std::string &path, unsigned bits_of_value, const char *what);

  void stop_when(std::function<bool()> stop_requested) noexcept { source_.stop_when(std::move(stop_requested)); }
  /// Reads the next ones, until `number` have come in all. It does not wait for more. False: stopped. Throws
  /// shot_file_error if the file ends before.
  bool read_to(std::uint64_t number);
  /// read_to(number) would not wait.
  [[nodiscard]] bool has(std::uint64_t number) const noexcept {
    return waiting() >= (skip_ + (number - std::min(number, come_)) * width_ + 7) / 8;
  }
  /// Of the last read_to: the bytes from the first one of its values on, and how many.
  [[nodiscard]] std::span<const std::uint8_t> bytes() const noexcept { return packed_; }
  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  [[nodiscard]] std::uint64_t come() const noexcept { return come_; }
  /// Throws shot_file_error if the file goes on, or has bits in the last byte.
  void check_end();

private:
  [[nodiscard]] std::size_t waiting() const noexcept { return buffer_.size() - begin_; }
  bool fill(std::size_t bytes);

  qec::byte_input source_;
  const unsigned width_;
  const char *const what_;
  std::vector<std::uint8_t> buffer_;
  std::size_t begin_ = 0; ///< of what waits in the buffer
  unsigned skip_ = 0;     ///< bits of its first byte that were given out
  std::vector<std::uint8_t> packed_;
  std::uint64_t count_ = 0, come_ = 0;
};

/// The files of --soft and --leakage for a stream.
class stream_value_input {
public:
  /// `of`: what the table of the stream has. Throws usage_error or shot_file_error.
  stream_value_input(const readout_files &files, const qec::stream_values_info &of);

  void stop_when(const std::function<bool()> &stop_requested);
  /// read_to(all) would not wait.
  [[nodiscard]] bool has(qec::readout_place all) const noexcept;
  /// Reads until these have come. False: stopped. Throws shot_file_error.
  bool read_to(qec::readout_place all);
  /// Of the last read_to, until the next one.
  [[nodiscard]] qec::stream_values next() const noexcept;
  void check_end();
  /// "25 soft values and 8 flags"
  [[nodiscard]] std::string text() const;

private:
  const qec::soft_kind kind_;
  std::optional<value_input> soft_, leakage_;
};

} // namespace cudaq::realtime::tools
