// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/datagram/fair_queue.h"
#include "unittests/transport/datagram/udp_peer.h"

#include <algorithm>
#include <set>

namespace cudaq::realtime::test {
namespace {

detail::udp_address sender(std::uint16_t port) {
  detail::udp_address address;
  EXPECT_EQ(detail::udp_address_of("sender", "127.0.0.1", port, address).text(), "");
  return address;
}

struct FairQueue : testing::Test {
  bool add(std::uint16_t from, int number) {
    const detail::udp_address address = sender(from);
    const auto byte = static_cast<std::uint8_t>(number);
    return queue.add({&address, std::span(&byte, 1), false});
  }
  /// The numbers of the next frames, each of which then holds a slot.
  bytes next(std::size_t count) {
    bytes numbers;
    while (numbers.size() < count && !queue.empty()) {
      const detail::fair_queue::frame frame = queue.next();
      numbers.push_back(frame.bytes.at(0));
      if (!queue.empty())
        queue.hold(frame.from);
    }
    return numbers;
  }
  FairQueue() { queue.set_limit(6); }
  detail::fair_queue queue;
};

TEST_F(FairQueue, GivesTheNextSlotToTheSenderThatHoldsTheFewest) {
  queue.hold(sender(1));
  queue.hold(sender(1));
  for (const int number : {3, 4})
    EXPECT_TRUE(add(1, number));
  EXPECT_TRUE(add(2, 7));
  queue.release(sender(1));
  EXPECT_EQ(next(1), bytes({7}));
  queue.release(sender(1));
  EXPECT_EQ(next(1), bytes({3}));
  queue.release(sender(2));
  EXPECT_EQ(next(9), bytes({4}));
  EXPECT_TRUE(queue.empty());
}

TEST_F(FairQueue, TakesTurnsBetweenEquals) {
  for (const int number : {10, 11, 12})
    EXPECT_TRUE(add(1, number));
  for (const int number : {20, 21})
    EXPECT_TRUE(add(2, number));
  EXPECT_TRUE(add(3, 30));
  const bytes order = next(9);
  ASSERT_EQ(order.size(), 6U);
  EXPECT_EQ(std::set(order.begin(), order.begin() + 3), std::set<std::uint8_t>({10, 20, 30}));
  EXPECT_EQ(std::set(order.begin() + 3, order.begin() + 5), std::set<std::uint8_t>({11, 21}));
  EXPECT_EQ(order[5], 12);
}

TEST_F(FairQueue, DropsTheNewestFrameOfTheLongestQueueWhenItIsFull) {
  for (int number = 10; number < 16; ++number)
    EXPECT_TRUE(add(1, number));
  EXPECT_FALSE(add(1, 16)) << "its own";
  EXPECT_FALSE(add(2, 20)) << "15 is dropped for it";
  const bytes order = next(9);
  EXPECT_EQ(std::set(order.begin(), order.end()), std::set<std::uint8_t>({10, 11, 12, 13, 14, 20}));
  EXPECT_TRUE(std::find(order.begin(), order.begin() + 2, 20) != order.begin() + 2) << "not after all others";
}

TEST_F(FairQueue, ForgetsItsCountsWhenNoRequestWaits) {
  queue.hold(sender(1));
  EXPECT_TRUE(add(1, 1));
  EXPECT_EQ(next(1), bytes({1}));
  queue.release(sender(1)); // not counted
  EXPECT_TRUE(add(1, 2));
  EXPECT_TRUE(add(2, 3));
  EXPECT_EQ(next(9).size(), 2U);
}

} // namespace
} // namespace cudaq::realtime::test
