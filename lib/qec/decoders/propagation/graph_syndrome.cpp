// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/decoders/propagation/graph_syndrome.h"

#include "lib/qec/decoders/propagation/gf2_elimination.h"

#include <algorithm>
#include <bit>

namespace cudaq::qec::realtime {

graph_syndrome::graph_syndrome(const tanner_graph &graph) : graph_(graph), bytes_(graph.num_checks) {
  gf2_elimination elimination(graph.num_checks);
  words_.resize(elimination.words());
  elimination.start(words_);
  for (std::uint32_t column = 0; column < graph.num_columns(); ++column)
    elimination.add(column, graph.checks_of(column));
  rank_ = elimination.rank();
  parity_rows_ = elimination.parity_rows();
  checks_.reserve(graph.num_checks);
}

bool graph_syndrome::set_events(std::span<const std::uint64_t> events) noexcept {
  std::ranges::fill(bytes_, std::uint8_t{0});
  for (const std::uint32_t check : graph_.certain_checks)
    bytes_[check] ^= 1;
  for (const std::uint64_t event : events) {
    const std::uint32_t check = graph_.check_of[event];
    if (check == kNoCheck)
      return false;
    bytes_[check] ^= 1;
  }
  std::ranges::fill(words_, std::uint64_t{0});
  checks_.clear();
  for (std::uint32_t check = 0; check < bytes_.size(); ++check)
    if (bytes_[check] != 0) {
      words_[check / 64] |= std::uint64_t{1} << (check % 64);
      checks_.push_back(check);
    }
  for (std::size_t row = 0; row < parity_rows_.size(); row += words_.size()) {
    std::uint64_t parity = 0;
    for (std::size_t k = 0; k < words_.size(); ++k)
      parity ^= parity_rows_[row + k] & words_[k];
    if (std::popcount(parity) % 2 != 0)
      return false;
  }
  return true;
}

} // namespace cudaq::qec::realtime
