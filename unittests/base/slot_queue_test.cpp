// SPDX-License-Identifier: Apache-2.0
#include "lib/base/slot_queue.h"
#include "unittests/support/eventually.h"
#include "unittests/support/held_page.h"

#include <gtest/gtest.h>

#include <thread>

namespace cudaq::realtime::test {
namespace {

using detail::slot_queue;

/// Two slots. Thread A is held in its pop, as if it had lost its core. Meanwhile the slot of another thread comes again
/// and again, as from a producer that skips a slot.
TEST(SlotQueue, APopThatIsHeldKeepsNoPlaceFromAPush) {
  slot_queue queue(2);
  queue.push(0);
  queue.push(1);
  held_page page(PROT_READ);
  auto &got = *static_cast<std::uint32_t *>(page.data());
  bool popped = false;
  std::thread a([&] { popped = queue.pop(got); });
  EXPECT_TRUE(eventually([] { return held_page::has_waiting_thread(); }));
  std::uint32_t slot = 9;
  std::uint32_t in_turn[2] = {};
  for (std::uint32_t n = 0; n < 2; ++n)
    if (queue.pop(slot))
      ++in_turn[slot];
  EXPECT_EQ(in_turn[0] + in_turn[1], 2u);
  for (int lap = 0; lap < 5; ++lap) {
    queue.push(1);
    EXPECT_TRUE(queue.pop(slot)) << "lap " << lap;
    EXPECT_EQ(slot, 1u);
  }
  queue.push(0);
  page.release();
  a.join();
  EXPECT_TRUE(popped);
  EXPECT_EQ(got, 0u);
  EXPECT_FALSE(queue.pop(slot));
  EXPECT_TRUE(queue.empty());
}

} // namespace
} // namespace cudaq::realtime::test
