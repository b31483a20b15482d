// SPDX-License-Identifier: Apache-2.0
// Each rule of the router, one at a time.
#include "unittests/transport/route/route_world.h"

namespace cudaq::realtime::detail::test {
namespace {

TEST(RequestRouter, RefusesBeforeANodeHasJoinedWithoutAnyEffect) {
  route_world world(2);
  EXPECT_EQ(world.status(world.submit(kAdd, 0)), kNotReady);
  world.settle();
  EXPECT_EQ(world.router->state(0), node_state::joined);
  const std::uint32_t entry = world.submit(kAdd, 0); // no reset was needed
  world.settle();
  EXPECT_EQ(world.status(entry), 0);
  EXPECT_EQ(world.result(entry), 1u);
}

TEST(RequestRouter, SendsEachKeyToItsNode) {
  joined_world world(3);
  for (std::uint64_t key = 0; key < 12; ++key)
    world.submit(kAdd, key);
  world.settle();
  for (std::uint32_t node = 0; node < 3; ++node) {
    EXPECT_EQ(world.nodes[node]->counts.size(), 4u);
    for (const auto &[key, count] : world.nodes[node]->counts)
      EXPECT_EQ(key % 3, node);
  }
  EXPECT_EQ(world.executed.size(), 12u);
  EXPECT_TRUE(world.router->idle());
}

TEST(RequestRouter, AnswersWhatNoNodeCanGet) {
  joined_world world(1);
  EXPECT_EQ(world.status(world.submit(kAdd, 99)), kUnknownKey);
  world.open[9] = world.open[10] = true;
  world.router->submit(9, kAdd, bytes{1, 2, 3}, 0, world.now);
  EXPECT_EQ(world.status(9), kBadRequest);
  const bytes long_payload(kNodeSlotSize - 23);
  world.router->submit(10, kAdd, long_payload, 0, world.now);
  EXPECT_EQ(world.status(10), kBadRequest);
  EXPECT_TRUE(world.executed.empty());
}

TEST(RequestRouter, NumbersOfOtherFunctionsAreNegative) {
  route_world world(1);
  EXPECT_EQ(world.status(world.submit(kPlain, 0)), -kNotReady);
  world.settle();
  const std::uint32_t entry = world.submit(kPlain, 0);
  world.kill_node(0);
  world.silence(2s);
  EXPECT_EQ(world.status(entry), -kLost);
  world.start_node(0);
  world.settle_for(2s);
  EXPECT_EQ(world.call(kPlain, 0), 0); // a function without a key has no state that is lost
}

TEST(RequestRouter, KeepsToCreditsThenQueuesThenIsBusy) {
  joined_world world(1, [](router_limits &limits) {
    limits.max_credits = 2;
    limits.queue_length = 3;
  });
  std::vector<std::uint32_t> entries;
  for (int i = 0; i < 6; ++i)
    entries.push_back(world.submit(kAdd, 0));
  EXPECT_EQ(world.wires[0]->to_node.size(), 2u);
  EXPECT_EQ(world.status(entries[5]), kBusy);
  world.settle();
  for (std::size_t i = 0; i < 5; ++i) { // in the order of their arrival
    ASSERT_EQ(world.status(entries[i]), 0);
    EXPECT_EQ(word_at(world.answers[entries[i]]->result, 0), i + 1);
  }
}

TEST(RequestRouter, AnswersTheStreamsOfASilentNodeWithinTheBound) {
  joined_world world(2);
  const std::uint32_t lost = world.submit(kAdd, 0), other = world.submit(kAdd, 1);
  const sim_time begin = world.now;
  world.nodes[1]->work(world.now);
  while (world.status(lost) == kNoAnswer && world.now < begin + 5s) {
    world.now += 10ms;
    world.nodes[1]->work(world.now);
    world.deliver_to_router(1);
    world.router->tick(world.now);
  }
  EXPECT_EQ(world.status(lost), kLost);
  EXPECT_LE(world.now - begin, world.limits.lost_after + 20ms);
  EXPECT_EQ(world.status(other), 0);
  EXPECT_EQ(world.router->state(1), node_state::joined);
  EXPECT_EQ(world.status(world.submit(kAdd, 0)), kLost);
  EXPECT_EQ(world.status(world.submit(kResetKey, 0)), kNotReady);
}

TEST(RequestRouter, StreamsOfALostNodeNeedAResetAlsoAfterItRejoined) {
  joined_world world(1);
  world.call(kAdd, 0);
  world.restart_node(0);
  EXPECT_EQ(world.status(world.submit(kAdd, 0)), kLost);
  const std::uint32_t fresh = world.submit(kAdd, 1); // never used: nothing of it was lost
  const std::uint32_t reset = world.submit(kResetKey, 0);
  world.settle();
  EXPECT_EQ(world.status(fresh), 0);
  EXPECT_EQ(world.status(reset), 0);
  EXPECT_EQ(world.call(kAdd, 0), 0);
}

TEST(RequestRouter, QuestionsNeitherUseNorLoseAStream) {
  joined_world world(1);
  const std::uint32_t unused = world.submit(kQuestion, 1);
  world.call(kAdd, 0);
  EXPECT_EQ(world.status(unused), 0);
  world.kill_node(0);
  const std::uint32_t open = world.submit(kQuestion, 1);
  world.silence(2s);
  EXPECT_EQ(world.status(open), kLost) << "the node may have had it";
  world.start_node(0);
  world.settle_for(2s);
  ASSERT_EQ(world.router->state(0), node_state::joined);
  const std::uint32_t add = world.submit(kAdd, 1), question = world.submit(kQuestion, 0);
  world.settle();
  EXPECT_EQ(world.status(add), 0) << "a question had not used its stream";
  EXPECT_EQ(world.status(question), 0) << "also about a lost stream";
  const std::uint32_t reset = world.submit(kResetKey, 0);
  world.settle();
  const std::uint32_t between = world.submit(kQuestion, 0), after = world.submit(kAdd, 0);
  world.settle();
  for (const std::uint32_t entry : {reset, between, after})
    EXPECT_EQ(world.status(entry), 0);
}

TEST(RequestRouter, DropsLateAnswersOfAnOlderSession) {
  joined_world world(1);
  const std::uint32_t lost = world.submit(kAdd, 0);
  const std::shared_ptr<wire> old = world.wires[0];
  world.nodes[0]->receive(world.now);
  world.nodes[0]->take_all();
  world.silence(1100ms); // the node is stopped
  EXPECT_EQ(world.status(lost), kLost);
  const std::uint64_t strays = world.router->stray_messages().value();
  world.nodes[0]->execute_one(); // it goes on, and answers in its old session
  ASSERT_FALSE(old->to_router.empty());
  for (const bytes &message : old->to_router)
    world.router->received({}, message, world.now);
  EXPECT_GT(world.router->stray_messages().value(), strays);
  world.settle_for(1s);
  EXPECT_EQ(world.router->state(0), node_state::joined);
}

TEST(RequestRouter, GivesUpARequestAndTakesItsCreditBackWithTheLateAnswer) {
  joined_world world(1, [](router_limits &limits) {
    limits.max_credits = 1;
    limits.answer_limit = 500ms;
  });
  const std::uint32_t slow = world.submit(kAdd, 0);
  world.hold(700ms);
  EXPECT_EQ(world.status(slow), kLost);
  EXPECT_EQ(world.router->state(0), node_state::joined);
  EXPECT_EQ(world.status(world.submit(kAdd, 0)), kLost);
  const std::uint32_t waiting = world.submit(kAdd, 1);
  world.hold(700ms);
  EXPECT_EQ(world.status(waiting), kBusy); // it has waited for the credit too long; it was not executed
  const std::uint32_t reset = world.submit(kResetKey, 0);
  world.settle();
  EXPECT_EQ(world.router->counters(0).late.value(), 1u);
  EXPECT_EQ(world.status(reset), 0);
  EXPECT_EQ(world.executed.size(), 2u);
}

TEST(RequestRouter, AStallOfItsOwnBlamesNoNode) {
  joined_world world(2);
  world.call(kAdd, 0);
  world.now += 30s; // the router's process was stopped; the nodes' answers wait
  world.router->tick(world.now);
  EXPECT_EQ(world.router->state(0), node_state::joined);
  EXPECT_EQ(world.router->state(1), node_state::joined);
}

// Each turn is longer than lost_after. Node 0 lives, and is heard in every second turn; node 1 is dead.
TEST(RequestRouter, LongTurnsOfItsOwnBlameNoNodeAndHideNone) {
  route_world world(2, [](router_limits &limits) { limits.answer_limit = 0s; });
  world.settle();
  world.call(kAdd, 0);
  world.kill_node(1);
  const std::uint32_t lost = world.submit(kAdd, 1);
  const auto turns = [&world](int count) {
    for (int turn = 0; turn < count; ++turn) {
      world.now += world.limits.lost_after + 500ms;
      if (turn % 2 == 1)
        world.nodes[0]->work(world.now);
      world.deliver_to_router(0);
      world.router->tick(world.now);
      ASSERT_EQ(world.router->state(0), node_state::joined) << turn;
    }
  };
  const auto looks = static_cast<int>(world.limits.lost_after / world.limits.heartbeat); // a look is one heartbeat
  turns(looks - 2);
  EXPECT_EQ(world.status(lost), kNoAnswer);
  turns(4);
  EXPECT_EQ(world.status(lost), kLost);
  const std::uint64_t attempts = world.last_wire;
  turns(2 * looks + 6); // an attempt to connect ends, too
  EXPECT_GT(world.last_wire, attempts + 1);
  EXPECT_EQ(world.router->counters(0).losses.value(), 0u);
}

TEST(RequestRouter, AnswersOutstandingRequestsOfANodeThatLeaves) {
  joined_world world(1);
  const std::uint32_t taken = world.submit(kAdd, 0), untaken = world.submit(kAdd, 1);
  world.nodes[0]->receive(world.now);
  std::uint32_t slot = 0;
  ASSERT_TRUE(world.nodes[0]->sessions->take(slot));
  world.nodes[0]->taken.push_back(slot);
  world.nodes[0]->execute_one();
  world.nodes[0]->sessions->close();
  world.deliver_to_router(0);
  EXPECT_EQ(world.status(taken), 0);
  EXPECT_EQ(world.status(untaken), CUDAQ_RPC_ERR_SHUTTING_DOWN);
  EXPECT_EQ(world.router->state(0), node_state::leaving);
  EXPECT_EQ(world.status(world.submit(kAdd, 0)), kLost);
  EXPECT_EQ(world.status(world.submit(kAdd, 2)), kNotReady);
  world.router->tick(world.now + 1ms);
  EXPECT_EQ(world.router->state(0), node_state::absent);
}

TEST(RequestRouter, ADrainedNodeGetsNoNewRequestsAndLosesNothing) {
  joined_world world(1);
  const std::uint32_t before = world.submit(kAdd, 0);
  world.router->drain(0, true);
  EXPECT_EQ(world.status(world.submit(kAdd, 0)), kNotReady);
  world.settle_for(3s);
  EXPECT_EQ(world.status(before), 0);
  EXPECT_EQ(world.router->state(0), node_state::joined);
  world.router->drain(0, false);
  const std::uint32_t after = world.submit(kAdd, 0);
  world.settle();
  EXPECT_EQ(world.status(after), 0);
  EXPECT_EQ(world.result(after), 2u);
}

TEST(RequestRouter, AnswersEverythingAtItsEnd) {
  joined_world world(2);
  const std::uint32_t open = world.submit(kAdd, 0);
  world.router->close();
  EXPECT_EQ(world.status(world.submit(kAdd, 1)), kNotReady);
  world.router->send_bye();
  world.router->leave(world.now);
  EXPECT_EQ(world.status(open), kLost);
  EXPECT_TRUE(world.router->idle());
  world.silence(3s);
  EXPECT_EQ(world.router->state(0), node_state::absent); // it does not come back
}

TEST(RequestRouter, ANodeThatAnotherRouterHasUsedNeedsResets) {
  joined_world world(1);
  world.call(kAdd, 0);
  // This router is killed, and started again: it knows nothing of the stream.
  route_world next(1, [](router_limits &limits) { limits.draw = counted_from(5000); });
  next.nodes[0] = std::move(world.nodes[0]);
  next.settle_for(4s);
  ASSERT_EQ(next.router->state(0), node_state::joined);
  EXPECT_EQ(next.status(next.submit(kAdd, 0)), kLost);
}

TEST(RequestRouter, BadMessagesChangeNothing) {
  joined_world world(2);
  const std::uint32_t entry = world.submit(kAdd, 0);
  const route_header *const sent = reinterpret_cast<const route_header *>(world.wires[0]->to_node.back().data());
  const std::uint64_t epoch = sent->epoch, generation = sent->generation;
  std::uint64_t strays = world.router->stray_messages().value();
  const auto expect_stray = [&](const std::function<void(route_header &)> &change, std::size_t extra = 0) {
    route_header header;
    header.kind = route_kind::answer;
    header.epoch = epoch;
    header.generation = generation;
    change(header);
    world.router->received({}, message_of(header, bytes(extra)), world.now);
    EXPECT_EQ(world.router->stray_messages().value(), ++strays);
    EXPECT_EQ(world.status(entry), kNoAnswer);
  };
  expect_stray([](route_header &h) { h.magic = 1; });
  expect_stray([](route_header &h) { h.version = 9; });
  expect_stray([](route_header &h) { h.kind = static_cast<route_kind>(99); });
  expect_stray([](route_header &h) { h.kind = route_kind::request; });
  expect_stray([](route_header &h) { h.kind = route_kind::welcome; });
  expect_stray([](route_header &h) { h.node = 1; });
  expect_stray([](route_header &h) { h.node = 60000; });
  expect_stray([](route_header &h) { h.epoch = 0; });
  expect_stray([](route_header &h) { ++h.epoch; });
  expect_stray([](route_header &h) { h.slot = UINT32_MAX; });
  expect_stray([](route_header &h) { h.slot = 1; });
  expect_stray([](route_header &h) { ++h.generation; });
  expect_stray([](route_header &h) { h.length = 5; });
  expect_stray([](route_header &) {}, 5);
  world.router->received({}, bytes{1, 2, 3}, world.now);
  world.router->received({}, {}, world.now);
  world.settle();
  EXPECT_EQ(world.status(entry), 0);
}

TEST(RequestRouter, TriesToConnectAgainWhileTheSystemHasNoNumber) {
  bool has_numbers = true;
  route_world world(2, [&](router_limits &limits) {
    limits.draw = [&has_numbers, next = std::uint64_t{1}]() mutable {
      return has_numbers ? next++ : throw std::runtime_error("no number");
    };
  });
  has_numbers = false;
  world.settle_for(1s);
  EXPECT_EQ(world.last_wire, 0u);
  has_numbers = true;
  world.settle_for(1s);
  for (const std::uint64_t key : {0u, 1u}) {
    EXPECT_EQ(world.call(kAdd, key), 0);
  }
}

/// The header of a request that a node has received and not begun.
cudaq_rpc_header_t received_by(simulated_node &node, sim_time now) {
  node.receive(now);
  std::uint32_t slot = 0;
  cudaq_rpc_header_t header{};
  EXPECT_TRUE(node.sessions->take(slot));
  std::memcpy(&header, node.ring.rx_data_host + slot * node.ring.rx_stride_sz, sizeof header);
  node.taken.push_back(slot);
  return header;
}

cudaq_rpc_header_t routed(route_world &world, std::uint32_t request_id, std::uint64_t time) {
  const std::uint32_t entry = world.submit(kAdd, 0, request_id, time);
  const cudaq_rpc_header_t header = received_by(*world.nodes[0], world.now);
  world.settle();
  EXPECT_EQ(world.status(entry), 0);
  return header;
}

// By id and time a node's decoders know a repeated request: with a number of the node's own, a repetition would be
// another one for them.
TEST(RoutedRequest, HasTheIdAndTheTimeOfItsRequesterEachTimeItIsSent) {
  for (const std::uint32_t id : {0xFFFFFFF0u, 0u}) { // 0: it has none
    joined_world world(1);
    for (int again = 0; again < 2; ++again) {
      const cudaq_rpc_header_t header = routed(world, id, 77);
      EXPECT_EQ(header.request_id, id);
      EXPECT_EQ(header.ptp_timestamp, 77u);
    }
  }
}

} // namespace
} // namespace cudaq::realtime::detail::test
