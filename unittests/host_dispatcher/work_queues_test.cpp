// SPDX-License-Identifier: Apache-2.0
// White box: the queues between the thread that reads the ring and the threads that run handlers.
#include "lib/host_dispatcher/work_queues.h"
#include "unittests/host_dispatcher/traffic.h"

namespace cudaq::realtime::test {
namespace {

using detail::job_table;
using detail::poppers;
using detail::work_queues;

/// One thread pushes and several threads pop. At most `slots` items are in the queues at the same time.
void push_and_pop(poppers who, std::uint32_t queues, std::uint32_t slots, int num_poppers) {
  const bool exclusive = who != poppers::any;
  job_table jobs(slots, 1);
  work_queues work;
  work.reset(queues, jobs, who);
  const std::uint32_t total = load_size(slots == 1 ? 20000 : 200000); // one slot: each push waits for a pop
  std::vector<std::atomic<std::uint32_t>> launch_number(slots), inside(queues), last(queues);
  std::vector<std::atomic<std::uint8_t>> held(slots);
  std::atomic<std::uint32_t> popped{0}, disorder{0}, crowd{0}, foreign{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < num_poppers; ++t)
    threads.emplace_back([&, t] {
      work_queues::item item;
      bool has_item = false;
      const auto item_or_end = [&] {
        has_item = work.pop(static_cast<std::uint32_t>(t) % queues, item);
        return has_item || popped.load() >= total;
      };
      while (eventually(item_or_end) && has_item) {
        crowd += exclusive && inside[item.queue].fetch_add(1) != 0;
        const std::uint32_t number = launch_number[item.slot].load();
        foreign += number % queues != item.queue;
        disorder += exclusive && last[item.queue].exchange(number) > number;
        inside[item.queue].fetch_sub(exclusive);
        foreign += held[item.slot].exchange(0) != 1;
        ++popped;
        work.done(item);
      }
    });
  std::uint32_t slot = 0;
  for (std::uint32_t n = 0; n < total; ++n, slot = (slot + 1) % slots) {
    ASSERT_TRUE(eventually([&] { return held[slot].load() == 0; }));
    held[slot].store(1);
    launch_number[slot].store(n);
    work.push(n % queues, slot);
  }
  for (std::thread &t : threads)
    t.join();
  EXPECT_EQ(popped.load(), total);
  EXPECT_EQ(disorder.load(), 0u);
  EXPECT_EQ(crowd.load(), 0u);
  EXPECT_EQ(foreign.load(), 0u) << "popped twice, or from another queue";
  EXPECT_TRUE(work.empty());
}

// Known failure 52.
TEST(WorkQueues, HandEachItemToOneThread) { push_and_pop(poppers::any, 1, 16, 3); }
TEST(WorkQueues, HandEachItemToOneThreadWithOneSlot) { push_and_pop(poppers::any, 1, 1, 3); }
TEST(WorkQueues, KeepTheOrderOfEachQueueAndOneThreadInIt) { push_and_pop(poppers::one_per_queue, 5, 7, 3); }
TEST(WorkQueues, KeepTheOrderWithOneSlot) { push_and_pop(poppers::one_per_queue, 3, 1, 2); }
TEST(WorkQueues, KeepTheOrderForOneThread) { push_and_pop(poppers::one, 1, 3, 1); }

} // namespace
} // namespace cudaq::realtime::test
