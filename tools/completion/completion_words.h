// SPDX-License-Identifier: Apache-2.0
// What the three writers of completion scripts have in common.
#pragma once

#include "tools/command_line/command_model.h"

#include <string>
#include <string_view>
#include <vector>

namespace cudaq::realtime::tools {

/// `text` with `replacement` instead of each character `c`.
inline std::string replaced(std::string_view text, char c, std::string_view replacement) {
  std::string out;
  for (const char letter : text)
    letter == c ? out.append(replacement) : out.append(1, letter);
  return out;
}

/// In single quotes, as sh, bash and zsh read it.
inline std::string in_quotes(std::string_view text) { return "'" + replaced(text, '\'', "'\\''") + "'"; }

inline std::string joined_words(const std::vector<std::string> &words) {
  std::string text;
  for (const std::string &word : words)
    text += (text.empty() ? "" : " ") + word;
  return text;
}

/// The argument of `help`: words of a subcommand.
inline bool names_a_command(const option_model &o) { return o.is_argument && o.value == "COMMAND"; }

} // namespace cudaq::realtime::tools
