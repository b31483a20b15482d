// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/qec/shots/byte_input.h"
#include "lib/qec/shots/shot_format.h"
#include "lib/qec/stream/repeating_model.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace cudaq::realtime::tools {

namespace qec = cudaq::qec::realtime;

/// The rounds of one experiment of any length, from a file or a pipe. The memory depends on the model only.
///
///   format   a round of 10 detectors                       unused bits
///   01       10 characters; a line has one or more rounds  none
///   b8       2 bytes; detector k in bit k % 8 of byte k/8  must be 0
///
/// The last rounds before the end are the tail. It is not known in advance where the end is, so a round is given out
/// when as much as a tail has come after it:
///
///   a tail of 2 rounds; rounds 0 to 4 have come: 0, 1 and 2 were given out, 3 and 4 may be the tail
class round_reader {
public:
  enum class found { round, tail, stop };

  /// `path`: "-" is stdin. Throws shot_file_error if the file cannot be opened, or for another format.
  /// Keeps a reference to the model.
  round_reader(const std::string &path, qec::shot_format format, const qec::repeating_model &model);

  /// As byte_input::stop_when. The rounds that were read before that still come.
  void stop_when(std::function<bool()> stop_requested) noexcept { source_.stop_when(std::move(stop_requested)); }
  /// next() will not wait for input.
  [[nodiscard]] bool has_next() const noexcept { return waiting() >= needed(); }

  /// The next round, or at the end of the file all bits of the tail, or `stop`. Throws shot_file_error, after all
  /// rounds before the fault have come: if the file cannot be read, has another content, or ends where no experiment
  /// can end.
  found next();
  /// Of the last round or tail, until the next call: bit k in bit k % 8 of byte k / 8.
  [[nodiscard]] std::span<const std::uint8_t> bits() const noexcept { return bits_; }
  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  [[nodiscard]] const std::string &name() const noexcept { return source_.name(); }

private:
  /// What the file has in memory: of 01 a byte for each character, 0 or 1, of b8 the bytes themselves.
  [[nodiscard]] std::uint64_t waiting() const noexcept { return end_ - begin_; }
  [[nodiscard]] std::uint64_t needed() const noexcept { return units(size_of(round_)) + tail_units_; }
  [[nodiscard]] std::uint64_t units(std::uint64_t detectors) const noexcept {
    return is_text_ ? detectors : (detectors + 7) / 8;
  }
  [[nodiscard]] std::uint64_t size_of(std::uint64_t round) const noexcept;
  void fill();
  /// Of 01: this byte of the file ends it.
  void refuse(std::uint64_t at, std::uint8_t character);
  void append_round(std::uint64_t detectors);
  void append(std::uint8_t byte, std::uint64_t count) noexcept;
  [[noreturn]] void fail(const std::string &why) const;
  [[noreturn]] void fail_at_end() const;

  qec::byte_input source_;
  const qec::repeating_model &model_;
  const bool is_text_;
  const std::vector<std::uint64_t> head_, body_, tail_; ///< detectors of each round
  std::uint64_t tail_units_ = 0;
  std::vector<std::uint8_t> buffer_;
  std::size_t begin_ = 0, end_ = 0; ///< of what waits in the buffer
  bool has_ended_ = false;
  bool after_return_ = false; ///< the last byte of the text was CR: LF must follow
  std::string bad_text_;      ///< what is wrong after the bytes that wait
  std::uint64_t round_ = 0;
  std::vector<std::uint8_t> bits_;
  std::uint64_t count_ = 0;
};

} // namespace cudaq::realtime::tools
