// SPDX-License-Identifier: Apache-2.0
// After which reset a lost stream is in use again.
#include "unittests/transport/route/route_world.h"

namespace cudaq::realtime::detail::test {
namespace {

void give_up_after_500_ms(router_limits &limits) { limits.answer_limit = 500ms; }

TEST(RequestRouter, ARequestBeforeTheAnswerOfTheResetKeepsTheStreamLost) {
  joined_world world(1);
  world.call(kAdd, 0);
  world.restart_node(0);
  const std::uint32_t reset = world.submit(kResetKey, 0);
  EXPECT_EQ(world.status(world.submit(kAdd, 0)), kLost);
  world.settle();
  EXPECT_EQ(world.status(reset), 0);
  EXPECT_EQ(world.status(world.submit(kAdd, 0)), kLost); // it would follow a request that is missing
  EXPECT_EQ(world.call(kResetKey, 0), 0);
  EXPECT_EQ(world.call(kAdd, 0), 0);
}

// The same while the reset waits for a credit: whichever of the two is in the queue, a request was left out after it.
TEST(RequestRouter, ARequestRefusedAfterAQueuedResetKeepsTheStreamLost) {
  for (const bool queued_before_the_loss : {false, true}) {
    joined_world world(1, [](router_limits &limits) {
      limits.max_credits = 2;
      limits.answer_limit = 500ms;
    });
    world.submit(kAdd, 0);
    world.nodes[0]->receive(world.now);
    world.nodes[0]->take_all();
    for (int i = 0; i < 48; ++i) { // its node lives, but has no answer in time
      world.now += 10ms;
      world.nodes[0]->sessions->tick(world.now);
      world.nodes[0]->receive(world.now);
      world.deliver_to_router(0);
      world.router->tick(world.now);
    }
    world.submit(kAdd, 1); // the second credit
    const std::uint32_t early = queued_before_the_loss ? world.submit(kResetKey, 0) : 0;
    const std::uint32_t queued_after = queued_before_the_loss ? world.submit(kAdd, 0) : 0;
    for (int i = 0; i < 10; ++i) {
      world.now += 10ms;
      world.nodes[0]->receive(world.now);
      world.deliver_to_router(0);
      world.router->tick(world.now);
    }
    const std::uint32_t reset = queued_before_the_loss ? early : world.submit(kResetKey, 0);
    const std::uint32_t refused = queued_before_the_loss ? queued_after : world.submit(kAdd, 0);
    // Both credits come back in one turn, so the request after the reset meets a key that is still lost.
    world.nodes[0]->take_all();
    world.nodes[0]->execute_one();
    world.nodes[0]->execute_one();
    world.settle_for(100ms);
    ASSERT_EQ(world.status(reset), 0);
    ASSERT_EQ(world.status(refused), kLost);
    EXPECT_EQ(world.status(world.submit(kAdd, 0)), kLost);
    ASSERT_EQ(world.call(kResetKey, 0), 0);
    EXPECT_EQ(world.call(kAdd, 0), 0);
  }
}

TEST(RequestRouter, ARequestThatWaitedBeforeTheResetDoesNotKeepTheStreamLost) {
  joined_world world(1, [](router_limits &limits) {
    limits.max_credits = 1;
    limits.answer_limit = 500ms;
  });
  const std::uint32_t slow = world.submit(kAdd, 0);
  world.hold(300ms);
  const std::uint32_t waiting = world.submit(kAdd, 0);
  world.hold(250ms);
  ASSERT_EQ(world.status(slow), kLost);
  ASSERT_EQ(world.status(waiting), kNoAnswer);
  const std::uint32_t reset = world.submit(kResetKey, 0);
  world.settle();
  EXPECT_EQ(world.status(waiting), kLost);
  ASSERT_EQ(world.status(reset), 0);
  const std::uint32_t after = world.submit(kAdd, 0);
  world.settle();
  ASSERT_EQ(world.status(after), 0);
  EXPECT_EQ(world.result(after), 1u);
}

TEST(RequestRouter, ARequestThatWasSentBeforeTheResetDoesNotKeepTheStreamLost) {
  for (const bool lost_before_the_reset : {true, false}) {
    joined_world world(1, give_up_after_500_ms);
    world.submit(kAdd, 0);
    world.hold(200ms);
    const std::uint32_t second = world.submit(kAdd, 0);
    world.hold(lost_before_the_reset ? 360ms : 200ms);
    const std::uint32_t reset = world.submit(kResetKey, 0);
    world.hold(lost_before_the_reset ? 220ms : 360ms);
    ASSERT_EQ(world.status(second), kLost);
    ASSERT_EQ(world.status(reset), kNoAnswer);
    world.settle();
    ASSERT_EQ(world.status(reset), 0);
    const std::uint32_t after = world.submit(kAdd, 0);
    world.settle();
    ASSERT_EQ(world.status(after), 0) << lost_before_the_reset;
    EXPECT_EQ(world.result(after), 1u);
  }
}

TEST(RequestRouter, AResetThatIsGivenUpKeepsTheStreamLost) {
  joined_world world(1, give_up_after_500_ms);
  world.submit(kAdd, 0);
  world.hold(560ms);
  const std::uint32_t reset = world.submit(kResetKey, 0);
  world.hold(560ms);
  EXPECT_EQ(world.status(reset), kLost);
  world.settle(); // the node answers it, too late
  EXPECT_EQ(world.status(world.submit(kAdd, 0)), kLost);
}

// The requester repeats a reset whose answer is late, and goes on with the first answer.
TEST(RequestRouter, TheAnswerOfEachCopyOfAResetBringsTheStreamIntoUseAgain) {
  for (const bool refused_between : {false, true}) {
    joined_world world(1, give_up_after_500_ms);
    world.submit(kAdd, 0);
    world.hold(560ms);
    const std::uint32_t reset = world.submit(kResetKey, 0);
    if (refused_between) {
      EXPECT_EQ(world.status(world.submit(kAdd, 0)), kLost);
    }
    const std::uint32_t copy = world.submit(kResetKey, 0);
    world.nodes[0]->receive(world.now);
    world.nodes[0]->take_all();
    world.nodes[0]->execute_one(); // the request that was given up
    world.nodes[0]->execute_one();
    world.nodes[0]->sessions->tick(world.now);
    world.deliver_to_router(0);
    ASSERT_EQ(world.status(reset), 0);
    ASSERT_EQ(world.status(copy), kNoAnswer);
    EXPECT_EQ(world.call(kAdd, 0), refused_between ? kLost : 0);
  }
}

TEST(RequestRouter, AResetThatFailsLosesNoStream) {
  joined_world world(1);
  const std::uint32_t reset = world.submit(kResetKey, 0);
  route_header answer;
  std::span<const std::uint8_t> payload;
  ASSERT_TRUE(read_route_message(world.wires[0]->to_node.back(), answer, payload));
  world.wires[0]->to_node.pop_back(); // answered here
  answer.kind = route_kind::answer;
  answer.length = 0;
  answer.status = 3;
  world.router->received({}, message_of(answer, {}), world.now);
  ASSERT_EQ(world.status(reset), 3);
  EXPECT_EQ(world.call(kAdd, 0), 0);
}

} // namespace
} // namespace cudaq::realtime::detail::test
