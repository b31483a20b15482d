// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/datagram/datagram_dataplane.h"
#include "unittests/transport/datagram/datagram_shapes.h"

#include <atomic>

namespace cudaq::realtime::test {
namespace {

struct rig : exchange_on_a_ring {
  explicit rig(const detail::datagram_options &options = small_slots())
      : exchange_on_a_ring(options), plane(exchange) {}

  /// Polls until there is a request.
  std::uint32_t next() {
    std::uint32_t slot = UINT32_MAX;
    EXPECT_TRUE(eventually([&] { return plane.poll(slot) == CUDAQ_RX_READY; }));
    return slot;
  }
  void answer(std::uint32_t slot, const bytes &result) {
    write_answer(slot, result);
    EXPECT_EQ(plane.publish(slot).text(), "");
  }

  detail::datagram_dataplane plane;
};

TEST(UdpDataplane, DisconnectsWhileTheLoopPolls) {
  rig r(small_slots(8));
  udp_peer peer(r.port);
  std::atomic<bool> ends{false};
  std::atomic<int> changes{0}; // odd: disconnected
  std::atomic<int> served{0}, late{0};
  std::thread loop([&] {
    while (!ends) {
      const int before = changes;
      std::uint32_t slot = 0;
      if (r.plane.poll(slot) != CUDAQ_RX_READY)
        continue;
      late += before % 2 == 1 && changes == before;
      r.answer(slot, {7});
      ++served;
    }
  });
  for (std::uint32_t id = 0; id < 8; ++id)
    peer.send(request_bytes(1, id, {1}));
  EXPECT_TRUE(eventually([&] { return served > 0; }));
  for (int n = 0; n < 20; ++n) {
    EXPECT_EQ(r.plane.disconnect().text(), "");
    ++changes;
    peer.send(request_bytes(1, 100, {1}));
    std::this_thread::yield();
    ++changes;
    r.plane.launch();
  }
  EXPECT_TRUE(eventually([&] { return served == 28; }));
  ends = true;
  loop.join();
  EXPECT_EQ(late.load(), 0);
}

TEST(UdpDataplane, FillsTheRestOfASlotWithZeros) {
  rig r;
  udp_peer peer(r.port);
  for (std::uint32_t slot = 0; slot < 4; ++slot)
    std::memset(r.memory.rx_slot(slot), 0xAA, 64);
  peer.send(request_bytes(1, 1, {1, 2, 3}));
  EXPECT_EQ(r.request(r.next()), request_bytes(1, 1, {1, 2, 3}, 64));
}

TEST(UdpDataplane, TheRxFlagOfASlotIsSetWhileTheLoopHasIt) {
  rig r;
  udp_peer peer(r.port);
  peer.send(request_bytes(1, 1, {1}));
  const std::uint32_t slot = r.next();
  EXPECT_NE(r.memory.ring.rx_flags_host[slot], 0u);
  r.answer(slot, {1});
  EXPECT_EQ(r.memory.ring.rx_flags_host[slot], 0u);
  EXPECT_EQ(r.plane.publish(slot).text(), "slot " + std::to_string(slot) + ": the loop does not have it");
}

TEST(UdpDataplane, ServesAnIpv6Peer) {
  detail::datagram_options options = small_slots();
  options.bind_address = "::1";
  detail::udp_address address;
  ASSERT_EQ(detail::udp_address_of("address", "::1", 0, address).text(), "");
  if (detail::udp_socket probe; probe.open(address, 0).failed())
    GTEST_SKIP() << "this machine has no IPv6 loopback";
  rig r(options);
  udp_peer peer(r.port, 0, "::1");
  peer.send(request_bytes(1, 1, {1}));
  r.answer(r.next(), {5});
  EXPECT_EQ(result_of(*peer.receive()), bytes({5}));
}

} // namespace
} // namespace cudaq::realtime::test
