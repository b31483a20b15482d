// SPDX-License-Identifier: Apache-2.0
#include "tools/command_line/suggestions.h"

#include <algorithm>
#include <utility>

namespace cudaq::realtime::tools {
namespace {

constexpr std::size_t kMostWords = 3;
constexpr std::size_t kLettersPerEdit = 3;
constexpr std::size_t kShortestBeginning = 3; ///< letters after the dashes; a shorter beginning fits too many words

std::string without_dashes(std::string_view word) {
  std::string text(word.substr(std::min(word.find_first_not_of('-'), word.size())));
  std::ranges::replace(text, '_', '-');
  return text;
}

} // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last, last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j)
    row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before_last = std::exchange(last, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
  }
  return row[b.size()];
}

std::vector<std::string> similar_words(std::string_view word, const std::vector<std::string> &known) {
  const std::string typed = without_dashes(word);
  std::vector<std::pair<std::size_t, std::string>> near;
  for (const std::string &name : known) {
    const std::string other = without_dashes(name);
    const std::size_t edits = edit_distance(typed, other);
    const bool begins = typed.size() >= kShortestBeginning && other.starts_with(typed);
    if (begins || edits <= std::max<std::size_t>(1, std::max(typed.size(), other.size()) / kLettersPerEdit))
      near.emplace_back(begins ? 1 : edits, name);
  }
  std::ranges::stable_sort(near, {}, &std::pair<std::size_t, std::string>::first);
  std::vector<std::string> words;
  for (const auto &[edits, name] : near)
    if (words.size() < kMostWords && edits <= near.front().first + 1)
      words.push_back(name);
  return words;
}

std::string did_you_mean(const std::vector<std::string> &words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i)
    text += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + words[i];
  return text.empty() ? "" : " Did you mean " + text + "?";
}

} // namespace cudaq::realtime::tools
