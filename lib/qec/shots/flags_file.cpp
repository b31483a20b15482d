// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/shots/flags_file.h"

#include "lib/qec/shots/shot_stream.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <utility>

namespace cudaq::qec::realtime {
namespace {

constexpr std::string_view kVersion = "cudaq-realtime-flags 1";

/// The next word of a line; "" at its end.
std::string_view next_word(std::string_view &line) noexcept {
  const auto is_space = [](char c) { return c == ' ' || c == '\t'; };
  while (!line.empty() && is_space(line.front()))
    line.remove_prefix(1);
  std::size_t size = 0;
  while (size < line.size() && !is_space(line[size]))
    ++size;
  const std::string_view word = line.substr(0, size);
  line.remove_prefix(size);
  return word;
}

template <class Number, class... Base>
bool read_number(std::string_view word, Number &number, Base... base) noexcept {
  const char *const end = word.data() + word.size();
  const auto [stopped, fault] = std::from_chars(word.data(), end, number, base...);
  return !word.empty() && fault == std::errc{} && stopped == end;
}

std::string in_quotes(std::string_view word) {
  constexpr std::size_t kMaxShown = 40;
  std::string text = "\"" + std::string(word.substr(0, kMaxShown)) + (word.size() > kMaxShown ? "..." : "") + "\"";
  for (char &c : text)
    c = c < ' ' || c > '~' ? '?' : c;
  return text;
}

std::string hexadecimal(std::uint32_t number) {
  char text[9];
  std::snprintf(text, sizeof text, "%08x", static_cast<unsigned>(number));
  return text;
}

} // namespace

std::uint32_t crc32_of(std::string_view bytes) noexcept {
  std::uint32_t rest = UINT32_MAX;
  for (const char byte : bytes) {
    rest ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit)
      rest = rest >> 1 ^ ((rest & 1) != 0 ? 0xedb88320U : 0U);
  }
  return ~rest;
}

expected<bool> flags_text::take(std::string_view line) {
  if (!line.empty() && line.back() == '\r')
    line.remove_suffix(1);
  std::string_view rest = line;
  const std::string_view word = next_word(rest);
  if (word.empty() || word.front() == '#')
    return false;
  if (next_ == part::version) {
    if (line != kVersion)
      return reason("the first line is " + in_quotes(line) + ", accepted: " + std::string(kVersion));
    next_ = part::model;
    return false;
  }
  if (next_ == part::model) {
    const std::string_view number = next_word(rest);
    std::uint32_t named = 0;
    if (word != "model" || number.size() != 8 || !read_number(number, named, 16) || !next_word(rest).empty())
      return reason("the line is " + in_quotes(line) +
                    ", accepted: model and the CRC-32 of its file, 8 digits; this "
                    "model has " +
                    hexadecimal(model_));
    if (named != model_)
      return reason("the file is for the model " + hexadecimal(named) + ", this one has the CRC-32 " +
                    hexadecimal(model_));
    next_ = part::shots;
    return false;
  }
  std::uint64_t shot = 0;
  const std::string_view number = next_word(rest);
  if (word != "shot" || !read_number(number, shot))
    return reason("the line begins with " + in_quotes(std::string(word) + " " + std::string(number)) +
                  ", accepted: shot, its number, and pairs of an error and a probability");
  if (had_shot_ && shot <= shot_)
    return reason("shot " + std::to_string(shot) + " comes after shot " + std::to_string(shot_) + "; shots ascend");
  list_.clear();
  for (std::string_view error = next_word(rest); !error.empty(); error = next_word(rest)) {
    error_probability one{};
    const std::string_view probability = next_word(rest);
    if (!read_number(error, one.error))
      return reason("the error " + in_quotes(error) + " is not a number of an error");
    if (!read_number(probability, one.probability) || !(one.probability >= 0 && one.probability <= 1))
      return reason("the probability of error " + std::string(error) + " is " + in_quotes(probability) +
                    ", accepted: a number from 0 to 1");
    if (list_.size() == num_errors_)
      return reason("the list has more errors than the model, which has " + std::to_string(num_errors_));
    list_.push_back(one);
  }
  shot_ = shot;
  had_shot_ = true;
  return true;
}

expected<> flags_text::finish() const {
  if (next_ != part::shots)
    return reason(std::string("the file has no line ") +
                  (next_ == part::version ? "\"" + std::string(kVersion) + "\"" : "model") + " before its end");
  return {};
}

void flags_reader::fail(const std::string &why) const {
  const std::uint64_t line = std::max<std::uint64_t>(line_number_, 1); // of an empty file the first one is missing
  throw shot_file_error(input_.name() + ": line " + std::to_string(line) + ": " + why);
}

bool flags_reader::read_line() {
  line_.clear();
  bool any = false;
  for (;;) {
    if (at_ == filled_) {
      const ssize_t got = input_.read(buffer_);
      if (got < 0)
        input_.fail();
      at_ = 0;
      filled_ = static_cast<std::size_t>(got);
      if (got == 0)
        break;
    }
    any = true;
    const std::string_view part(buffer_.data() + at_, filled_ - at_);
    const std::size_t end = part.find('\n');
    line_ += part.substr(0, end);
    at_ += end == std::string_view::npos ? part.size() : end + 1;
    if (line_.size() > flags_text::kLongestLine) {
      ++line_number_;
      fail("the line has more than " + std::to_string(flags_text::kLongestLine) + " bytes");
    }
    if (end != std::string_view::npos)
      break;
  }
  line_number_ += any ? 1 : 0;
  return any;
}

bool flags_reader::read_list() {
  while (!is_read_) {
    if (!read_line()) {
      is_read_ = true;
      if (input_.stopped())
        return false;
      if (const expected<> result = text_.finish(); result.failed())
        fail(result.text());
      return false;
    }
    const expected<bool> is_shot = text_.take(line_);
    if (is_shot.failed())
      fail(is_shot.text());
    if (*is_shot)
      return true;
  }
  return false;
}

shot_probabilities flags_reader::next() {
  if (!has_list_ && !is_read_)
    has_list_ = read_list();
  const std::uint64_t shot = shot_++;
  if (!has_list_ || text_.shot() != shot)
    return {};
  has_list_ = false;
  return text_.list();
}

void flags_reader::finish(std::uint64_t shots) {
  if (!has_list_)
    has_list_ = read_list();
  if (has_list_)
    fail("a list for shot " + std::to_string(text_.shot()) + ", but there are " + std::to_string(shots) +
         " shots, and the first is shot 0");
}

} // namespace cudaq::qec::realtime
