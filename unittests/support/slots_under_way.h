// SPDX-License-Identifier: Apache-2.0
// The slots that a client has filled and not collected.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace cudaq::realtime::test {

/// Slots whose requests are not answered. Answers overtake each other, so collect() checks every slot. A window that
/// begins at the oldest slot would miss a slot of the next lap.
class slots_under_way {
public:
  std::size_t size() const { return slots_.size(); }
  void add(std::uint32_t slot) { slots_.push_back(slot); }
  /// take(slot) takes the answer if there is one, and returns whether it did. Returns the number of answers taken.
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
