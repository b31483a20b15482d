// SPDX-License-Identifier: Apache-2.0
// Transports without memory: a provider over datagrams while all slots are in use, the thread of cpu_roce that serves
// callers, and the rules of the router and of its nodes for a place in a queue.
#include "lib/transport/cpu_roce/rendezvous.h"
#include "lib/transport/datagram/datagram_dataplane.h"
#include "unittests/support/fault_points.h"
#include "unittests/transport/cpu_roce/rendezvous_call.h"
#include "unittests/transport/datagram/datagram_shapes.h"
#include "unittests/transport/route/route_world.h"

#include <new>
#include <thread>

namespace cudaq::realtime::test {
namespace {

/// A request of the first peer is in the only slot. The other two peers send one each.
struct full_plane : exchange_on_a_ring {
  full_plane() : exchange_on_a_ring(small_slots(1)), plane(exchange), first(port), second(port), third(port) {
    first.send(request_bytes(1, 1, {1}));
    EXPECT_TRUE(eventually([this] { return ready(); }));
  }

  bool ready() { return plane.poll(slot) == CUDAQ_RX_READY; }
  /// Polls after the datagram has arrived, with the fault if `fault` is not 0. Returns the number of faults.
  std::uint64_t take(udp_peer &from, std::uint32_t id, std::uint64_t fault) {
    from.send(request_bytes(1, id, {1}));
    exchange.socket().wait(true, kDeadline);
    bool was_ready = false;
    if (fault != 0)
      faults::arm(fault, 1, "operator new");
    for (int polls = 0; polls < 3; ++polls)
      was_ready = ready() || was_ready;
    const std::uint64_t fired = fault != 0 ? faults::disarm() : 0;
    EXPECT_FALSE(was_ready) << "no slot is free";
    return fired;
  }
  std::uint64_t dropped() { return exchange.counters().dropped_kernel.value(); }

  detail::datagram_dataplane plane;
  udp_peer first, second, third;
  std::uint32_t slot = 0;
};

TEST(DatagramFaults, ARequestThatFindsNoMemoryToWaitIsDroppedAndCounted) {
  std::uint64_t all = 0;
  for (std::uint64_t n = 1, fired = 1; fired != 0; ++n) {
    ASSERT_LT(n, 100u);
    full_plane now;
    now.take(now.second, 2, 0);
    fired = now.take(now.third, 3, n);
    all += fired;
    EXPECT_EQ(now.dropped(), 2 * fired) << "both that would wait, at allocation " << n;
    now.write_answer(now.slot, {9});
    ASSERT_EQ(now.plane.publish(now.slot).text(), "");
    EXPECT_EQ(now.ready(), fired == 0);
    if (fired != 0) { // later requests are served
      now.second.send(request_bytes(1, 4, {1}));
      EXPECT_TRUE(eventually([&now] { return now.ready(); }));
    }
  }
  EXPECT_GE(all, 3u);
}

TEST(DatagramFaults, TheNextSlotIsGivenWithoutMemory) {
  std::uint64_t all = 0;
  for (std::uint64_t n = 1, fired = 1; fired != 0; ++n) {
    ASSERT_LT(n, 100u);
    full_plane now;
    now.take(now.second, 2, 0);
    now.take(now.third, 3, 0);
    now.write_answer(now.slot, {9});
    faults::arm(n, 1, "operator new");
    const bool published = now.plane.publish(now.slot).ok(), ready = now.ready();
    fired = faults::disarm();
    all += fired;
    EXPECT_TRUE(published && ready) << n;
    EXPECT_EQ(now.dropped(), fired) << "the third one, if there is no memory for the count of the second one's slots";
    EXPECT_EQ(now.exchange.has_waiting_requests(), fired == 0);
  }
  EXPECT_GE(all, 1u);
}

constexpr std::uint32_t kServed = 7, kNeedsMemory = 8, kReply = 9, kAddress = 0x7F000001;

std::optional<detail::rendezvous_numbers> take(const detail::rendezvous_numbers &caller) {
  if (caller.qp == kNeedsMemory)
    throw std::bad_alloc();
  return detail::rendezvous_numbers{kReply, 1, kAddress};
}

/// The reply's queue pair; 0: the caller is refused.
std::uint32_t call(std::uint32_t port, std::uint32_t queue_pair) {
  const int fd = rendezvous_connect("127.0.0.1", port);
  const bool sent = rendezvous_send(fd, {queue_pair, 1, kAddress});
  const std::optional<call_numbers> reply = rendezvous_receive(fd);
  ::close(fd);
  return sent && reply ? reply->qp : 0;
}

TEST(RendezvousFaults, CallersThatNeedNoMemoryAreServedAndTheOthersRefused) {
  detail::rendezvous server;
  ASSERT_EQ(server.open("127.0.0.1", 0).text(), "");
  int refused = 0; // of the thread, until its end
  const detail::rendezvous::hooks hooks = {take, [] { return false; }, [&refused] { ++refused; }, [] {}};
  std::thread thread([&] { server.serve(hooks); });
  faults::arm(1, 1'000'000, "operator new");
  const std::uint32_t first = call(server.port(), kServed), second = call(server.port(), kNeedsMemory),
                      third = call(server.port(), kServed);
  faults::disarm();
  server.stop();
  thread.join();
  EXPECT_EQ(first, kReply);
  EXPECT_EQ(second, 0u);
  EXPECT_EQ(third, kReply);
  EXPECT_EQ(refused, 1);
}

} // namespace
} // namespace cudaq::realtime::test

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
