// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/decoding/model_text_file.h"

#include "lib/qec/decoding/whole_file.h"

#include <cstdio>

namespace cudaq::qec::realtime {
namespace {

constexpr std::uint64_t kNoEffect = error_entries::kUnnamed - 1;

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

bool at_end(std::string_view line) noexcept { return line.find_first_not_of(" \t") == std::string_view::npos; }

std::string in_quotes(std::string_view word) {
  constexpr std::size_t kMaxShown = 40;
  std::string text = "\"" + std::string(word.substr(0, kMaxShown)) + (word.size() > kMaxShown ? "..." : "") + "\"";
  for (char &c : text)
    c = c < ' ' || c > '~' ? '?' : c;
  return text;
}

expected<error_probability> read_pair(std::string_view &line) {
  error_probability one{};
  const std::string_view error = next_word(line), probability = next_word(line);
  if (!read_number(error, one.error))
    return reason("the error " + in_quotes(error) + " is not a number of an error");
  if (!read_number(probability, one.probability) || !(one.probability >= 0 && one.probability <= 1))
    return reason("the probability of error " + std::string(error) + " is " + in_quotes(probability) +
                  ", accepted: a number from 0 to 1");
  return one;
}

error_entries::error_entries(const detector_error_model &model) : all_(model.num_errors, kNoEffect) {
  for (const dem_component &c : model.components)
    all_[c.mechanism] = kUnnamed;
}

expected<std::uint64_t *> error_entries::of(std::uint64_t error) {
  const std::string text = "error " + std::to_string(error);
  if (error >= all_.size())
    return reason(text + " is not one of the model, which has " + std::to_string(all_.size()));
  std::uint64_t &entry = all_[static_cast<std::size_t>(error)];
  if (entry == kNoEffect)
    return reason(text + " has the probability 0 in the model, or flips nothing: no decoder has a place for it; " +
                  "give it a small probability, such as 1e-9");
  return &entry;
}

expected<std::string_view> model_text_head::read_line(std::string_view line) {
  if (!line.empty() && line.back() == '\r')
    line.remove_suffix(1);
  std::string_view rest = line;
  const std::string_view word = next_word(rest);
  if (word.empty() || word.front() == '#')
    return std::string_view{};
  if (next_ == part::body)
    return line;
  if (next_ == part::version) {
    if (line != version_)
      return reason("the first line is " + in_quotes(line) + ", accepted: " + std::string(version_));
    next_ = part::model;
    return std::string_view{};
  }
  const std::string_view number = next_word(rest);
  std::uint32_t named = 0;
  if (word != "model" || number.size() != 8 || !read_number(number, named, 16) || !next_word(rest).empty())
    return reason("the line is " + in_quotes(line) +
                  ", accepted: model and the CRC-32 of its file, 8 digits; this model has " + hexadecimal(model_));
  if (named != model_)
    return reason("the file is for the model " + hexadecimal(named) + ", this one has the CRC-32 " +
                  hexadecimal(model_));
  next_ = part::body;
  return std::string_view{};
}

expected<> model_text_head::finish() const {
  if (next_ != part::body)
    return reason(std::string("the file has no line ") +
                  (next_ == part::version ? "\"" + std::string(version_) + "\"" : "model") + " before its end");
  return {};
}

expected<std::string> read_model_text(const std::string &path) {
  constexpr std::size_t kLargest = std::size_t{1} << 30;
  return read_whole_file(path, kLargest);
}

} // namespace cudaq::qec::realtime
