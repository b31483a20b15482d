// SPDX-License-Identifier: Apache-2.0
// The rules of the router and of its nodes without memory for a place in a queue.
#include "unittests/support/fault_points.h"
#include "unittests/transport/route/route_world.h"

namespace cudaq::realtime::detail::test {
namespace {

namespace faults = cudaq::realtime::test::faults;

constexpr int kRequests = 400; // a queue needs memory at each 128th

TEST(RouteRulesFaults, ARequestWithoutAPlaceInTheQueueIsBusy) {
  route_world world(1, [](router_limits &limits) { limits.max_credits = 1; });
  world.settle();
  const std::uint32_t last = world.limits.num_entries - 1;
  std::uint64_t busy = 0;
  for (int n = 0; n < kRequests; ++n) {
    const std::uint32_t first = world.submit(kAdd, 0); // it has the credit
    world.open[last] = true;
    world.answers[last].reset();
    world.payloads[last] = words({0, ++world.serial});
    faults::arm(1, 1, "operator new");
    world.router->submit(last, kAdd, world.payloads[last], 0, world.now);
    const std::uint64_t fired = faults::disarm();
    busy += fired;
    ASSERT_EQ(world.status(last), fired != 0 ? kBusy : kNoAnswer) << n;
    world.settle();
    ASSERT_EQ(world.status(first), 0) << n;
    ASSERT_EQ(world.status(last), fired != 0 ? kBusy : 0) << n;
  }
  EXPECT_GE(busy, 2u);
  EXPECT_TRUE(world.router->idle());
}

// A message that is not taken would keep its router's credit.
TEST(RouteRulesFaults, ANodeTakesARequestWithoutMemory) {
  std::set<std::uint64_t> executed;
  simulated_node node(2, executed);
  const auto line = std::make_shared<wire>();
  line->id = 1;
  node.wires[line->id] = line;
  route_header header;
  header.kind = route_kind::hello;
  header.epoch = 5;
  header.generation = 1;
  line->to_node.push_back(message_of(header, {}));
  node.receive(1s);
  header.kind = route_kind::request;
  header.function_id = kAdd;
  header.length = 16;
  for (int n = 0; n < kRequests; ++n) {
    const std::uint64_t serial = executed.size() + 2;
    header.generation = serial;
    const bytes message = message_of(header, words({1, serial}));
    faults::arm(1, 1, "operator new");
    node.sessions->received(0, message, 1s);
    ASSERT_EQ(faults::disarm(), 0u) << n;
    node.take_all();
    ASSERT_TRUE(node.execute_one()) << n;
  }
  EXPECT_EQ(node.sessions->counters().strays.value(), 0u);
}

} // namespace
} // namespace cudaq::realtime::detail::test
