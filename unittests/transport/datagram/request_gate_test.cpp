// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/datagram/request_gate.h"
#include "unittests/transport/datagram/udp_peer.h"

#include <optional>

namespace cudaq::realtime::test {
namespace {

using action = detail::gate_decision::action;

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

} // namespace
} // namespace cudaq::realtime::test
