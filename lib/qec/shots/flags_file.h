// SPDX-License-Identifier: Apache-2.0
// The file of `decode --flags`: which probabilities the shots replace. A text, a line for each shot that does so:
//
//   cudaq-realtime-flags 1
//   model 1c291ca3
//   shot 0 17 0.5 18 0.25
//   shot 4 3 1e-3
//
// Shot 0 has error 17 with probability 0.5, and error 18 with 0.25; shots 1 to 3 have those of the model. Shots ascend.
// docs/decoders/shot_probabilities.md is the description for users.
#pragma once

#include "cudaq/qec/decoding/decoder.h"
#include "lib/qec/decoding/model_text_file.h"
#include "lib/qec/shots/byte_input.h"

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cudaq::qec::realtime {

/// The lines of such a text, one after another.
class flags_text {
public:
  /// A line may have this many bytes.
  static constexpr std::size_t kLongestLine = std::size_t{1} << 24;

  /// `model`: the CRC-32 that the text must name. A list with more than `num_errors` errors is refused.
  flags_text(std::uint32_t model, std::uint64_t num_errors)
      : head_("cudaq-realtime-flags 1", model), num_errors_(num_errors) {}

  /// Takes the next line, without its end. True: it is of shot(), which replaces list(). A reason does not name the
  /// line; no line can be read after it.
  [[nodiscard]] expected<bool> read_line(std::string_view line);
  /// At the end of the text: whether it had its head.
  [[nodiscard]] expected<> finish() const { return head_.finish(); }

  [[nodiscard]] std::uint64_t shot() const noexcept { return shot_; }
  [[nodiscard]] shot_probabilities list() const noexcept { return list_; }

private:
  model_text_head head_;
  const std::uint64_t num_errors_;
  std::uint64_t shot_ = 0;
  bool had_shot_ = false;
  std::vector<error_probability> list_;
};

/// A file or a pipe of this form. Throws shot_file_error, which names the file and the line.
class flags_reader {
public:
  flags_reader(const std::string &path, std::uint32_t model, std::uint64_t num_errors)
      : input_(path), text_(model, num_errors) {}

  /// What the next shot replaces, valid until the next call; the first call is about shot 0.
  shot_probabilities next();
  /// After the last shot, of which there were `shots`: a list for a later one is an error.
  void finish(std::uint64_t shots);
  void stop_when(std::function<bool()> stop_requested) noexcept { input_.stop_when(std::move(stop_requested)); }

private:
  [[noreturn]] void fail(const std::string &why) const;
  /// Reads up to the next list. False: there is none.
  bool read_list();
  /// Without its end. False: the end of the file.
  bool read_line();

  byte_input input_;
  flags_text text_;
  std::vector<char> buffer_ = std::vector<char>(1 << 16);
  std::size_t at_ = 0, filled_ = 0; ///< in buffer_
  std::string line_;
  std::uint64_t line_number_ = 0, shot_ = 0;
  bool has_list_ = false; ///< of text_.shot(), which is not before shot_
  bool is_read_ = false;  ///< to its end
};

} // namespace cudaq::qec::realtime
