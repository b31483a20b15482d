// SPDX-License-Identifier: Apache-2.0
// What a client remembers of requests that it has sent.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace cudaq::realtime::test {

/// Slots whose requests are not answered. Answers overtake each other, so every slot is looked at, wherever it is in
/// the ring: a window that begins at the oldest one would miss a slot of the next lap.
class slots_under_way {
public:
  std::size_t size() const { return slots_.size(); }
  void add(std::uint32_t slot) { slots_.push_back(slot); }
  /// take(slot): takes the answer and returns true, if there is one. Returns how many it has taken.
  template <class Take>
  std::uint32_t collect(Take &&take) {
    const auto taken = std::remove_if(slots_.begin(), slots_.end(), take);
    const auto count = static_cast<std::uint32_t>(slots_.end() - taken);
    slots_.erase(taken, slots_.end());
    return count;
  }

private:
  std::vector<std::uint32_t> slots_;
};

} // namespace cudaq::realtime::test
