// SPDX-License-Identifier: Apache-2.0
// Each rule of a node, one at a time; and what a router takes of a hostile node.
#include "cudaq/realtime/daemon/dispatcher/host_dispatcher_types.h"
#include "unittests/transport/route/route_world.h"

namespace cudaq::realtime::detail::test {
namespace {

/// A node, and its connections as a router sees them.
class NodeSessions : public testing::Test {
protected:
  std::shared_ptr<wire> connection() {
    auto made = std::make_shared<wire>();
    made->id = ++last_;
    node_.wires[made->id] = made;
    return made;
  }
  static void put(wire &to, route_header header, const bytes &payload = {}) {
    header.length = static_cast<std::uint32_t>(payload.size());
    to.to_node.push_back(message_of(header, payload));
  }
  static route_header header(route_kind kind, std::uint64_t epoch, std::uint64_t generation = 0) {
    route_header made;
    made.kind = kind;
    made.epoch = epoch;
    made.generation = generation;
    made.function_id = kAdd;
    return made;
  }
  /// A connection over which a router has said hello.
  std::shared_ptr<wire> greeted(std::uint64_t router, std::uint64_t epoch) {
    const auto made = connection();
    put(*made, header(route_kind::hello, epoch, router));
    node_.receive(now_);
    return made;
  }
  /// A session that has begun.
  std::shared_ptr<wire> joined(std::uint64_t router, std::uint64_t epoch) {
    const auto made = greeted(router, epoch);
    EXPECT_EQ(next(*made).kind, route_kind::welcome);
    return made;
  }
  void request(wire &to, std::uint64_t epoch, std::uint32_t slot, std::uint64_t key = 1) {
    route_header made = header(route_kind::request, epoch, ++generation_);
    made.slot = slot;
    put(to, made, words({key, generation_}));
    node_.receive(now_);
  }
  /// The next message to the router; kind ping (which no node sends): there is none.
  static route_header next(wire &from) {
    route_header found;
    std::span<const std::uint8_t> payload;
    if (from.to_router.empty())
      return found;
    EXPECT_TRUE(read_route_message(from.to_router.front(), found, payload));
    from.to_router.pop_front();
    return found;
  }

