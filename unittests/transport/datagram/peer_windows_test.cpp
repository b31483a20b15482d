// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/datagram/peer_windows.h"

#include <gtest/gtest.h>
#include <optional>

namespace cudaq::realtime::detail {
namespace {

using namespace std::chrono_literals;

struct PeerWindows : ::testing::Test {
  static udp_address peer(std::uint32_t number) {
    udp_address address;
    address.bytes.sin6_family = AF_INET6;
    address.bytes.sin6_port = static_cast<std::uint16_t>(number);
    address.length = sizeof(address.bytes);
    return address;
  }
  peer_windows::found find(std::uint32_t id, std::uint32_t from = 1, std::uint64_t content = 7) {
    return windows->find(peer(from), id, content, now).value_or(peer_windows::found{});
  }
  /// Nothing: there is no room for the peer.
  std::optional<request_state> what(std::uint32_t id, std::uint32_t from = 1, std::uint64_t content = 7) {
    const auto found = windows->find(peer(from), id, content, now);
    return found ? std::optional(found->state) : std::nullopt;
  }
  request_key begin(std::uint32_t id, std::uint32_t from = 1) {
    const peer_windows::found found = find(id, from);
    EXPECT_EQ(found.state, request_state::unseen) << id;
    windows->begin(found.key, 7);
    return found.key;
  }
  void answer(const request_key &key, std::uint8_t byte) {
    const std::uint8_t frame[3] = {byte, byte, byte};
    windows->keep(key, frame);
  }

  datagram_counters counters;
  peer_windows::time now{};
  std::optional<peer_windows> windows{std::in_place, 4u, 2u, 8u, 1000ms, counters};
};

TEST_F(PeerWindows, ExecuteARequestOnceAndReplayItsAnswer) {
  const request_key key = begin(10);
  EXPECT_EQ(what(10), request_state::executing);
  answer(key, 42);
  const peer_windows::found again = find(10);
  ASSERT_EQ(again.state, request_state::answered);
  EXPECT_EQ(std::vector<std::uint8_t>(again.answer.begin(), again.answer.end()), std::vector<std::uint8_t>(3, 42));
}

TEST_F(PeerWindows, AcceptReorderedIdsOfTheWindowAndRefuseOlderOnes) {
  begin(10);
  begin(12);
  EXPECT_EQ(what(8), request_state::stale);
  EXPECT_EQ(what(10), request_state::executing);
  begin(11);
  begin(9);
  EXPECT_EQ(counters.reordered.value(), 2u);
  begin(1000);
  EXPECT_EQ(what(12), request_state::stale);
  begin(998);
}

TEST_F(PeerWindows, CountIdsModuloTwoToThe32) {
  const request_key before = begin(0xFFFFFFFFu);
  const request_key after = begin(1);
  begin(0);
  answer(before, 1);
  answer(after, 2);
  EXPECT_EQ(find(0xFFFFFFFFu).answer[0], 1);
  EXPECT_EQ(find(1).answer[0], 2);
  EXPECT_EQ(what(0xFFFFFFFDu), request_state::stale);
}

TEST_F(PeerWindows, DoNotKeepAnAnswerThatLeftTheWindow) {
  const request_key old = begin(10);
  const request_key same_place = begin(14);
  answer(old, 1);
  EXPECT_EQ(what(14), request_state::executing) << "the answer to 10 is not that to 14";
  answer(same_place, 2);
  EXPECT_EQ(find(14).answer[0], 2);
  EXPECT_EQ(what(10), request_state::stale);
}

TEST_F(PeerWindows, DistinguishAnIdThatIsUsedAgain) {
  const request_key key = begin(10);
  EXPECT_EQ(what(10, 1, 8), request_state::reused);
  answer(key, 1);
  EXPECT_EQ(what(10, 1, 8), request_state::reused);
}

TEST_F(PeerWindows, NeverExecuteAgainWhatTheDispatcherDropped) {
  windows->close(begin(10));
  EXPECT_EQ(what(10), request_state::closed);
}

TEST_F(PeerWindows, KeepPeersApart) {
  const request_key first = begin(10, 1), second = begin(10, 2);
  answer(first, 1);
  answer(second, 2);
  EXPECT_EQ(find(10, 1).answer[0], 1);
  EXPECT_EQ(find(10, 2).answer[0], 2);
  EXPECT_EQ(counters.peers.load(), 2u);
}

TEST_F(PeerWindows, RefusePeersBeyondTheirNumberUntilOneExpires) {
  answer(begin(10, 1), 1);
  now += 600ms;
  const request_key busy = begin(10, 2);
  EXPECT_EQ(what(10, 3), std::nullopt);
  now += 600ms;
  EXPECT_EQ(what(10, 3), request_state::unseen) << "peer 1 has been idle for 1.2 s";
  EXPECT_EQ(counters.peers_expired.value(), 1u);
  now += 5000ms;
  EXPECT_EQ(what(10, 2), request_state::executing) << "a peer with a request in flight does not expire";
  answer(busy, 1);
}

TEST_F(PeerWindows, ForgetAPeerThatWasIdle) {
  const request_key key = begin(10);
  answer(key, 1);
  now += 1001ms;
  EXPECT_EQ(what(3), request_state::unseen) << "a client that starts again on the same port";
  begin(10);
  windows->keep(key, {});
  EXPECT_EQ(what(10), request_state::executing) << "a late answer of the peer before";
}

} // namespace
} // namespace cudaq::realtime::detail
