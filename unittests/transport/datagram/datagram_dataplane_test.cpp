// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/datagram/datagram_dataplane.h"
#include "unittests/transport/datagram/datagram_shapes.h"
#include "unittests/transport/datagram/full_socket.h"

#include <atomic>
#include <cerrno>
#include <climits>
#include <dlfcn.h>
#include <set>

/// Called in place of the system's function.
extern "C" int sendmmsg(int fd, mmsghdr *messages, unsigned count, int flags) {
  if (cudaq::realtime::test::refused_sends.load() > 0) {
    cudaq::realtime::test::refused_sends.fetch_sub(1);
    errno = EAGAIN;
    return -1;
  }
  static const auto system = reinterpret_cast<decltype(&sendmmsg)>(dlsym(RTLD_NEXT, "sendmmsg"));
  return system(fd, messages, count, flags);
}

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
  static bool answers(udp_peer &peer, const bytes &result) {
    const auto answer = peer.receive();
    return answer && result_of(*answer) == result;
  }

  detail::datagram_dataplane plane;
};

TEST(UdpDataplane, ReceivesIntoFreeSlotsAndPublishesInAnyOrder) {
  rig r;
  udp_peer a(r.port), b(r.port);
  a.send(request_bytes(1, 1, {1}));
  b.send(request_bytes(1, 2, {2}, 64));
  const std::uint32_t first = r.next(), second = r.next();
  ASSERT_NE(first, second);
  EXPECT_EQ(r.request(first), request_bytes(1, 1, {1}, 64));
  r.answer(second, {22});
  EXPECT_EQ(result_of(*b.receive()), bytes({22}));
  EXPECT_FALSE(a.arrived());
  r.answer(first, {11});
  EXPECT_EQ(result_of(*a.receive()), bytes({11}));
}

TEST(UdpDataplane, DoesNotWaitForASlowRequest) {
  rig r(small_slots(2));
  udp_peer peer(r.port);
  peer.send(request_bytes(1, 0, {0}));
  const std::uint32_t slow = r.next();
  for (std::uint32_t id = 1; id < 20; ++id) {
    peer.send(request_bytes(1, id, {1}));
    const std::uint32_t slot = r.next();
    ASSERT_NE(slot, slow);
    r.answer(slot, {static_cast<std::uint8_t>(id)});
    EXPECT_EQ(response_header(*peer.receive()).request_id, id);
  }
  r.answer(slow, {0});
  EXPECT_EQ(response_header(*peer.receive()).request_id, 0u);
}

TEST(UdpDataplane, ServesAnotherSenderNextWhileOneHoldsAllSlots) {
  rig r(small_slots(2));
  udp_peer flood(r.port), other(r.port);
  for (std::uint32_t id = 0; id < 40; ++id)
    flood.send(request_bytes(1, id, {1}));
  const std::uint32_t first = r.next(), second = r.next();
  ASSERT_NE(first, second);
  std::uint32_t none = 0;
  for (int i = 0; i < 10; ++i)
    EXPECT_EQ(r.plane.poll(none), CUDAQ_RX_EMPTY);
  other.send(request_bytes(1, 100, {1}));
  for (int i = 0; i < 10; ++i)
    EXPECT_EQ(r.plane.poll(none), CUDAQ_RX_EMPTY);
  r.answer(first, {1});
  EXPECT_EQ(r.id_in(r.next()), 100u) << "before the 38 that came earlier";
  r.answer(second, {1});
  EXPECT_EQ(r.id_in(r.next()), 2u);
}

TEST(UdpDataplane, ReturnsNoSlotThatTheLoopHas) {
  rig r;
  udp_peer peer(r.port);
  for (std::uint32_t id = 0; id < 6; ++id)
    peer.send(request_bytes(1, id, {1}));
  std::set<std::uint32_t> slots;
  for (int n = 0; n < 4; ++n)
    slots.insert(r.next());
  EXPECT_EQ(slots.size(), 4u);
  std::uint32_t none = 0;
  EXPECT_EQ(r.plane.poll(none), CUDAQ_RX_EMPTY);
  r.answer(*slots.begin(), {1});
  EXPECT_EQ(r.next(), *slots.begin());
}

TEST(UdpDataplane, TakesBackSlotsThatTheLoopHasDropped) {
  rig r(small_slots(1));
  udp_peer peer(r.port);
  for (std::uint32_t id = 0; id < 5; ++id) {
    peer.send(request_bytes(1, id, {1}));
    const std::uint32_t slot = r.next();
    EXPECT_EQ(r.id_in(slot), id);
    EXPECT_NE(r.memory.ring.rx_flags_host[slot], 0u);
    detail::store_release<std::uint64_t>(r.memory.ring.rx_flags_host[slot], 0);
  }
  std::uint32_t none = 0;
  EXPECT_EQ(r.plane.poll(none), CUDAQ_RX_EMPTY);
  EXPECT_EQ(r.exchange.counters().unanswered.value(), 5u);
}

