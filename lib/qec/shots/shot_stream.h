// SPDX-License-Identifier: Apache-2.0
// Files and pipes of shots, read and written one shot at a time, in Stim's result formats. The format b8 works in every
// build; the others use Stim's own code, if its sources were there when the project was configured.
#pragma once

#include "lib/qec/shots/shot_format.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>

namespace cudaq::qec::realtime {

/// A file cannot be opened, read or written, or its content is wrong. The text begins with the name of the file, and
/// names the shot (the first is shot 0) and the byte.
class shot_file_error : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

class shot_reader {
public:
  /// `path`: "-" is stdin. Throws shot_file_error if the file cannot be opened, a shot has no bits, or this build does
  /// not know the format. `format_option`: what names the format, for the text about a file that is no text; "": none.
  shot_reader(const std::string &path, shot_format format, shot_bits bits, std::string format_option = "");
  ~shot_reader();
  shot_reader(const shot_reader &) = delete;
  shot_reader &operator=(const shot_reader &) = delete;

  /// Reads the next shot; returns false at the end of the file. Writes ceil(n / 8) bytes of each part: bit k in bit
  /// k % 8 of byte k / 8, unused bits 0.
  ///
  /// Throws shot_file_error if the file cannot be read, ends in the middle of a shot (of ptb64: in the middle of 64
  /// shots), or if a shot has too many bits, an index out of range or twice, or other text. Exception: an observable
  /// that a dets shot lists twice cancels, as in Stim. After an exception no more shots can be read.
  bool read(std::span<std::uint8_t> detectors, std::span<std::uint8_t> observables);

  /// After `stop_requested` returns true, read() returns false as at the end of the file, even while it waits for a
  /// pipe. A shot that is then incomplete is left out. While it waits, read() calls
  /// `stop_requested` about every 100 ms.
  void stop_when(std::function<bool()> stop_requested) noexcept;

  /// Shots that were read.
  [[nodiscard]] std::uint64_t shots() const noexcept { return shots_; }
  /// Shots of the whole file, by its size and that of the shots which were read: exact if all take the same bytes. 0 if
  /// it cannot be known, as of a pipe.
  [[nodiscard]] std::uint64_t expected_shots() const noexcept;
  /// The path, or "stdin".
  [[nodiscard]] const std::string &name() const noexcept;
  /// A shot, for people: "24 detectors"; of b8 "24 detectors and 1 observable = 4 bytes".
  [[nodiscard]] std::string shot_text() const;

private:
  struct input;
  std::unique_ptr<input> input_;
  std::uint64_t shots_ = 0;
};

class shot_writer {
public:
  /// For predicted observables; with b8 for rows of any bytes. `path`: "-" is stdout; a file is replaced. `unit`: the
  /// rows in error texts. Throws shot_file_error if the file cannot be opened or this build does not know the format.
  shot_writer(const std::string &path, shot_format format, std::uint64_t observables, const char *unit = "shots");
  ~shot_writer();
  shot_writer(const shot_writer &) = delete;
  shot_writer &operator=(const shot_writer &) = delete;

  /// Appends a shot; it may stay in memory until flush().
  void write(std::span<const std::uint8_t> row);
  /// Hands everything to the system, except shots of a ptb64 group that is not complete. Throws shot_file_error if an
  /// error occurred in this call or since the last one.
  void flush();
  /// flush() after the last shot, and closes the file. Also throws if the number of shots does not suit the format:
  /// ptb64 has 64 shots in a group. Shots of an incomplete group are not written.
  void finish();

  [[nodiscard]] const std::string &name() const noexcept;

private:
  struct output;
  std::unique_ptr<output> output_;
};

} // namespace cudaq::qec::realtime
