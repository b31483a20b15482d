// SPDX-License-Identifier: Apache-2.0
// Queues of accepted requests, from the thread that reads the ring to the threads that run handlers. A queue has room
// for all slots, so a push never fails. No lock, and no allocation after reset.
#pragma once

#include "cudaq/realtime/detail/base/flag_word.h"

#include <memory>
#include <vector>

namespace cudaq::realtime::detail {

/// FIFO of slot indices: one pushing thread at a time, any number of popping threads.
class slot_queue {
public:
  explicit slot_queue(std::uint32_t num_slots) {
    std::uint64_t size = 1;
    while (size < num_slots)
      size *= 2;
    mask_ = size - 1;
    slots_ = std::make_unique<shared_word<std::uint32_t>[]>(size);
  }

  void push(std::uint32_t slot) {
    const std::uint64_t at = tail_.peek();
    slots_[at & mask_].set(slot);
    tail_.store(at + 1);
  }

  bool empty() const { return head_.load() == tail_.load(); }

  bool pop(std::uint32_t &slot) {
    std::uint64_t at = head_.load();
    while (at != tail_.load()) {
      slot = slots_[at & mask_].peek(); // valid only if the claim succeeds
      if (head_.claim(at, at + 1))
        return true;
      at = head_.load();
    }
    return false;
  }

private:
  std::uint64_t mask_ = 0;
  std::unique_ptr<shared_word<std::uint32_t>[]> slots_;
  alignas(128) shared_word<std::uint64_t> head_;
  alignas(128) shared_word<std::uint64_t> tail_;
};

/// The queues of one dispatcher. exclusive (FIFO with a pool): one queue per function, and at most one thread serves a
/// queue at a time; requests of one function run in order, one after the other. Otherwise: one queue without this
/// limit.
class work_queues {
public:
  struct item {
    std::uint32_t slot = 0;
    std::uint32_t queue = 0;
  };

  void reset(std::uint32_t num_queues, std::uint32_t num_slots, bool exclusive) {
    exclusive_ = exclusive;
    lines_.clear();
    for (std::uint32_t q = 0; q < num_queues; ++q)
      lines_.push_back(std::make_unique<line>(num_slots));
  }

  std::uint32_t size() const { return static_cast<std::uint32_t>(lines_.size()); }
  void push(std::uint32_t queue, std::uint32_t slot) { lines_[queue]->slots.push(slot); }

  /// Takes the next request of any queue, beginning with queue `first`. False: no queue has a request that may be
  /// served now. After true, the caller must call done(item) when the request is served.
  bool pop(std::uint32_t first, item &out) {
    for (std::uint32_t n = 0, q = first; n < size(); ++n, q = q + 1 == size() ? 0 : q + 1) {
      line &l = *lines_[q];
      if (l.slots.empty() || (exclusive_ && !l.serving.claim(0, 1)))
        continue;
      out.queue = q;
      if (l.slots.pop(out.slot))
        return true;
      done(out);
    }
    return false;
  }

  void done(const item &it) {
    if (exclusive_)
      lines_[it.queue]->serving.store(0);
  }

  bool empty() const {
    for (const auto &l : lines_)
      if (!l->slots.empty())
        return false;
    return true;
  }

private:
  struct line {
    explicit line(std::uint32_t num_slots) : slots(num_slots) {}
    slot_queue slots;
    alignas(128) shared_word<std::uint32_t> serving; ///< 1 while a thread serves this queue
  };
  std::vector<std::unique_ptr<line>> lines_;
  bool exclusive_ = false;
};

} // namespace cudaq::realtime::detail
