// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/learning/learned_rates.h"

#include "lib/qec/decoding/model_text_file.h"

#include <charconv>
#include <map>
#include <unordered_map>

namespace cudaq::qec::realtime {
namespace {

/// Where the probability of the error in this line stands, without its parentheses. A line has at most one error, after
/// the begin or the end of loops; the parser has accepted it.
std::string_view probability_in(std::string_view line) {
  const auto skip_to = [&line](std::string_view one_of) {
    line.remove_prefix(std::min(line.find_first_of(one_of), line.size()));
  };
  for (;;) {
    line.remove_prefix(std::min(line.find_first_not_of(" \t\r\v\f}"), line.size()));
    const char first = line.empty() ? '#' : line.front();
    if (first != 'e' && first != 'E' && first != 'r' && first != 'R')
      return {};
    skip_to("[({ \t");
    if (line.starts_with('[')) // a tag, which may have any other characters
      skip_to("]");
    if (first == 'e' || first == 'E') {
      skip_to("(");
      line.remove_prefix(line.empty() ? 0 : 1);
      return line.substr(0, line.find(')'));
    }
    skip_to("{");
    line.remove_prefix(line.empty() ? 0 : 1);
  }
}

/// Of a file of groups.
class tied_reader {
public:
  expected<> read_line(std::string_view line) {
    std::string_view rest = line;
    const std::string_view word = next_word(rest), name = next_word(rest);
    if (word != "tie" || name.empty())
      return reason("the line begins with " + in_quotes(word) + ", accepted: tie, a name, and numbers of errors");
    std::vector<std::uint64_t> &group = groups_[std::string(name)];
    for (std::string_view next = next_word(rest); !next.empty(); next = next_word(rest)) {
      std::uint64_t error = 0;
      if (!read_number(next, error))
        return reason(in_quotes(next) + " is not the number of an error");
      if (const auto [known, is_new] = group_of_.emplace(error, name); !is_new)
        return reason("error " + std::to_string(error) + " is in group " + in_quotes(known->second) + " already");
      group.push_back(error);
    }
    return {};
  }
  expected<tied_errors> finish() {
    tied_errors groups;
    for (auto &[name, group] : groups_)
      groups.push_back(std::move(group));
    return groups;
  }

private:
  std::map<std::string, std::vector<std::uint64_t>> groups_;
  std::unordered_map<std::uint64_t, std::string> group_of_;
};

} // namespace

detector_error_model model_with(const detector_error_model &model, const learned_rates &rates) {
  detector_error_model changed = model;
  std::size_t next = 0; // both are in the order of the text
  for (dem_component &component : changed.components) {
    while (next < rates.errors.size() && rates.errors[next].mechanism < component.mechanism)
      ++next;
    if (next < rates.errors.size() && rates.errors[next].mechanism == component.mechanism)
      component.probability = rates.errors[next].rate;
  }
  return changed;
}

std::string text_with(std::string_view text, const learned_rates &rates) {
  std::unordered_map<std::uint64_t, double> of_line;
  for (const learned_rate &error : rates.errors)
    of_line.emplace(error.line, error.rate);
  std::string changed;
  changed.reserve(text.size());
  for (std::uint64_t number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end == std::string_view::npos ? text.size() : end + 1);
    text.remove_prefix(line.size());
    const auto known = of_line.find(number);
    const std::string_view old = known == of_line.end() ? std::string_view() : probability_in(line);
    if (old.data() == nullptr) {
      changed += line;
      continue;
    }
    char digits[32];
    const char *const digits_end = std::to_chars(digits, digits + sizeof digits, known->second).ptr;
    const auto at = static_cast<std::size_t>(old.data() - line.data());
    changed.append(line.substr(0, at))
        .append(std::string_view(digits, digits_end))
        .append(line.substr(at + old.size()));
  }
  return changed;
}

expected<tied_errors> parse_tied(std::string_view text, std::uint32_t model_crc32) {
  tied_reader reader;
  return read_lines(text, {"cudaq-realtime-tied 1", model_crc32}, reader);
}

} // namespace cudaq::qec::realtime
