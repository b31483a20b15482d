// SPDX-License-Identifier: Apache-2.0
// The graph scheduler serves: every request once, by the right graph, in order.
#include "unittests/kernels/device_graph_rig.h"

namespace cudaq::realtime::test {
namespace {

// Before the driver looks at it: each scheduler is a stream that does not end.
[[maybe_unused]] const int kQueues = setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);

class DeviceGraph : public device_graph_test {};

graph_target graph_of(std::uint32_t id, std::uint64_t key = 0, std::uint32_t instances = 1) {
  graph_target t;
  t.function_id = id, t.key = key, t.instances = instances;
  return t;
}
graph_target call_of(std::uint32_t id) { return graph_of(id, 0, 0); }

/// Random targets, `deep` requests under way.
void run_mixed(const ring_shape &shape, std::vector<graph_target> targets, std::uint32_t messages, std::uint32_t deep,
               scheduler_options o = {}, bool exclusive = true) {
  const host_ring ring(shape, CUDAQ_MEMORY_MAPPED);
  const graph_set graphs(std::move(targets), shape.slot_size, messages, o.publishes, o.one_context);
  graph_scheduler scheduler(ring, graphs, o);
  ASSERT_NO_FATAL_FAILURE(scheduler.start());
  graph_traffic load(ring, graphs);
  std::mt19937 random(3);
  const auto n = static_cast<std::uint32_t>(graphs.targets.size());
  load.run(messages, deep, [&](std::uint32_t) { return static_cast<std::uint32_t>(random()) % n; });
  scheduler.stop();
  load.expect_clean(exclusive);
  EXPECT_EQ(load_acquire(*scheduler.stats), messages);
}

TEST_F(DeviceGraph, AnswersOneRequest) { run_mixed({4, 256, false}, {graph_of(100)}, 1, 1); }

TEST_F(DeviceGraph, Row03_GoesOnBeyondTheLaunchLimitWithOneScheduler) {
  scheduler_options alone;
  alone.members = 1;
  run_mixed({4, 256, false}, {graph_of(100)}, 1000, 1, alone);
}

TEST_F(DeviceGraph, Row03_GoesOnBeyondTheLaunchLimitInRotation) {
  run_mixed({4, 256, false}, {graph_of(100)}, 5000, 1);
}

TEST_F(DeviceGraph, ServesWithOneContextOneAtATime) {
  scheduler_options o;
  o.one_context = true;
  run_mixed({8, 256, false}, {graph_of(100), graph_of(101), call_of(1)}, 5000, 8, o);
}

TEST_F(DeviceGraph, LetsGraphsPublishByThemselves) {
  scheduler_options o;
  o.publishes = true;
  run_mixed({8, 256, false}, {graph_of(100), graph_of(101), call_of(1)}, 20000, 8, o);
}

TEST_F(DeviceGraph, Row15_GraphsAndDeviceCallsInOneTableWithRoutingKeys) {
  run_mixed({64, 256, false}, {graph_of(100, 1), graph_of(100, 2), graph_of(101), call_of(1), call_of(2)},
            messages_or(100000), 64);
}

TEST_F(DeviceGraph, ServesInPlace) {
  run_mixed({16, 256, true}, {graph_of(100, 7), graph_of(100, 9), graph_of(101), call_of(1)}, 20000, 16);
}

TEST_F(DeviceGraph, ServesOneSlotAndTwo) {
  run_mixed({1, 256, false}, {graph_of(100), call_of(1)}, 3000, 1);
  run_mixed({2, 128, false}, {graph_of(100), call_of(1)}, 3000, 2);
}

TEST_F(DeviceGraph, APoolServesSideBySide) {
  graph_target pool = graph_of(100, 0, 4);
  pool.task.wait_ns = 20000;
  run_mixed({32, 256, false}, {pool, graph_of(101), call_of(1)}, 20000, 32, {}, false);
}

// 4000 slots: the ledger does not fit into shared memory with as many graphs.
TEST_F(DeviceGraph, ServesWithALedgerInDeviceMemory) {
  run_mixed({200000, 128, false}, {graph_of(100), graph_of(101), call_of(1)}, 20000, 64);
}

TEST_F(DeviceGraph, ServesAgainAfterItHasEnded) {
  const host_ring ring({4, 256, false}, CUDAQ_MEMORY_MAPPED);
  const graph_set graphs({graph_of(100), call_of(1)}, 256, 3000);
  graph_scheduler scheduler(ring, graphs);
  graph_traffic load(ring, graphs);
  for (int round = 0; round < 10; ++round) {
    ASSERT_NO_FATAL_FAILURE(scheduler.start());
    EXPECT_EQ(cudaq_launch_dispatch_graph(scheduler.get, scheduler.stream.get), cudaErrorNotReady);
    EXPECT_EQ(cudaq_destroy_dispatch_graph(scheduler.get), cudaErrorNotReady);
    load.run(303, 3, [](std::uint32_t m) { return m % 2; });
    scheduler.stop();
  }
  load.expect_clean();
}

} // namespace
} // namespace cudaq::realtime::test
