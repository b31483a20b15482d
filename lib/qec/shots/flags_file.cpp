// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/shots/flags_file.h"

#include "lib/qec/shots/shot_stream.h"

#include <algorithm>
#include <utility>

namespace cudaq::qec::realtime {

expected<bool> flags_text::read_line(std::string_view line) {
  const expected<std::string_view> words = head_.read_line(line);
  if (words.failed())
    return words.reason();
  if (words->empty())
    return false;
  std::string_view rest = *words;
  const std::string_view word = next_word(rest);
  std::uint64_t shot = 0;
  const std::string_view number = next_word(rest);
  if (word != "shot" || !read_number(number, shot))
    return reason("the line begins with " + in_quotes(std::string(word) + " " + std::string(number)) +
                  ", accepted: shot, its number, and pairs of an error and a probability");
  if (had_shot_ && shot <= shot_)
    return reason("shot " + std::to_string(shot) + " comes after shot " + std::to_string(shot_) + "; shots ascend");
  list_.clear();
  while (rest.find_first_not_of(" \t") != std::string_view::npos) {
    const expected<error_probability> one = read_pair(rest);
    if (one.failed())
      return one.reason();
    if (list_.size() == num_errors_)
      return reason("the list has more errors than the model, which has " + std::to_string(num_errors_));
    list_.push_back(*one);
  }
  shot_ = shot;
  had_shot_ = true;
  return true;
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
    const expected<bool> is_shot = text_.read_line(line_);
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
