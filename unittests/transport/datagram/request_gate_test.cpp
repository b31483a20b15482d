// SPDX-License-Identifier: Apache-2.0
// What providers over datagrams do with a frame before it has a slot: whether it is a request, whether its peer has
// sent it before, and who gets the next slot. What a window knows of numbers: unittests/session.
#include "lib/transport/datagram/fair_queue.h"
#include "lib/transport/datagram/peer_windows.h"
#include "lib/transport/datagram/request_gate.h"
#include "unittests/transport/datagram/udp_peer.h"

#include <algorithm>
#include <optional>
#include <set>

namespace cudaq::realtime::test {
namespace {

using namespace std::chrono_literals;
using action = detail::gate_decision::action;
using state = detail::request_state;

struct RequestGate : ::testing::Test {
  void open(std::uint32_t window, std::uint32_t max_peers = 4) {
    detail::datagram_options options;
    options.slot_size = 64;
    options.replay_window = window;
    options.max_peers = max_peers;
    gate.emplace(options, counters);
  }
  detail::gate_decision take(const bytes &datagram, bool room = true) {
    return gate->judge({&from, datagram, datagram.size() > 64}, room, {});
  }

  detail::datagram_counters counters;
  detail::udp_address from;
  std::optional<detail::request_gate> gate;
};

TEST_F(RequestGate, DropsWhatIsNoRequest) {
  open(0);
  EXPECT_EQ(take({}).what, action::drop);
  EXPECT_EQ(take(bytes(23)).what, action::drop);
  EXPECT_EQ(counters.dropped_short.value(), 2u);
  EXPECT_EQ(take(bytes(65)).what, action::drop);
  EXPECT_EQ(counters.dropped_long.value(), 1u);
  EXPECT_EQ(take(bytes(64)).what, action::drop);
  bytes response = request_bytes(1, 2, {});
  response[0] = 0x53;
  EXPECT_EQ(take(response).what, action::drop);
  EXPECT_EQ(counters.dropped_magic.value(), 2u);
  EXPECT_EQ(counters.received.value(), 5u);
}

TEST_F(RequestGate, AnswersARequestThatIsLongerThanASlot) {
  for (const std::uint32_t window : {0u, 64u}) {
    open(window);
    const detail::gate_decision decision = take(request_bytes(1, 77, bytes(10), 65, 99), false);
    EXPECT_EQ(decision.what, action::answer);
    EXPECT_EQ(decision.status, CUDAQ_RPC_ERR_BAD_ARG_LEN);
    EXPECT_EQ(decision.header.request_id, 77u);
    EXPECT_EQ(decision.header.ptp_timestamp, 99u);
  }
  EXPECT_EQ(counters.dropped_long.value(), 2u);
  EXPECT_EQ(counters.accepted.value(), 0u);
}

TEST_F(RequestGate, AnswersARequestThatIsCutOff) {
  open(0);
  bytes cut = request_bytes(1, 77, bytes(10), 0, 99);
  cut.pop_back();
  const detail::gate_decision decision = take(cut);
  EXPECT_EQ(decision.what, action::answer);
  EXPECT_EQ(decision.status, CUDAQ_RPC_ERR_BAD_ARG_LEN);
  EXPECT_EQ(decision.header.request_id, 77u);
  EXPECT_EQ(decision.header.ptp_timestamp, 99u);
  EXPECT_EQ(counters.answered_truncated.value(), 1u);
}

TEST_F(RequestGate, LeavesALengthThatNoSlotHasToTheDispatcher) {
  open(16);
  bytes frame = request_bytes(1, 1, {});
  const std::uint32_t arg_len = 0xFFFFFFFFu;
  std::memcpy(frame.data() + 8, &arg_len, sizeof(arg_len));
  EXPECT_EQ(take(frame).what, action::accept);
}

TEST_F(RequestGate, AcceptsEachIdAgainWithoutAReplayWindow) {
  open(0);
  for (int n = 0; n < 3; ++n)
    EXPECT_EQ(take(request_bytes(1, 0, {1, 2, 3})).what, action::accept);
  EXPECT_EQ(counters.peers.load(), 0u);
}

TEST_F(RequestGate, AnswersBusyAndAcceptsTheRepetition) {
  open(16);
  const bytes request = request_bytes(1, 5, {1});
  const detail::gate_decision refused = take(request, false);
  EXPECT_EQ(refused.status, CUDAQ_RPC_ERR_BUSY);
  EXPECT_EQ(take(request).what, action::accept);
  EXPECT_EQ(take(request, false).what, action::drop) << "a duplicate is no new request";
  EXPECT_EQ(counters.answered_busy.value(), 1u);
  EXPECT_EQ(counters.dropped_duplicates.value(), 1u);
}

TEST_F(RequestGate, ReplaysTheAnswerOfARepetitionWithANewTimestamp) {
  open(16);
  const detail::gate_decision first = take(request_bytes(1, 5, {1, 2}, 0, 1000));
  const std::uint8_t frame[] = {9, 8, 7};
  gate->answered(first.key, frame);
  const detail::gate_decision again = take(request_bytes(1, 5, {1, 2}, 64, 2000));
  EXPECT_EQ(again.what, action::answer);
  EXPECT_EQ(bytes(again.replay.begin(), again.replay.end()), bytes({9, 8, 7}));
  EXPECT_EQ(take(request_bytes(1, 5, {1, 3})).status, CUDAQ_RPC_ERR_REQUEST_ID) << "another payload";
  EXPECT_EQ(take(request_bytes(2, 5, {1, 2})).status, CUDAQ_RPC_ERR_REQUEST_ID) << "another function";
  EXPECT_EQ(counters.answered_reused.value(), 2u);
  EXPECT_EQ(counters.replays.value(), 1u);
}

// A router's handler answers so; its client then sends the same bytes again.
TEST_F(RequestGate, AcceptsTheIdOfARequestAgainThatAHandlerAnsweredBusy) {
  open(16);
  cudaq_rpc_response_t busy{CUDAQ_RPC_MAGIC_RESPONSE, CUDAQ_RPC_ERR_BUSY, 0, 5, 0};
  const std::span<const std::uint8_t> frame(reinterpret_cast<const std::uint8_t *>(&busy), sizeof(busy));
  const bytes request = request_bytes(1, 5, {1});
  for (int n = 0; n < 3; ++n) {
    const detail::gate_decision taken = take(request);
    ASSERT_EQ(taken.what, action::accept) << n;
    EXPECT_EQ(take(request).what, action::drop) << "it is in execution";
    gate->answered(taken.key, frame);
  }
  const detail::gate_decision last = take(request);
  busy.status = 0;
  gate->answered(last.key, frame);
  EXPECT_EQ(take(request).replay.size(), frame.size());
  EXPECT_EQ(counters.reordered.value(), 0u);
}

TEST_F(RequestGate, RefusesIdsThatAreOlderThanTheWindow) {
  open(16);
  take(request_bytes(1, 100, {}));
  EXPECT_EQ(take(request_bytes(1, 84, {})).status, CUDAQ_RPC_ERR_REQUEST_ID);
  EXPECT_EQ(take(request_bytes(1, 85, {})).what, action::accept);
  EXPECT_EQ(counters.answered_stale.value(), 1u);
  EXPECT_EQ(counters.reordered.value(), 1u);
}

TEST_F(RequestGate, DropsRequestsOfTooManyPeers) {
  open(16, 1);
  from.length = 4;
  EXPECT_EQ(take(request_bytes(1, 1, {})).what, action::accept);
  from.length = 5;
  EXPECT_EQ(take(request_bytes(1, 1, {})).what, action::drop);
  EXPECT_EQ(counters.dropped_peers.value(), 1u);
}

struct PeerWindows : ::testing::Test {
  static detail::udp_address peer(std::uint32_t number) {
    detail::udp_address address;
    address.bytes.sin6_family = AF_INET6;
    address.bytes.sin6_port = static_cast<std::uint16_t>(number);
    address.length = sizeof(address.bytes);
    return address;
  }
  detail::peer_windows::found find(std::uint32_t id, std::uint32_t from = 1) {
    return windows->find(peer(from), id, 7, now).value_or(detail::peer_windows::found{});
  }
  /// Nothing: there is no room for the peer.
  std::optional<state> what(std::uint32_t id, std::uint32_t from = 1) {
    const auto found = windows->find(peer(from), id, 7, now);
    return found ? std::optional(found->state) : std::nullopt;
  }
  detail::request_key begin(std::uint32_t id, std::uint32_t from = 1) {
    const detail::peer_windows::found found = find(id, from);
    EXPECT_EQ(found.state, state::unseen) << id;
    windows->begin(found.key, 7);
    return found.key;
  }
  void answer(const detail::request_key &key, std::uint8_t byte) {
    const std::uint8_t frame[3] = {byte, byte, byte};
    windows->keep(key, frame);
  }

