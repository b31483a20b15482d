// SPDX-License-Identifier: Apache-2.0
// The graph scheduler serves every request once, by the right graph, in order.
#include "unittests/gpu/graphs/device_graph_rig.h"

namespace cudaq::realtime::test {
namespace {

class DeviceGraph : public device_graph_test {};

TEST_F(DeviceGraph, AnswersOneRequest) { run_mixed({4, 256, false}, {graph_of(100)}, 1, 1); }

// Known failure 3.
TEST_F(DeviceGraph, GoesOnBeyondTheLaunchLimitWithOneScheduler) {
  scheduler_options alone;
  alone.members = 1;
  run_mixed({4, 256, false}, {graph_of(100)}, 1000, 1, alone);
}

TEST_F(DeviceGraph, GoesOnBeyondTheLaunchLimitInRotation) { run_mixed({4, 256, false}, {graph_of(100)}, 5000, 1); }

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

// Known failure 15.
TEST_F(DeviceGraph, GraphsAndDeviceCallsInOneTableWithRoutingKeys) {
  run_mixed({64, 256, false}, {graph_of(100, 1), graph_of(100, 2), graph_of(101), call_of(1), call_of(2)},
            messages_or(100000), 64);
}

TEST_F(DeviceGraph, ServesInAnyOrderByKey) {
  scheduler_options o;
  o.ordering = CUDAQ_ORDERING_ANY;
  run_mixed({64, 256, false}, {graph_of(100, 1), graph_of(100, 2), graph_of(101), call_of(1)}, 20000, 64, o);
}

TEST_F(DeviceGraph, ServesMoreGraphsThanAWarpHasLanes) {
  graph_target pool = graph_of(100, 0, 40);
  pool.task.wait_ns = 200'000; // so that all of them are in flight
  run_mixed({128, 256, false}, {graph_of(101, 0, 35), pool, call_of(1)}, 20000, 128, {}, false);
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

// 200,000 slots with as many graphs: the scheduler's state does not fit into shared memory.
TEST_F(DeviceGraph, ServesWithItsStateInDeviceMemory) {
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
    load.run(303, 3, [](std::uint32_t m) { return m % 2; });
    scheduler.stop();
  }
  load.expect_clean();
}

} // namespace
} // namespace cudaq::realtime::test
