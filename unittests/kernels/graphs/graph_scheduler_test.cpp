// SPDX-License-Identifier: Apache-2.0
// The graph scheduler on CPU threads: no request is lost, doubled, torn or reordered, for any duration of the graphs.
#include "unittests/kernels/graphs/graph_host.h"
#include "unittests/support/slots_under_way.h"

namespace cudaq::realtime::test {
namespace {

struct flavour {
  const char *name;
  ring_shape shape;
  std::uint32_t members = 3;
  std::uint32_t instances = 1; ///< instances of function 2
  bool publishes = false, one_context = false;
  std::uint32_t wait_us = 0, linger_us = 0; ///< times of function 3's graph
  bool pair = false; ///< function 3's graph shares its context with the first instance of function 2
};

class GraphScheduler : public ::testing::TestWithParam<flavour> {};

/// Function 1 is a device call; functions 2 and 3 are graphs.
// Known failures 3, 4.
TEST_P(GraphScheduler, LosesDoublesTearsAndReordersNothing) {
  const flavour &f = GetParam();
  const host_ring ring(f.shape);
  traffic_plan plan;
  plan.messages = load_size(5000);
  plan.unknown_of_100 = 2;
  std::vector<std::unique_ptr<checked_function>> functions;
  for (std::uint32_t id = 1; id <= 3; ++id) {
    functions.push_back(std::make_unique<checked_function>(id, plan.messages));
    checked_function::v1_by_id[id] = functions.back().get();
    plan.functions.push_back(functions.back().get());
  }
  std::vector<fake_graph> graphs(f.instances + 1);
  std::vector<graph_entry> entries;
  for (std::uint32_t g = 0; g < graphs.size(); ++g) {
    const std::uint32_t id = g < f.instances ? 2 : 3;
    graphs[g].function = functions[id - 1].get();
    graphs[g].publishes = f.publishes;
    entries.push_back({id, 0, &graphs[g]});
  }
  graphs.back().wait = std::chrono::microseconds(f.wait_us);
  graphs.back().linger = std::chrono::microseconds(f.linger_us);
  if (f.pair)
    graphs.back().context = &graphs[0].own_context;
  entries.push_back({1});
  graph_host host(ring, entries, f.members, 2, false, f.one_context);
  host.start();
  traffic load(ring, plan);
  load.run();
  host.stop();
  const bool alone = f.instances == 1 || f.one_context;
  load.expect_clean(alone, alone);
  EXPECT_EQ(host.over_limit.load(), 0u);
  EXPECT_EQ(host.state().accepted, 0u);
  EXPECT_EQ(host.state().in_flight, 0u);
  EXPECT_EQ(host.state().counts.responded, plan.messages);
  EXPECT_EQ(host.state().counts.launches, functions[1]->calls + functions[2]->calls);
  EXPECT_GE(host.state().counts.relaunches + 1, host.state().counts.launches / kMaxLaunches);
  if (host.state().counts.relaunches > 2) {
    EXPECT_GE(host.members_that_served(), std::min(f.members, 2u));
    EXPECT_TRUE(f.members > 1 || host.state().counts.unrelieved == host.state().counts.relaunches);
  }
  EXPECT_EQ(host.base.processed, plan.messages);
}

INSTANTIATE_TEST_SUITE_P(
    Flavours, GraphScheduler,
    ::testing::Values(flavour{"OneSlot", {1, 64, false}}, flavour{"OneSlotInPlace", {1, 256, true}},
                      flavour{"ThreeSlots", {3, 72, false}}, flavour{"ManySlots", {64, 256, false}},
                      flavour{"ManySlotsInPlace", {64, 128, true}}, flavour{"OneMember", {16, 128, false}, 1},
                      flavour{"ManyMembers", {16, 128, false}, 6}, flavour{"Pool", {64, 128, false}, 3, 3},
                      flavour{"Publishing", {16, 128, false}, 3, 2, true},
                      flavour{"OneContext", {16, 128, false}, 2, 2, false, true},
                      flavour{"SharedContexts", {16, 128, false}, 3, 3, false, false, 0, 100, true},
                      flavour{"SlowBesideFast", {64, 128, false}, 3, 1, false, false, 500},
                      flavour{"LingersAfterItsSignal", {16, 128, false}, 2, 1, false, false, 0, 200}),
    [](const auto &tested) { return std::string(tested.param.name); });

std::vector<std::uint8_t> key_payload(std::uint64_t key) {
  std::vector<std::uint8_t> bytes(8);
  std::memcpy(bytes.data(), &key, 8);
  return bytes;
}

// Known failures 3, 15.
TEST(GraphSchedulerRoutes, EachGraphSeesItsKeyAndKeyZeroTheRest) {
  const host_ring ring({4, 64, false});
  std::vector<fake_graph> graphs(3);
  graph_host host(ring, {{2, 0, &graphs[0]}, {2, 5, &graphs[1]}, {2, 6, &graphs[2]}}, 2);
  host.start();
  ring_client client(ring);
  for (const std::uint64_t key : {5u, 6u, 0u, 7u, 5u})
    EXPECT_EQ(client.call(2, key_payload(key), 1).header.status, 0);
  host.stop();
  EXPECT_EQ(graphs[0].launches, 2u);
  EXPECT_EQ(graphs[0].key, 7u);
  EXPECT_EQ(graphs[1].launches, 2u);
  EXPECT_EQ(graphs[1].key, 5u);
  EXPECT_EQ(graphs[2].launches, 1u);
  EXPECT_EQ(graphs[2].key, 6u);
}

// Known failure 3.
TEST(GraphSchedulerErrors, AGraphThatCannotBeLaunchedIsAnsweredWithAnError) {
  const host_ring ring({4, 64, false});
  std::vector<fake_graph> graphs(2);
  graphs[0].uploaded = false;
  graph_host host(ring, {{2, 0, &graphs[0]}, {3, 0, &graphs[1]}}, 2);
  host.start();
  ring_client client(ring);
  for (std::uint32_t n = 0; n < 10; ++n) {
    const answer refused = client.call(2, {}, n, n + 100);
    EXPECT_EQ(refused.header.status, CUDAQ_RPC_ERR_LAUNCH_FAILED);
    EXPECT_EQ(refused.header.request_id, n);
    EXPECT_EQ(refused.header.ptp_timestamp, n + 100);
    EXPECT_EQ(client.call(3, {}, n).header.status, 0);
  }
  host.stop();
  EXPECT_EQ(host.base.reports[0].protocol_errors[CUDAQ_RPC_ERROR_INDEX(CUDAQ_RPC_ERR_LAUNCH_FAILED)], 10u);
  EXPECT_EQ(host.base.reports[0].responded, 20u);
}

// Some of the requests fail after the stop is requested and before the scheduler ends.
// Known failure 7.
TEST(GraphSchedulerErrors, AStopLeavesNoRequestOfSuchAGraphWithoutAnAnswer) {
  const host_ring ring({16, 64, false});
  std::vector<fake_graph> graphs(1);
  graphs[0].uploaded = false;
  graph_host host(ring, {{2, 0, &graphs[0]}}, 2);
  ring_client client(ring);
  for (std::uint32_t round = 0; round < 10; ++round) {
    std::vector<std::uint32_t> sent;
    for (std::uint32_t n = 0; n < 5; ++n)
      sent.push_back(client.send(2, {}, n));
    host.start();
    EXPECT_TRUE(eventually([&] { return load_relaxed(host.base.reports[0].dispatched) == 5 * (round + 1); }));
    host.stop();
    EXPECT_EQ(host.state().accepted, 0u);
    for (std::uint32_t n = 0; n < 5; ++n) {
      const answer got = client.collect(sent[n]);
      EXPECT_EQ(got.header.request_id, n);
      EXPECT_EQ(got.header.status, CUDAQ_RPC_ERR_LAUNCH_FAILED);
    }
    host.renew();
  }
}

// A graph that cannot be launched does not hold up its pool.
TEST(GraphSchedulerErrors, AGoodInstanceServesBesideOneThatCannotBeLaunched) {
  const host_ring ring({4, 64, false});
  std::vector<fake_graph> graphs(2);
  graphs[0].uploaded = false;
  graph_host host(ring, {{2, 0, &graphs[0]}, {2, 0, &graphs[1]}}, 2);
  host.start();
  ring_client client(ring);
  for (std::uint32_t n = 0; n < 300; ++n)
    EXPECT_EQ(client.call(2, {}, n).header.status, 0);
  host.stop();
  EXPECT_EQ(graphs[1].launches, 300u);
}

// All graphs of a pool are busy: its requests wait in their slots, and requests of other functions pass.
// Known failures 3, 19.
TEST(GraphSchedulerPool, AllBusyKeepsRequestsAndLetsOtherFunctionsPass) {
  const host_ring ring({16, 64, false});
  std::vector<fake_graph> graphs(3);
  std::atomic<bool> gate{false};
  graphs[0].gate = graphs[1].gate = &gate;
  graph_host host(ring, {{2, 0, &graphs[0]}, {2, 0, &graphs[1]}, {3, 0, &graphs[2]}}, 2, 3);
  host.start();
  ring_client client(ring);
  std::vector<std::uint32_t> slow;
  for (std::uint32_t n = 0; n < 5; ++n)
    slow.push_back(client.send(2, {}, n));
  for (std::uint32_t n = 0; n < 8; ++n)
    EXPECT_EQ(client.call(3, {}, 100 + n).header.request_id, 100 + n);
  answer early;
  for (const std::uint32_t slot : slow)
    EXPECT_FALSE(client.try_collect(slot, early));
  gate.store(true);
  for (std::uint32_t n = 0; n < 5; ++n)
    EXPECT_EQ(client.collect(slow[n]).header.request_id, n);
  host.stop();
  EXPECT_EQ(host.state().counts.launches, 13u);
}

// Functions 2 and 3 share a context, and the graph of function 2 does not end. Function 3 waits; function 4 does not.
TEST(GraphSchedulerPool, OnlyWhatSharesAContextWaitsForIt) {
  const host_ring ring({16, 64, false});
  std::vector<fake_graph> graphs(3);
  std::atomic<bool> gate{false};
  graphs[0].gate = &gate;
  graphs[1].context = &graphs[0].own_context;
  graph_host host(ring, {{2, 0, &graphs[0]}, {3, 0, &graphs[1]}, {4, 0, &graphs[2]}}, 2, 2);
  host.start();
  ring_client client(ring);
  const std::uint32_t slow = client.send(2, {}, 1), waits = client.send(3, {}, 2);
  for (std::uint32_t n = 0; n < 8; ++n)
    EXPECT_EQ(client.call(4, {}, 100 + n).header.request_id, 100 + n);
  answer early;
  EXPECT_FALSE(client.try_collect(waits, early));
  EXPECT_EQ(graphs[1].launches, 0u);
  gate.store(true);
  EXPECT_EQ(client.collect(slow).header.request_id, 1u);
  EXPECT_EQ(client.collect(waits).header.request_id, 2u);
  host.stop();
}

// Known failure 3.
TEST(GraphSchedulerStop, AnswersWhatItHasAcceptedAndGoesOnWhereItStopped) {
  const host_ring ring({16, 64, false});
  std::vector<fake_graph> graphs(1);
  graphs[0].wait = std::chrono::milliseconds(2);
  graph_host host(ring, {{2, 0, &graphs[0]}}, 3);
  ring_client client(ring);
  std::uint32_t id = 0;
  for (int round = 0; round < 20; ++round) {
    host.start();
    std::vector<std::uint32_t> sent;
    for (int n = 0; n < 4; ++n)
      sent.push_back(client.send(2, {}, ++id));
    EXPECT_TRUE(eventually([&] { return load_relaxed(host.base.reports[0].dispatched) == id; }));
    host.stop();
    EXPECT_EQ(host.state().accepted, 0u);
    for (std::size_t n = 0; n < sent.size(); ++n)
      EXPECT_EQ(client.collect(sent[n]).header.request_id, id - 3 + n);
    host.renew();
  }
}

// Graphs and calls alternate, with fewer requests in flight than slots: calls overtake graphs, also at the end of a
// run.
TEST(GraphSchedulerStop, ServesAgainAfterItHasEnded) {
  constexpr std::uint32_t kSlots = 4, kDeep = 3, kMessages = 303;
  const host_ring ring({kSlots, 256, false});
  checked_function called(1, 10 * kMessages);
  checked_function::v1_by_id[1] = &called;
  std::vector<fake_graph> graphs(1);
  graph_host host(ring, {{2, 0, &graphs[0]}, {1}}, 3);
  ring_client client(ring);
  std::vector<std::uint8_t> payload(kCheckedHeader);
  std::uint32_t expected[kSlots] = {};
  std::uint32_t sent = 0, collected = 0;
  slots_under_way under_way;
  const auto take = [&](std::uint32_t slot) {
    answer got;
    if (!client.try_collect(slot, got))
      return false;
    EXPECT_EQ(got.header.request_id, expected[slot]);
    return true;
  };
  for (std::uint32_t end = kMessages; end <= 10 * kMessages; end += kMessages) {
    host.start();
    const auto makes_progress = [&] {
      const std::uint32_t before = sent + collected;
      if (sent < end && under_way.size() < kDeep &&
          cudaq_host_ringbuffer_slot_available(&ring.ring, client.next_slot()) == 1) {
        fill_frame(payload.data(), kCheckedHeader, sent, kRequestSalt);
        expected[client.next_slot()] = sent;
        under_way.add(client.send(1 + sent % 2, payload, sent));
        ++sent;
      }
      collected += under_way.collect(take);
      return sent + collected != before;
    };
    while (collected < end && eventually(makes_progress)) {
    }
    EXPECT_EQ(collected, end) << "sent " << sent;
    host.stop();
    EXPECT_EQ(host.state().accepted, 0u);
    EXPECT_EQ(host.base.processed, end);
    host.renew();
  }
}

} // namespace
} // namespace cudaq::realtime::test
