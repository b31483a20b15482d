// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/datagram/datagram_ring.h"
#include "unittests/transport/datagram/datagram_shapes.h"

namespace cudaq::realtime::test {
namespace {

/// The ring shape without its thread.
struct rig : exchange_on_a_ring {
  explicit rig(const detail::datagram_options &options = small_slots()) : exchange_on_a_ring(options), pump(exchange) {}

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

TEST(UdpRing, FillsTheRestOfASlotWithZeros) {
  rig r;
  udp_peer peer(r.port);
  for (std::uint32_t slot = 0; slot < 4; ++slot)
    std::memset(r.memory.rx_slot(slot), 0xAA, 64);
  peer.send(request_bytes(1, 1, {1, 2, 3}));
  ASSERT_TRUE(r.receives(0));
  EXPECT_EQ(r.request(0), request_bytes(1, 1, {1, 2, 3}, 64));
}

TEST(UdpRing, LeavesRequestsInTheSystemWhileTheRingIsFull) {
  rig r;
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
  rig r(options);
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
  rig r(options);
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
  rig r;
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
  rig r(small_slots(1));
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
  rig r(options);
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
