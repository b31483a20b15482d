// SPDX-License-Identifier: Apache-2.0
// A queue of slot numbers, from the thread that reads a ring to the threads that serve its requests. No lock, and no
// allocation after the constructor.
#pragma once

#include "cudaq/realtime/detail/base/shared_word.h"

#include <cstdint>
#include <memory>

namespace cudaq::realtime::detail {

/// FIFO of slots: one pushing thread at a time, any number of popping threads. It has room for all slots, if each is in
/// it once. A word holds a slot and the number of its push, from 1; the thread that moves head from n - 1 to n has the
/// slot of push n. That claim is the last step of a pop: a popping thread that loses its core keeps no place, so a push
/// never fails and never waits.
///
///              head   words (2 slots): number, slot
///   empty      0      0        0
///   push(1)    0      1, 1     0
///   push(0)    0      1, 1     2, 0
///   pop() = 1  1      1, 1     2, 0     the first word is free
///   push(1)    1      3, 1     2, 0
///   pop() = 0  2      3, 1     2, 0
class slot_queue {
public:
  /// num_slots: at most 2^24, as any ring has.
  explicit slot_queue(std::uint32_t num_slots) {
    std::uint64_t size = 1;
    while (size < num_slots)
      size *= 2;
    mask_ = size - 1;
    words_ = std::make_unique<shared_word<std::uint64_t>[]>(size);
  }

  void push(std::uint32_t slot) {
    const std::uint64_t at = tail_.peek();
    words_[at & mask_].store((at + 1) << kSlotBits | slot);
    tail_.store(at + 1);
  }

  /// Only after the last push: else a slot may come during the call.
  bool empty() const { return head_.load() == tail_.load(); }

  /// False: it is empty; `slot` may be written, too.
  bool pop(std::uint32_t &slot) {
    for (std::uint64_t at = head_.load();; at = head_.load()) {
      const std::uint64_t word = words_[at & mask_].load();
      if (word >> kSlotBits != ((at + 1) & kNumberMask)) {
        if (head_.load() == at)
          return false;
        continue; // other threads have popped, and the word has a later push
      }
      slot = static_cast<std::uint32_t>(word & kSlotMask);
      if (head_.claim(at, at + 1))
        return true;
    }
  }

private:
  // 40 bits of the number: a word is written again after at most 2^24 pushes, long before they repeat.
  static constexpr unsigned kSlotBits = 24;
  static constexpr std::uint64_t kSlotMask = (std::uint64_t{1} << kSlotBits) - 1;
  static constexpr std::uint64_t kNumberMask = (std::uint64_t{1} << (64 - kSlotBits)) - 1;

  std::uint64_t mask_ = 0;
  std::unique_ptr<shared_word<std::uint64_t>[]> words_;
  alignas(128) shared_word<std::uint64_t> head_;
  alignas(128)
      shared_word<std::uint64_t> tail_; ///< number of pushes; no pop reads it, so that a pop waits for one line
};

} // namespace cudaq::realtime::detail
