// SPDX-License-Identifier: Apache-2.0
// The words that a misspelt word may mean.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace cudaq::realtime::tools {

/// Number of letters to add, remove, replace or exchange with their neighbour (each letter once) to make `b` of `a`:
/// the optimal string alignment distance.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The words of `known` that are nearest to `word`, if they are near: at most one edit for each three letters, or
/// `word` is their beginning. A dash equals an underscore. Best first, at most three.
std::vector<std::string> similar_words(std::string_view word, const std::vector<std::string> &known);

/// " Did you mean --json or --hgrm?" with a blank before it; "" without words.
std::string did_you_mean(const std::vector<std::string> &words);

} // namespace cudaq::realtime::tools