  std::set<std::uint64_t> executed_;
  simulated_node node_{2, executed_};
  std::uint64_t last_ = 0, generation_ = 0;
  sim_time now_{1s};
};

TEST_F(NodeSessions, GivesEachRouterItsShareOfTheSlots) {
  const auto first = greeted(1, 5);
  const route_header welcome = next(*first);
  EXPECT_EQ(welcome.kind, route_kind::welcome);
  EXPECT_EQ(welcome.slot, kNodeSlots / 2);
  EXPECT_EQ(welcome.function_id, kNodeSlotSize - 24);
  EXPECT_EQ(welcome.status, 1);
  joined(2, 6);
  const auto third = greeted(3, 7);
  EXPECT_EQ(next(*third).kind, route_kind::refuse);
}

TEST_F(NodeSessions, ANewSessionWaitsForTheRequestsOfTheOldOneThatWereTaken) {
  const auto old = joined(1, 5);
  request(*old, 5, 0);
  request(*old, 5, 1);
  node_.take_all();
  request(*old, 5, 2); // not taken
  const auto fresh = greeted(1, 6);
  EXPECT_EQ(node_.sessions->counters().discarded.value(), 1u);
  EXPECT_TRUE(fresh->to_router.empty());
  EXPECT_FALSE(old->node_end);
  node_.execute_one();
  EXPECT_TRUE(fresh->to_router.empty()) << "one is still in progress";
  node_.execute_one();
  EXPECT_EQ(next(*fresh).kind, route_kind::welcome);
  EXPECT_TRUE(old->to_router.empty()) << "answers of an ended session go nowhere";
  node_.take_all();
  EXPECT_TRUE(node_.taken.empty()) << "what was not taken is not executed";
}

TEST_F(NodeSessions, RequestsOfAnEndedSessionAreNotTaken) {
  const auto old = joined(1, 5);
  route_header late = header(route_kind::request, 5, 1);
  put(*old, late, words({1, 1}));
  const auto fresh = connection();
  put(*fresh, header(route_kind::hello, 6, 1));
  node_.receive(now_, 1, true); // the new connection is read first
  node_.take_all();
  EXPECT_TRUE(node_.taken.empty());
  EXPECT_EQ(next(*fresh).kind, route_kind::welcome);
  request(*fresh, 5, 0); // also over another connection
  node_.take_all();
  EXPECT_TRUE(node_.taken.empty());
}

TEST_F(NodeSessions, CountsWhatNoRouterWouldSend) {
  const auto one = joined(1, 5);
  std::uint64_t strays = node_.sessions->counters().strays.value();
  const auto expect_stray = [&](route_header bad, const bytes &payload = words({1, 1})) {
    put(*one, bad, payload);
    node_.receive(now_);
    EXPECT_EQ(node_.sessions->counters().strays.value(), ++strays);
  };
  route_header bad = header(route_kind::request, 5, 1);
  bad.slot = kNodeSlots / 2;
  expect_stray(bad);
  expect_stray(header(route_kind::request, 99, 1));
  expect_stray(header(route_kind::answer, 5, 1));
  expect_stray(header(route_kind::welcome, 5, 1));
  expect_stray(header(route_kind::hello, 0, 1));
  expect_stray(header(route_kind::hello, 5, 1)); // an epoch that is in use
  bad = header(route_kind::request, 5, 1);
  expect_stray(bad, bytes(kNodeSlotSize));
  bad.magic = 7;
  expect_stray(bad);
  one->to_node.push_back(bytes(3));
  node_.receive(now_);
  EXPECT_EQ(node_.sessions->counters().strays.value(), ++strays);
  request(*one, 5, 0);
  request(*one, 5, 0); // the wire slot is in use
  EXPECT_EQ(node_.sessions->counters().strays.value(), ++strays);
  node_.take_all();
  EXPECT_EQ(node_.taken.size(), 1u);
}

/// The session's numbers are no authority: another router may have seen them.
TEST_F(NodeSessions, TakesNothingOfASessionFromAnotherConnection) {
  const auto one = joined(1, 5);
  const auto send = [&](std::uint64_t connection, route_kind kind) {
    node_.sessions->received(connection, message_of(header(kind, 5), {}), now_);
  };
  send(one->id, route_kind::ping);
  EXPECT_EQ(next(*one).kind, route_kind::pong);
  const std::uint64_t before = node_.sessions->counters().strays.value();
  for (const std::uint64_t other : {one->id + 1, std::uint64_t{0}}) { // 0: it is not named
    send(other, route_kind::request);
    send(other, route_kind::bye);
  }
  EXPECT_EQ(node_.sessions->counters().strays.value(), before + 4);
  send(one->id, route_kind::ping);
  EXPECT_EQ(next(*one).kind, route_kind::pong) << "the session goes on";
}

TEST_F(NodeSessions, EndsASilentSessionAndAnIdleConnection) {
  const auto one = joined(1, 5);
  const auto idle = connection();
  node_.receive(now_);
  put(*one, header(route_kind::ping, 5));
  node_.receive(now_ += 2s);
  EXPECT_EQ(next(*one).kind, route_kind::pong);
  node_.sessions->tick(now_ += 2s);
  EXPECT_TRUE(one->node_end);
  EXPECT_FALSE(idle->node_end);
  node_.sessions->tick(now_ += 2s);
  EXPECT_FALSE(one->node_end);
}

TEST_F(NodeSessions, WelcomesAWaitingRouterWhenAnotherOneLeaves) {
  for (const bool sends_bye : {true, false}) {
    const std::uint64_t epoch = sends_bye ? 10 : 20;
    const auto ended = joined(epoch, epoch); // its requests are still in progress, so their slots are not free
    for (std::uint32_t slot = 0; slot < kNodeSlots / 2; ++slot)
      request(*ended, epoch, slot);
    node_.take_all();
    ended->router_end = false;
    node_.receive(now_);
    const auto leaving = joined(epoch + 1, epoch + 1), waiting = connection();
    put(*waiting, header(route_kind::hello, epoch + 2, epoch + 2));
    node_.receive(now_);
    EXPECT_TRUE(waiting->to_router.empty()) << "no credits are left";
    if (sends_bye)
      put(*leaving, header(route_kind::bye, epoch + 1));
    else
      leaving->router_end = false;
    node_.receive(now_);
    EXPECT_EQ(next(*waiting).kind, route_kind::welcome) << sends_bye;
    while (node_.execute_one()) {
    }
    waiting->router_end = false;
    node_.receive(now_);
  }
}

TEST_F(NodeSessions, ReportsWhetherAnotherRouterHasUsedTheNode) {
  const auto first = joined(1, 5);
  request(*first, 5, 0);
  node_.work(now_);
  const auto again = greeted(1, 6);
  EXPECT_EQ(next(*again).status, 1);
  const auto second = greeted(2, 7);
  EXPECT_EQ(next(*second).status, 0);
}

TEST_F(NodeSessions, AnswersARequestThatTheDispatcherDrops) {
  const auto one = joined(1, 5);
  request(*one, 5, 0);
  node_.take_all();
  ASSERT_EQ(node_.taken.size(), 1u);
  store_release<std::uint64_t>(node_.ring.rx_flags_host[node_.taken.front()], 0);
  node_.sessions->tick(now_);
  const route_header answer = next(*one);
  EXPECT_EQ(answer.kind, route_kind::answer);
  EXPECT_EQ(answer.status, CUDAQ_RPC_ERR_NO_SUCH_FUNCTION);
  EXPECT_FALSE(node_.sessions->publish(node_.taken.front()));
}

TEST_F(NodeSessions, AnAnswerThatIsNoFrameBecomesAStatus) {
  const auto one = joined(1, 5);
  request(*one, 5, 0);
  node_.take_all();
  const std::uint32_t slot = node_.taken.front();
  std::memset(node_.ring.tx_data_host + slot * kNodeSlotSize, 0xFF, kNodeSlotSize);
  EXPECT_TRUE(node_.sessions->publish(slot));
  EXPECT_EQ(next(*one).status, CUDAQ_RPC_ERR_NO_RESPONSE);
}

// What a hostile node can do: nothing to the requests of other nodes, and to its own ones nothing but answer them.

/// The header that the router has sent last to this node.
route_header last_sent(const route_world &world, std::uint32_t node) {
  route_header header;
  std::span<const std::uint8_t> payload;
  EXPECT_TRUE(read_route_message(world.wires[node]->to_node.back(), header, payload));
  return header;
}
route_header answer_to(route_header request, std::int32_t status = 0) {
  request.kind = route_kind::answer;
  request.length = 0;
  request.status = status;
  return request;
}
std::uint64_t strays(const route_world &world) { return world.router->stray_messages().value(); }

TEST(ForeignNode, AnyStatusEndsItsRequestOnce) {
  joined_world world(1);
  for (const std::int32_t status : {INT32_MIN, INT32_MIN + 1, INT32_MAX, -1011, -1004, -1, 1, 0}) {
    for (std::uint32_t n = 0; n < kNodeSlots; ++n) { // more than the node has credits: a lost one would show
      const std::uint32_t entry = world.submit(kAdd, 0);
      const route_header answer = answer_to(last_sent(world, 0), status);
      world.router->received({}, message_of(answer, {}), world.now);
      EXPECT_EQ(world.status(entry), status == CUDAQ_HOST_CALL_DEFERRED ? CUDAQ_RPC_ERR_NO_RESPONSE : status);
      world.router->received({}, message_of(answer, {}), world.now);
    }
    EXPECT_TRUE(world.router->idle());
  }
}

TEST(ForeignNode, AStatusThatIsNoneDoesNotResetALostStream) {
  joined_world world(1);
  world.call(kAdd, 0);
  world.restart_node(0);
  const std::uint32_t reset = world.submit(kResetKey, 0);
  world.router->received({}, message_of(answer_to(last_sent(world, 0), INT32_MIN), {}), world.now);
  EXPECT_EQ(world.status(reset), CUDAQ_RPC_ERR_NO_RESPONSE);
  EXPECT_EQ(world.status(world.submit(kAdd, 0)), kLost);
}

TEST(ForeignNode, CannotAnswerForAnotherNode) {
  route_world world(2);
  world.names_connection = true;
  world.settle();
  const std::uint32_t entry = world.submit(kAdd, 1);
  const bytes forged = message_of(answer_to(last_sent(world, 1)), {}); // of node 1, with all its numbers
  const std::uint64_t before = strays(world);
  world.router->received(0, forged, world.now);
  EXPECT_EQ(world.status(entry), kNoAnswer);
  world.router->received({}, forged, world.now); // hides where it comes from
  EXPECT_EQ(world.status(entry), kNoAnswer);
  EXPECT_EQ(strays(world), before + 2);
  world.settle();
  EXPECT_EQ(world.status(entry), 0) << "the node itself";
}

TEST(ForeignNode, CannotEndTheSessionOfAnotherNodeOrKeepItAlive) {
  route_world world(2);
  world.names_connection = true;
  world.settle();
  world.submit(kAdd, 1);
  for (const route_kind kind : {route_kind::bye, route_kind::refuse, route_kind::welcome}) {
    route_header forged = last_sent(world, 1);
    forged.kind = kind;
    forged.length = 0;
    world.router->received(0, message_of(forged, {}), world.now);
    EXPECT_EQ(world.router->state(1), node_state::joined);
  }
  route_header pong = last_sent(world, 1);
  pong.kind = route_kind::pong;
  pong.length = 0;
  for (int n = 0; n < 300; ++n) {
    world.now += 10ms;
    world.router->received(0, message_of(pong, {}), world.now);
    world.router->tick(world.now);
  }
  EXPECT_NE(world.router->state(1), node_state::joined);
}

TEST(ForeignNode, OfAnEarlierVersionNamesNoConnectionAndIsServed) {
  joined_world world(1); // its messages name no connection
  EXPECT_EQ(world.call(kAdd, 0), 0);
}

/// The numbers that a node sees are not near those of another node.
TEST(ForeignNode, CannotGuessTheNumbersOfAnotherSession) {
  constexpr std::uint64_t kFar = std::uint64_t{1} << 24; // as many guesses reach none
  route_world world(4, [](router_limits &limits) { limits.draw = secret_number; });
  std::vector<std::uint64_t> seen;
  for (std::uint32_t session = 0; session < 3; ++session) {
    world.router->tick(world.now);
    for (std::uint32_t node = 0; node < 4; ++node) {
      const route_header hello = last_sent(world, node);
      ASSERT_EQ(hello.kind, route_kind::hello);
      seen.push_back(hello.epoch);
      if (session == 0)
        seen.push_back(hello.generation); // the router's number at this node
      else
        EXPECT_NE(std::ranges::find(seen, hello.generation), seen.end()) << "it is the same in all sessions of a node";
      world.router->connection_failed(node, world.now);
    }
    world.now += 1s;
  }
  std::ranges::sort(seen);
  for (std::size_t n = 1; n < seen.size(); ++n)
    EXPECT_GT(seen[n] - seen[n - 1], kFar);
}

} // namespace
} // namespace cudaq::realtime::detail::test
