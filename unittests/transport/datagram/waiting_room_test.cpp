// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/datagram/waiting_room.h"
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

struct WaitingRoom : testing::Test {
  bool add(std::uint16_t from, int number) {
    const detail::udp_address address = sender(from);
    const auto byte = static_cast<std::uint8_t>(number);
    return room.add({&address, std::span(&byte, 1), false});
  }
  /// The numbers of the next frames, each of which then holds a slot.
  bytes next(std::size_t count) {
    bytes numbers;
    while (numbers.size() < count && !room.empty()) {
      const detail::waiting_room::frame frame = room.next();
      numbers.push_back(frame.bytes.at(0));
      if (!room.empty())
        room.hold(frame.from);
    }
    return numbers;
  }
  WaitingRoom() { room.set_limit(6); }
  detail::waiting_room room;
};

TEST_F(WaitingRoom, GivesTheNextSlotToTheSenderThatHoldsTheFewest) {
  room.hold(sender(1));
  room.hold(sender(1));
  for (const int number : {3, 4})
    EXPECT_TRUE(add(1, number));
  EXPECT_TRUE(add(2, 7));
  room.release(sender(1));
  EXPECT_EQ(next(1), bytes({7}));
  room.release(sender(1));
  EXPECT_EQ(next(1), bytes({3}));
  room.release(sender(2));
  EXPECT_EQ(next(9), bytes({4}));
  EXPECT_TRUE(room.empty());
}

TEST_F(WaitingRoom, TakesTurnsBetweenEquals) {
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

TEST_F(WaitingRoom, DropsTheNewestFrameOfTheLongestQueueWhenItIsFull) {
  for (int number = 10; number < 16; ++number)
    EXPECT_TRUE(add(1, number));
  EXPECT_FALSE(add(1, 16)) << "its own";
  EXPECT_FALSE(add(2, 20)) << "15 is dropped for it";
  const bytes order = next(9);
  EXPECT_EQ(std::set(order.begin(), order.end()), std::set<std::uint8_t>({10, 11, 12, 13, 14, 20}));
  EXPECT_TRUE(std::find(order.begin(), order.begin() + 2, 20) != order.begin() + 2) << "not after all others";
}

TEST_F(WaitingRoom, ForgetsItsCountsWhenNoRequestWaits) {
  room.hold(sender(1));
  EXPECT_TRUE(add(1, 1));
  EXPECT_EQ(next(1), bytes({1}));
  room.release(sender(1)); // not counted
  EXPECT_TRUE(add(1, 2));
  EXPECT_TRUE(add(2, 3));
  EXPECT_EQ(next(9).size(), 2U);
}

} // namespace
} // namespace cudaq::realtime::test
