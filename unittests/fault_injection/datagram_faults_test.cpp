// SPDX-License-Identifier: Apache-2.0
// A provider over datagrams while all slots are in use: each allocation of its polls fails once.
#include "lib/transport/datagram/datagram_dataplane.h"
#include "unittests/support/fault_points.h"
#include "unittests/transport/datagram/datagram_shapes.h"

namespace cudaq::realtime::test {
namespace {

/// A request of the first peer is in the only slot. The other two peers send one each.
struct full_plane : exchange_on_a_ring {
  full_plane() : exchange_on_a_ring(small_slots(1)), plane(exchange), first(port), second(port), third(port) {
    first.send(request_bytes(1, 1, {1}));
    EXPECT_TRUE(eventually([this] { return ready(); }));
  }

  bool ready() { return plane.poll(slot) == CUDAQ_RX_READY; }
  /// Polls after the datagram has arrived, with the fault if `fault` is not 0. Returns the number of faults.
  std::uint64_t take(udp_peer &from, std::uint32_t id, std::uint64_t fault) {
    from.send(request_bytes(1, id, {1}));
    exchange.socket().wait(true, kDeadline);
    bool was_ready = false;
    if (fault != 0)
      faults::arm(fault, 1, "operator new");
    for (int polls = 0; polls < 3; ++polls)
      was_ready = ready() || was_ready;
    const std::uint64_t fired = fault != 0 ? faults::disarm() : 0;
    EXPECT_FALSE(was_ready) << "no slot is free";
    return fired;
  }
  std::uint64_t dropped() { return exchange.counters().dropped_kernel.value(); }

  detail::datagram_dataplane plane;
  udp_peer first, second, third;
  std::uint32_t slot = 0;
};

TEST(DatagramFaults, ARequestThatFindsNoMemoryToWaitIsDroppedAndCounted) {
  std::uint64_t all = 0;
  for (std::uint64_t n = 1, fired = 1; fired != 0; ++n) {
    ASSERT_LT(n, 100u);
    full_plane now;
    now.take(now.second, 2, 0);
    fired = now.take(now.third, 3, n);
    all += fired;
    EXPECT_EQ(now.dropped(), 2 * fired) << "both that would wait, at allocation " << n;
    now.write_answer(now.slot, {9});
    ASSERT_EQ(now.plane.publish(now.slot).text(), "");
    EXPECT_EQ(now.ready(), fired == 0);
    if (fired != 0) { // later requests are served
      now.second.send(request_bytes(1, 4, {1}));
      EXPECT_TRUE(eventually([&now] { return now.ready(); }));
    }
  }
  EXPECT_GE(all, 3u);
}

TEST(DatagramFaults, TheNextSlotIsGivenWithoutMemory) {
  std::uint64_t all = 0;
  for (std::uint64_t n = 1, fired = 1; fired != 0; ++n) {
    ASSERT_LT(n, 100u);
    full_plane now;
    now.take(now.second, 2, 0);
    now.take(now.third, 3, 0);
    now.write_answer(now.slot, {9});
    faults::arm(n, 1, "operator new");
    const bool published = now.plane.publish(now.slot).ok(), ready = now.ready();
    fired = faults::disarm();
    all += fired;
    EXPECT_TRUE(published && ready) << n;
    EXPECT_EQ(now.dropped(), fired) << "the third one, if there is no memory for the count of the second one's slots";
    EXPECT_EQ(now.exchange.has_waiting_requests(), fired == 0);
  }
  EXPECT_GE(all, 1u);
}

} // namespace
} // namespace cudaq::realtime::test
