// SPDX-License-Identifier: Apache-2.0
// What our text files about the errors of a model have in common: lines of words, comments, and a head that names the
// model:
//
//   cudaq-realtime-flags 1
//   model 1c291ca3
//
// `model` is the CRC-32 of the bytes of the model's file, in hexadecimal: numbers of errors mean nothing in another
// model. Empty lines, and lines that begin with #, may be anywhere.
#pragma once

#include "cudaq/qec/decoding/decoder.h"

#include "lib/qec/decoding/decoder_model.h"

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cudaq::qec::realtime {

/// CRC-32 as gzip and zlib compute it.
[[nodiscard]] std::uint32_t crc32_of(std::string_view bytes) noexcept;

/// The next word of a line, which loses it; "" at its end.
[[nodiscard]] std::string_view next_word(std::string_view &line) noexcept;

/// Whether a line has no further word.
[[nodiscard]] bool at_end(std::string_view line) noexcept;

/// Whether the whole word is a number.
template <class Number, class... Base>
[[nodiscard]] bool read_number(std::string_view word, Number &number, Base... base) noexcept {
  const char *const end = word.data() + word.size();
  const auto [stopped, fault] = std::from_chars(word.data(), end, number, base...);
  return !word.empty() && fault == std::errc{} && stopped == end;
}

/// For the text of a refusal: at most 40 characters of it, and no control characters.
[[nodiscard]] std::string in_quotes(std::string_view word);

/// An error and its probability, the next two words of a line, which loses them. A reason names the word that is wrong.
[[nodiscard]] expected<error_probability> read_pair(std::string_view &line);

/// Of each error of a model: a number that the reader of such a text keeps.
class error_entries {
public:
  /// Of an error that the text has not named yet.
  static constexpr std::uint64_t kUnnamed = UINT64_MAX;

  explicit error_entries(const detector_error_model &model);
  /// The number of this error. Refused: it is no error of the model, or decoders have no place for it.
  [[nodiscard]] expected<std::uint64_t *> of(std::uint64_t error);

private:
  std::vector<std::uint64_t> all_;
};

/// The head of such a text, line by line.
class model_text_head {
public:
  /// `version`: the first line; it must live as long as this object. `model`: the CRC-32 that the second one must name.
  model_text_head(std::string_view version, std::uint32_t model) : version_(version), model_(model) {}

  /// Takes the next line, without its end. Returns its words: "" for an empty line, a comment, and a line of the head.
  /// A reason does not name the line; no line can be read after it.
  [[nodiscard]] expected<std::string_view> read_line(std::string_view line);
  /// At the end of the text: whether it had its head.
  [[nodiscard]] expected<> finish() const;

private:
  enum class part { version, model, body };

  std::string_view version_;
  std::uint32_t model_;
  part next_ = part::version;
};

/// Reads a whole text, line by line. `reader`: read_line(words) for each line after the head, and finish() at the end.
/// A reason begins "line N: ".
template <class Reader>
[[nodiscard]] auto read_lines(std::string_view text, model_text_head head, Reader &reader)
    -> decltype(reader.finish()) {
  std::uint64_t number = 1;
  const auto of_line = [&number](const std::string &why) { return "line " + std::to_string(number) + ": " + why; };
  for (; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    const expected<std::string_view> words = head.read_line(text.substr(0, end));
    if (words.failed())
      return reason(of_line(words.text()));
    if (!words->empty())
      if (const expected<> result = reader.read_line(*words); result.failed())
        return reason(of_line(result.text()));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  number -= number == 1 ? 0 : 1; // the last line; of an empty text the first one is missing
  if (const expected<> result = head.finish(); result.failed())
    return reason(of_line(result.text()));
  auto read = reader.finish();
  if (read.failed())
    return reason(of_line(read.text()));
  return read;
}

/// The same with a Reader of the model's errors. A model that cannot be read is refused with its own reason.
template <class Reader>
[[nodiscard]] auto read_lines_about(std::string_view text, std::string_view version, const decoder_model &model)
    -> decltype(std::declval<Reader &>().finish()) {
  const auto errors = model.errors();
  if (errors.failed())
    return errors.reason();
  Reader reader(**errors);
  return read_lines(text, {version, crc32_of(model.text())}, reader);
}

/// The contents of such a file: a regular one of at most 1 GiB. A reason begins with its path.
[[nodiscard]] expected<std::string> read_model_text(const std::string &path);

} // namespace cudaq::qec::realtime
