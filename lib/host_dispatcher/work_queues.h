// SPDX-License-Identifier: Apache-2.0
// Queues of accepted requests, from the thread that reads the ring to the threads that run handlers or launch graphs. A
// push never fails. No lock, and no allocation after reset.
//
//   class        popped by                 memory
//   slot_list    one thread at a time      two words; the jobs in it are linked through their records
//   slot_queue   any number of threads     a word for each slot of the ring (lib/base/slot_queue.h)
#pragma once

#include "lib/base/slot_queue.h"
#include "lib/shared_ring/job_table.h"

#include <memory>
#include <vector>

namespace cudaq::realtime::detail {

/// FIFO of slots, linked through the job records: `next` of a record names the slot after it. One pushing and one
/// popping thread at a time. A slot is in one list at most. Only one thread at a time may push to any list of a table:
/// the thread that reads the ring. So no record that a push has found at the end of a list can come into another list
/// during this push.
///
///                             last_    first_   next of 3   next of 5
///   empty                     none
///   push(3)                   3        3
///   push(5)                   5        3        5
///   pop() = 3                 5        5        5
///   pop() = 5                 none     5
class slot_list {
public:
  void push(job_table &jobs, std::uint32_t slot) {
    const std::uint32_t last = last_.load();
    if (last != kNone) {
      jobs[last].next.set(slot);
      if (last_.claim(last, slot))
        return;
    }
    first_.set(slot); // the list is empty: nothing was in it, or `last` was popped in the meantime
    last_.store(slot);
  }

  bool empty() const { return last_.load() == kNone; }

  bool pop(const job_table &jobs, std::uint32_t &slot) {
    const std::uint32_t last = last_.load();
    if (last == kNone)
      return false;
    slot = first_.peek();
    if (slot != last || !last_.claim(slot, kNone)) // if the claim fails, another slot was pushed in the meantime
      first_.set(jobs[slot].next.peek());
    return true;
  }

private:
  static constexpr std::uint32_t kNone = 0xFFFFFFFFu;
  alignas(128) shared_word<std::uint32_t> last_{kNone}; ///< kNone: the list is empty
  shared_word<std::uint32_t> first_;                    ///< if the list is not empty
};

/// The threads that pop from the queues of a dispatcher.
enum class poppers {
  one,           ///< no pool: one queue, one thread
  one_per_queue, ///< pool, FIFO: at most one thread serves a queue at a time, so its requests run one after the other
  any,           ///< pool, ANY: one queue, all threads
};

/// The queues of one dispatcher. With FIFO and a pool: one queue per function. Otherwise one queue.
class work_queues {
public:
  struct item {
    std::uint32_t slot = 0;
    std::uint32_t queue = 0;
  };

  /// The queues are empty afterwards. num_queues is 1, except for one_per_queue. `jobs` must outlive their use.
  void reset(std::uint32_t num_queues, job_table &jobs, poppers who) {
    jobs_ = &jobs;
    exclusive_ = who == poppers::one_per_queue;
    for_all_.reset();
    lines_.clear();
    if (who == poppers::any)
      for_all_ = std::make_unique<slot_queue>(jobs.num_slots);
    else
      for (std::uint32_t q = 0; q < num_queues; ++q)
        lines_.push_back(std::make_unique<line>());
  }

  std::uint32_t size() const { return for_all_ ? 1 : static_cast<std::uint32_t>(lines_.size()); }
  void push(std::uint32_t queue, std::uint32_t slot) {
    if (for_all_)
      for_all_->push(slot);
    else
      lines_[queue]->slots.push(*jobs_, slot);
  }

  /// Takes the next request of any queue, beginning with queue `first`. False: no queue has a request that may be
  /// served now. After true, the caller must call done(item) when the request is served.
  bool pop(std::uint32_t first, item &out) {
    if (for_all_) {
      out.queue = 0;
      return for_all_->pop(out.slot);
    }
    for (std::uint32_t n = 0, q = first; n < size(); ++n, q = q + 1 == size() ? 0 : q + 1) {
      line &l = *lines_[q];
      if (l.slots.empty() || (exclusive_ && !l.serving.claim(0, 1)))
        continue;
      out.queue = q;
      if (l.slots.pop(*jobs_, out.slot))
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
    if (for_all_)
      return for_all_->empty();
    for (const auto &l : lines_)
      if (!l->slots.empty())
        return false;
    return true;
  }

private:
  struct line {
    slot_list slots;
    alignas(128) shared_word<std::uint32_t> serving; ///< 1 while a thread serves this queue
  };
  job_table *jobs_ = nullptr;
  std::vector<std::unique_ptr<line>> lines_;
  std::unique_ptr<slot_queue> for_all_; ///< if any thread pops
  bool exclusive_ = false;
};

} // namespace cudaq::realtime::detail