TEST(UdpDataplane, RefusesASlotThatTheLoopDoesNotHave) {
  rig r;
  EXPECT_EQ(r.plane.publish(0).text(), "slot 0: the loop does not have it");
  EXPECT_EQ(r.plane.publish(99).status(), CUDAQ_ERR_INVALID_ARG);
  udp_peer peer(r.port);
  peer.send(request_bytes(1, 1, {1}));
  const std::uint32_t slot = r.next();
  r.answer(slot, {1});
  EXPECT_EQ(r.plane.publish(slot).status(), CUDAQ_ERR_INVALID_ARG) << "published twice";
}

TEST(UdpDataplane, DropsGarbageBeforeItTakesASlot) {
  rig r(small_slots(2));
  udp_peer peer(r.port);
  for (int n = 0; n < 40; ++n)
    peer.send(bytes(static_cast<std::size_t>(n) * 3, static_cast<std::uint8_t>(n)));
  peer.send(request_bytes(1, 1, {1}));
  EXPECT_EQ(r.id_in(r.next()), 1u);
  EXPECT_EQ(r.exchange.counters().accepted.value(), 1u);
  EXPECT_EQ(r.exchange.counters().received.value(), 41u);
}

TEST(UdpDataplane, KeepsAnAnswerWithoutRoomForTheNextCall) {
  rig r;
  udp_peer peer(r.port);
  peer.send(request_bytes(1, 1, {1}));
  const std::uint32_t slot = r.next();
  const full_socket full(1);
  r.answer(slot, {7});
  EXPECT_FALSE(peer.arrived());
  std::uint32_t none = 0;
  EXPECT_EQ(r.plane.poll(none), CUDAQ_RX_EMPTY);
  EXPECT_TRUE(rig::answers(peer, {7}));
}

TEST(UdpDataplane, SendsAtDisconnectWhatTheLoopHasLeft) {
  rig r(small_slots(40)); // more than a batch
  udp_peer peer(r.port);
  for (std::uint32_t id = 0; id < 40; ++id)
    peer.send(request_bytes(1, id, {1}));
  std::vector<std::uint32_t> slots;
  for (int n = 0; n < 40; ++n)
    slots.push_back(r.next());
  const full_socket full(40 + 3);
  for (const std::uint32_t slot : slots)
    r.answer(slot, {7});
  EXPECT_FALSE(peer.arrived());
  // There is room after three attempts. A machine that is busy may not make them in the 100 ms of one call.
  const auto begin = std::chrono::steady_clock::now();
  int calls = 0;
  EXPECT_TRUE(eventually([&] { return ++calls, r.plane.disconnect().ok(); }));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, (calls - 1) * std::chrono::milliseconds(100));
  std::set<std::uint32_t> answered;
  for (int n = 0; n < 40; ++n) {
    const auto answer = peer.receive();
    ASSERT_TRUE(answer) << n;
    answered.insert(response_header(*answer).request_id);
  }
  EXPECT_EQ(answered.size(), 40u);
}

TEST(UdpDataplane, ReportsAtDisconnectHowManyAnswersFindNoRoom) {
  rig r;
  udp_peer peer(r.port);
  peer.send(request_bytes(1, 1, {1}));
  const std::uint32_t slot = r.next();
  {
    const full_socket full(INT_MAX);
    r.answer(slot, {7});
    const detail::expected<> result = r.plane.disconnect();
    EXPECT_EQ(result.status(), CUDAQ_ERR_TIMEOUT);
    EXPECT_NE(result.text().find("1 answers wait"), std::string::npos) << result.text();
    EXPECT_FALSE(peer.arrived());
  }
  EXPECT_EQ(r.plane.disconnect().text(), "") << "it may be called again";
  EXPECT_TRUE(rig::answers(peer, {7}));
}

TEST(UdpDataplane, ReturnsNoRequestAfterDisconnect) {
  rig r;
  udp_peer peer(r.port);
  peer.send(request_bytes(1, 1, {1}));
  const std::uint32_t first = r.next();
  EXPECT_EQ(r.plane.disconnect().text(), "");
  peer.send(request_bytes(1, 2, {1}));
  r.exchange.socket().wait(true, kDeadline); // it has arrived
  std::uint32_t slot = 0;
  for (int n = 0; n < 100; ++n)
    EXPECT_EQ(r.plane.poll(slot), CUDAQ_RX_EMPTY);
  r.answer(first, {7}); // the loop has it already
  EXPECT_TRUE(rig::answers(peer, {7}));
  r.plane.launch();
  EXPECT_EQ(r.id_in(r.next()), 2u);
}

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
