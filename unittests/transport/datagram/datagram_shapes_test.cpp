// SPDX-License-Identifier: Apache-2.0
// The two shapes of a provider over datagrams, without threads but for one test. What all providers promise:
// ../provider/transport_contract_test.cpp.
#include "lib/transport/datagram/datagram_dataplane.h"
#include "lib/transport/datagram/datagram_ring.h"
#include "unittests/transport/datagram/datagram_shapes.h"

#include <atomic>

namespace cudaq::realtime::test {
namespace {

struct plane_rig : exchange_on_a_ring {
  explicit plane_rig(const detail::datagram_options &options = small_slots())
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
  plane_rig r(small_slots(8));
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

TEST(UdpDataplane, TheRxFlagOfASlotIsSetWhileTheLoopHasIt) {
  plane_rig r;
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
  plane_rig r(options);
  udp_peer peer(r.port, 0, "::1");
  peer.send(request_bytes(1, 1, {1}));
  r.answer(r.next(), {5});
  EXPECT_EQ(result_of(*peer.receive()), bytes({5}));
}

/// The ring shape without its thread.
struct ring_rig : exchange_on_a_ring {
  explicit ring_rig(const detail::datagram_options &options = small_slots())
      : exchange_on_a_ring(options), pump(exchange) {}

  bool ready(std::uint32_t slot) const { return detail::load_acquire(memory.ring.rx_flags_host[slot]) != 0; }
  /// Turns until the slot holds a request.
  ::testing::AssertionResult receives(std::uint32_t slot) {
    const bool found = eventually([&] {
      pump.turn();
      return ready(slot);
    });
    return found ? ::testing::AssertionSuccess() : ::testing::AssertionFailure() << "no request in slot " << slot;
  }
  void answer(std::uint32_t slot, const bytes &result) {
    write_answer(slot, result);
    finish(slot, reinterpret_cast<std::uint64_t>(memory.tx_slot(slot)));
  }
  void finish(std::uint32_t slot, std::uint64_t tx) {
    detail::store_release(memory.ring.tx_flags_host[slot], tx);
    detail::store_release<std::uint64_t>(memory.ring.rx_flags_host[slot], 0);
    turns(70); // a dropped request is found within 64
  }
  void turns(int n) {
    for (int i = 0; i < n; ++i)
      pump.turn();
  }
  const detail::datagram_counters &counters() { return exchange.counters(); }

  detail::datagram_ring pump;
};

TEST(UdpRing, LeavesRequestsInTheSystemWhileTheRingIsFull) {
  ring_rig r;
  udp_peer peer(r.port);
  for (std::uint32_t id = 0; id < 6; ++id)
    peer.send(request_bytes(1, id, {1}, 64));
  ASSERT_TRUE(r.receives(3));
  r.turns(10);
  EXPECT_EQ(r.counters().received.value(), 4u);
  r.answer(1, {1});
  EXPECT_EQ(r.counters().received.value(), 4u) << "ring order: slot 0 is next";
  r.answer(0, {0});
  EXPECT_TRUE(eventually([&] {
    r.pump.turn();
    return r.counters().received.value() == 6;
  }));
  EXPECT_EQ(r.id_in(0), 4u);
  EXPECT_EQ(r.id_in(1), 5u);
}

TEST(UdpRing, AnswersBusyWhileTheRingIsFullIfTheOptionIsSet) {
  detail::datagram_options options = small_slots(2);
  options.busy_reply = true;
  ring_rig r(options);
  udp_peer peer(r.port);
  for (std::uint32_t id = 0; id < 3; ++id)
    peer.send(request_bytes(1, id, {1}, 64, 500 + id));
  ASSERT_TRUE(r.receives(1));
  std::optional<bytes> refused;
  ASSERT_TRUE(eventually([&] {
    r.pump.turn();
    refused = peer.arrived();
    return refused.has_value();
  }));
  EXPECT_EQ(refused->size(), 64u);
  EXPECT_EQ(response_header(*refused).status, CUDAQ_RPC_ERR_BUSY);
  EXPECT_EQ(response_header(*refused).request_id, 2u);
  EXPECT_EQ(response_header(*refused).ptp_timestamp, 502u);
}

TEST(UdpRing, TakesBackTheSlotOfADroppedRequest) {
  detail::datagram_options options = small_slots(1);
  options.replay_window = 8;
  ring_rig r(options);
  udp_peer peer(r.port);
  peer.send(request_bytes(1, 1, {1}, 64));
  ASSERT_TRUE(r.receives(0));
  r.finish(0, 0);
  EXPECT_EQ(r.counters().unanswered.value(), 1u);
  peer.send(request_bytes(1, 1, {1}, 64));
  peer.send(request_bytes(1, 2, {1}, 64));
  ASSERT_TRUE(r.receives(0));
  EXPECT_EQ(r.id_in(0), 2u) << "a dropped request is not given to the dispatcher again";
  EXPECT_EQ(r.counters().dropped_duplicates.value(), 1u);
  r.answer(0, {9});
  EXPECT_EQ(result_of(*peer.receive()), bytes({9}));
}

TEST(UdpRing, WaitsForTheAnswerAfterAMarkerAndAnswersAnErrorSentinel) {
  ring_rig r;
  udp_peer peer(r.port);
  peer.send(request_bytes(1, 5, {1}, 64, 77));
  ASSERT_TRUE(r.receives(0));
  r.finish(0, CUDAQ_TX_FLAG_IN_FLIGHT);
  EXPECT_FALSE(peer.arrived());
  r.finish(0, CUDAQ_TX_FLAG_ERROR_TAG << CUDAQ_TX_FLAG_ERROR_SHIFT | 719u);
  const auto answer = peer.receive();
  ASSERT_TRUE(answer);
  EXPECT_EQ(response_header(*answer).status, CUDAQ_RPC_ERR_LAUNCH_FAILED);
  EXPECT_EQ(response_header(*answer).request_id, 5u);
  EXPECT_EQ(response_header(*answer).ptp_timestamp, 77u);
}

TEST(UdpRing, SendsNoBytesOfEarlierAnswers) {
  ring_rig r(small_slots(1));
  udp_peer a(r.port), b(r.port);
  a.send(request_bytes(1, 1, {1}, 64));
  ASSERT_TRUE(r.receives(0));
  r.answer(0, bytes(40, 0x5E));
  ASSERT_TRUE(a.receive());
  b.send(request_bytes(1, 1, {1}, 64));
  ASSERT_TRUE(r.receives(0));
  r.answer(0, {1});
  const auto answer = b.receive();
  ASSERT_TRUE(answer);
  EXPECT_EQ(bytes(answer->begin() + 25, answer->end()), bytes(39));
}

TEST(UdpRing, ReplaysAnAnswerWithoutTheDispatcher) {
  detail::datagram_options options = small_slots();
  options.replay_window = 8;
  ring_rig r(options);
  udp_peer peer(r.port);
  const bytes request = request_bytes(1, 1, {1}, 64);
  peer.send(request);
  ASSERT_TRUE(r.receives(0));
  peer.send(request);
  r.turns(5);
  r.answer(0, {9});
  const auto first = peer.receive();
  ASSERT_TRUE(first);
  peer.send(request);
  std::optional<bytes> second;
  ASSERT_TRUE(eventually([&] {
    r.pump.turn();
    second = peer.arrived();
    return second.has_value();
  }));
  EXPECT_EQ(*first, *second);
  EXPECT_EQ(r.counters().accepted.value(), 1u);
  EXPECT_EQ(r.counters().replays.value() + r.counters().dropped_duplicates.value(), 2u);
}

} // namespace
} // namespace cudaq::realtime::test
