// SPDX-License-Identifier: Apache-2.0
// The words that a misspelt word may mean: for the texts that refuse options, names and fields.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cudaq::realtime::detail {

/// Number of letters to add, remove, replace or exchange with their neighbour (each letter once) to make `b` of `a`:
/// the optimal string alignment distance.
inline std::size_t edit_distance(std::string_view a, std::string_view b) {
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

/// The words of `known` that are nearest to `word`, if they are near: at most one edit for each three letters, or
/// `word` is their beginning. Dashes at the begin do not count, and a dash equals an underscore. Best first, at most
/// three.
inline std::vector<std::string> similar_words(std::string_view word, const std::vector<std::string> &known) {
  constexpr std::size_t kMaxWords = 3;
  constexpr std::size_t kLettersPerEdit = 3;
  constexpr std::size_t kShortestBeginning = 3; // letters; a shorter beginning fits too many words
  const auto without_dashes = [](std::string_view given) {
    std::string text(given.substr(std::min(given.find_first_not_of('-'), given.size())));
    std::replace(text.begin(), text.end(), '_', '-');
    return text;
  };
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
    if (words.size() < kMaxWords && edits <= near.front().first + 1)
      words.push_back(name);
  return words;
}

/// " Did you mean --json or --hgrm?" with a blank before it; "" without words.
inline std::string did_you_mean(const std::vector<std::string> &words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i)
    text += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + words[i];
  return text.empty() ? "" : " Did you mean " + text + "?";
}

} // namespace cudaq::realtime::detail
