// SPDX-License-Identifier: Apache-2.0
// What a hostile node can do: nothing to the requests of other nodes, and to its own ones nothing but answer them.
#include "cudaq/realtime/daemon/dispatcher/host_dispatcher_types.h"
#include "unittests/transport/route/route_world.h"

namespace cudaq::realtime::detail::test {
namespace {

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
  route_world world(1);
  world.settle();
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
  route_world world(1);
  world.settle();
  world.submit(kAdd, 0);
  world.settle();
  world.kill_node(0);
  world.silence(3s);
  world.start_node(0);
  world.settle_for(1s);
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
  route_world world(1); // its messages name no connection
  world.settle();
  const std::uint32_t entry = world.submit(kAdd, 0);
  world.settle();
  EXPECT_EQ(world.status(entry), 0);
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
