// SPDX-License-Identifier: Apache-2.0
// A bounded queue for any number of producing and consuming threads, without locks (D. Vyukov's algorithm). Each cell
// has a sequence number. The thread that draws position p may write the cell when its number is p, and read it when
// its number is p + 1.
//
//   capacity 2    number of cell 0, cell 1
//   empty              0, 1
//   push a             1, 1     head 1
//   push b             1, 2     head 2; a third push finds 1 where it needs 2: full
//   pop a              2, 2     tail 1
//   push c             3, 2     head 3
//
// With capacity 1, full and empty look the same: use it only if no push can come before the last value was popped.
#pragma once

#include "cudaq/realtime/detail/base/shared_word.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cudaq::qec::realtime::detail {

using cudaq::realtime::detail::shared_word;

template <class T>
class bounded_queue {
public:
  explicit bounded_queue(std::size_t capacity) : cells_(capacity) {
    for (std::size_t i = 0; i < capacity; ++i)
      cells_[i].sequence.set(i);
  }

  /// False: full.
  bool push(const T &value) {
    for (std::uint64_t at = head_.load();; at = head_.load()) {
      cell &c = cells_[at % cells_.size()];
      const std::uint64_t sequence = c.sequence.load();
      if (sequence < at)
        return false;
      if (sequence > at || !head_.claim(at, at + 1))
        continue; // another producer was faster
      c.value = value;
      c.sequence.store(at + 1);
      return true;
    }
  }

  /// False: empty.
  bool pop(T &value) {
    for (std::uint64_t at = tail_.load();; at = tail_.load()) {
      cell &c = cells_[at % cells_.size()];
      const std::uint64_t sequence = c.sequence.load();
      if (sequence < at + 1)
        return false;
      if (sequence > at + 1 || !tail_.claim(at, at + 1))
        continue;
      value = c.value;
      c.sequence.store(at + cells_.size());
      return true;
    }
  }

  /// The size at some recent moment.
  std::uint64_t size() const {
    const std::uint64_t tail = tail_.load(), head = head_.load();
    return head > tail ? head - tail : 0;
  }

private:
  struct alignas(64) cell {
    shared_word<std::uint64_t> sequence;
    T value{};
  };
  std::vector<cell> cells_;
  alignas(64) shared_word<std::uint64_t> head_;
  alignas(64) shared_word<std::uint64_t> tail_;
};

} // namespace cudaq::qec::realtime::detail