  detail::datagram_counters counters;
  detail::peer_windows::time now{};
  std::optional<detail::peer_windows> windows{std::in_place, 4u, 2u, 8u, 1000ms, counters};
};

TEST_F(PeerWindows, NeverExecuteAgainWhatTheDispatcherDropped) {
  windows->close(begin(10));
  EXPECT_EQ(what(10), state::closed);
}

TEST_F(PeerWindows, KeepPeersApart) {
  const detail::request_key first = begin(10, 1), second = begin(10, 2);
  answer(first, 1);
  answer(second, 2);
  EXPECT_EQ(find(10, 1).answer[0], 1);
  EXPECT_EQ(find(10, 2).answer[0], 2);
  EXPECT_EQ(counters.peers.load(), 2u);
}

TEST_F(PeerWindows, CountTheAddressOfTheNewestPeer) {
  cudaq_udp_statistics_t all{};
  counters.read(all);
  EXPECT_EQ(all.newest_port, 0u) << "none has come";
  detail::udp_address v6 = peer(0), v4;
  v6.set_port(5001);
  v6.bytes.sin6_addr.s6_addr[0] = 0xFE;
  v6.bytes.sin6_addr.s6_addr[15] = 1;
  ASSERT_TRUE(windows->find(v6, 10, 7, now));
  counters.read(all);
  EXPECT_EQ(all.newest_port, 5001u);
  EXPECT_EQ(std::memcmp(all.newest_address, &v6.bytes.sin6_addr, 16), 0);
  ASSERT_EQ(detail::udp_address_of("address", "10.0.0.2", 5002, v4).text(), "");
  ASSERT_TRUE(windows->find(v4, 10, 7, now));
  ASSERT_TRUE(windows->find(v6, 11, 7, now)) << "it is known already";
  counters.read(all);
  EXPECT_EQ(all.newest_port, 5002u);
  const std::uint8_t mapped[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 10, 0, 0, 2};
  EXPECT_EQ(std::memcmp(all.newest_address, mapped, 16), 0);
}

TEST_F(PeerWindows, RefusePeersBeyondTheirNumberUntilOneExpires) {
  answer(begin(10, 1), 1);
  now += 600ms;
  const detail::request_key busy = begin(10, 2);
  EXPECT_EQ(what(10, 3), std::nullopt);
  now += 600ms;
  EXPECT_EQ(what(10, 3), state::unseen) << "peer 1 has been idle for 1.2 s";
  EXPECT_EQ(counters.peers_expired.value(), 1u);
  now += 5000ms;
  EXPECT_EQ(what(10, 2), state::executing) << "a peer with a request in flight does not expire";
  answer(busy, 1);
}

TEST_F(PeerWindows, ForgetAPeerThatWasIdle) {
  const detail::request_key key = begin(10);
  answer(key, 1);
  now += 1001ms;
  EXPECT_EQ(what(3), state::unseen) << "a client that starts again on the same port";
  begin(10);
  windows->keep(key, {});
  EXPECT_EQ(what(10), state::executing) << "a late answer of the peer before";
}

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
