// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace cudaq::qec::realtime {

/// Sets that are joined step by step, each element at first alone (union-find with path halving).
class joined_sets {
public:
  explicit joined_sets(std::size_t size) : parent_(size) { std::iota(parent_.begin(), parent_.end(), std::size_t{0}); }

  void join(std::size_t a, std::size_t b) { parent_[root(a)] = root(b); }

  /// The number of each element's set. Sets are counted in the order of their first elements.
  std::vector<std::uint32_t> numbers() {
    constexpr std::uint32_t kNone = UINT32_MAX;
    std::vector<std::uint32_t> of_root(parent_.size(), kNone), of_element;
    std::uint32_t count = 0;
    for (std::size_t element = 0; element < parent_.size(); ++element) {
      std::uint32_t &number = of_root[root(element)];
      if (number == kNone)
        number = count++;
      of_element.push_back(number);
    }
    return of_element;
  }

private:
  std::size_t root(std::size_t of) {
    while (parent_[of] != of)
      of = parent_[of] = parent_[parent_[of]];
    return of;
  }

  std::vector<std::size_t> parent_;
};

} // namespace cudaq::qec::realtime
