// SPDX-License-Identifier: Apache-2.0
// The graph scheduler, started by cudaq_dispatcher_start.
#include "unittests/gpu/graphs/device_graph_dispatcher.h"

namespace cudaq::realtime::test {
namespace {

class DeviceGraphDispatcher : public device_graph_test {
protected:
  manager_handle manager_;
};

std::uint32_t by_turns(std::uint32_t m) { return m % 3; }

// Known failure 13.
TEST_F(DeviceGraphDispatcher, ServesAndCountsAndSaysSo) {
  const host_ring ring({16, 256, false}, CUDAQ_MEMORY_MAPPED);
  const graph_set graphs({graph_of(100, 1), graph_of(100, 2), call_of(1)}, 256, 12000);
  graph_dispatcher dispatcher(manager_.get, ring, graphs);
  ASSERT_NO_FATAL_FAILURE(dispatcher.expect_start());
  graph_traffic load(ring, graphs);
  load.run(6000, 16, by_turns);
  EXPECT_TRUE(eventually([&] { return dispatcher.stats().responded == 6000; }));
  const cudaq_dispatcher_stats_t now = dispatcher.stats();
  EXPECT_EQ(now.dispatched, 6000u);
  EXPECT_EQ(now.launches, 4000u);
  EXPECT_GE(now.relaunches, 30u);
  EXPECT_EQ(now.in_flight, 0u);
  const std::string dump = dispatcher.dump();
  EXPECT_NE(dump.find("graphs: 2, 4000 launches, by 8 schedulers"), std::string::npos) << dump;
  const std::size_t at = dump.find(" of them without a successor");
  ASSERT_NE(at, std::string::npos) << dump;
  EXPECT_LE(std::stoul(dump.substr(dump.rfind(' ', at - 1))), 3u) << "the schedulers do not take turns";
  CUDAQ_EXPECT_OK_WITHIN(kOneSecond, cudaq_dispatcher_stop(dispatcher.get));
  ASSERT_NO_FATAL_FAILURE(dispatcher.expect_start());
  load.run(6000, 16, by_turns); // continues in the middle of the ring, where it stopped
  EXPECT_TRUE(eventually([&] { return dispatcher.stats().responded == 12000; }));
  EXPECT_EQ(dispatcher.stats().launches, 8000u);
  CUDAQ_EXPECT_OK_WITHIN(kOneSecond, cudaq_dispatcher_stop(dispatcher.get));
  load.expect_clean();
}

TEST_F(DeviceGraphDispatcher, ServesGraphsThatPublish) {
  const host_ring ring({16, 256, false}, CUDAQ_MEMORY_MAPPED);
  const graph_set graphs({graph_of(100, 1), graph_of(100, 2), call_of(1)}, 256, 6000, true);
  graph_dispatcher dispatcher(manager_.get, ring, graphs, 0, CUDAQ_GRAPH_IO_PUBLISHING);
  graph_traffic load(ring, graphs);
  for (int run = 0; run < 3; ++run) {
    ASSERT_NO_FATAL_FAILURE(dispatcher.expect_start());
    load.run(2000, 16, by_turns);
    CUDAQ_EXPECT_OK_WITHIN(kOneSecond, cudaq_dispatcher_stop(dispatcher.get));
  }
  load.expect_clean();
}

TEST_F(DeviceGraphDispatcher, EndsByTheCallersFlagToo) {
  const host_ring ring({4, 256, false}, CUDAQ_MEMORY_MAPPED);
  const graph_set graphs({graph_of(100)}, 256, 1000);
  graph_dispatcher dispatcher(manager_.get, ring, graphs);
  graph_traffic load(ring, graphs);
  for (int run = 0; run < 5; ++run) {
    ASSERT_NO_FATAL_FAILURE(dispatcher.expect_start());
    load.run(150, 4, [](std::uint32_t) { return 0u; });
    dispatcher.raise_callers_flag();
    EXPECT_TRUE(eventually([&] { return dispatcher.state() == CUDAQ_DISPATCHER_STOPPED; }));
  }
  load.expect_clean();
}

TEST_F(DeviceGraphDispatcher, RefusesALaunchFunctionWithoutSchedulers) {
  const host_ring ring({4, 256, false}, CUDAQ_MEMORY_MAPPED);
  const graph_set graphs({graph_of(100)}, 256, 100);
  graph_dispatcher dispatcher(manager_.get, ring, graphs);
  CUDAQ_ASSERT_OK(cudaq_dispatcher_set_launch_fn(dispatcher.get, cudaq_launch_dispatch_kernel_regular));
  const call_result started = dispatcher.start();
  EXPECT_EQ(started.status, CUDAQ_ERR_UNSUPPORTED);
  EXPECT_NE(started.text.find("cudaq_launch_dispatch_kernel_graph_v2"), std::string::npos) << started.text;
  CUDAQ_ASSERT_OK(cudaq_dispatcher_set_launch_fn_v2(dispatcher.get, cudaq_launch_dispatch_kernel_graph_v2));
  ASSERT_NO_FATAL_FAILURE(dispatcher.expect_start());
  graph_traffic load(ring, graphs);
  load.run(100, 4, [](std::uint32_t) { return 0u; });
}

TEST_F(DeviceGraphDispatcher, RefusesContextsThatDoNotFitTheTable) {
  const host_ring ring({4, 256, false}, CUDAQ_MEMORY_MAPPED);
  const graph_set graphs({call_of(1), graph_of(100)}, 256, 100);
  graph_dispatcher dispatcher(manager_.get, ring, graphs);
  const auto refused = [&](const std::vector<void *> &contexts, const char *text) {
    dispatcher.set_contexts(contexts);
    const call_result started = dispatcher.start();
    EXPECT_EQ(started.status, CUDAQ_ERR_INVALID_ARG);
    EXPECT_NE(started.text.find(text), std::string::npos) << started.text;
  };
  refused({graphs.contexts[0]}, "graph_io->num_contexts is 1, the function table has 2 entries");
  refused({graphs.contexts[0], nullptr}, "graph_io->contexts[1] is (nil)");
  refused({graphs.contexts[0], static_cast<char *>(graphs.contexts[1]) + 4}, "a multiple of 8");
  dispatcher.set_contexts(graphs.contexts);
  ASSERT_NO_FATAL_FAILURE(dispatcher.expect_start());
}

// Known failure 12.
TEST_F(DeviceGraphDispatcher, StopHasADeadlineAndMayBeRepeated) {
  auto *const gate = mapped_word<std::uint32_t>();
  graph_target stuck = graph_of(100);
  stuck.task.gate = gate;
  const host_ring ring({4, 256, false}, CUDAQ_MEMORY_MAPPED);
  const graph_set graphs({stuck}, 256, 100);
  graph_dispatcher dispatcher(manager_.get, ring, graphs);
  ASSERT_NO_FATAL_FAILURE(dispatcher.expect_start());
  graph_traffic load(ring, graphs);
  const std::uint32_t slot = load.put(0);
  EXPECT_TRUE(eventually([&] { return dispatcher.stats().dispatched == 1; }));
  const call_result stopped =
      CUDAQ_RESULT_WITHIN(kOneSecond, cudaq_dispatcher_stop_timeout(dispatcher.get, 100'000'000));
  EXPECT_EQ(stopped.status, CUDAQ_ERR_TIMEOUT) << stopped.text;
  EXPECT_EQ(dispatcher.state(), CUDAQ_DISPATCHER_STOPPING);
  EXPECT_EQ(dispatcher.start().status, CUDAQ_ERR_STATE);
  store_release(*gate, 1u);
  CUDAQ_EXPECT_OK_WITHIN(kOneSecond, cudaq_dispatcher_stop(dispatcher.get));
  EXPECT_TRUE(load.await(slot));
  ASSERT_NO_FATAL_FAILURE(dispatcher.expect_start());
  EXPECT_TRUE(load.await(load.put(0)));
}

// The second dispatcher is created, and uploads its schedulers, while the first one runs.
// Known failure 11.
TEST_F(DeviceGraphDispatcher, ASecondOneStartsBesideTheFirst) {
  const host_ring ring_a({16, 256, false}, CUDAQ_MEMORY_MAPPED), ring_b({16, 256, false}, CUDAQ_MEMORY_MAPPED);
  const graph_set graphs_a({graph_of(100), graph_of(101)}, 256, 10000);
  const graph_set graphs_b({graph_of(100), graph_of(101)}, 256, 10000);
  graph_dispatcher a(manager_.get, ring_a, graphs_a), b(manager_.get, ring_b, graphs_b, 2);
  graph_traffic to_a(ring_a, graphs_a), to_b(ring_b, graphs_b);
  const auto any = [](std::uint32_t m) { return m % 2; };
  ASSERT_NO_FATAL_FAILURE(a.expect_start());
  to_a.run(2000, 16, any);
  for (int run = 0; run < 20; ++run) {
    ASSERT_NO_FATAL_FAILURE(b.expect_start());
    to_b.run(200, 16, any);
    to_a.run(200, 16, any);
    CUDAQ_EXPECT_OK_WITHIN(kOneSecond, cudaq_dispatcher_stop(b.get));
  }
  to_a.run(1000, 16, any);
  CUDAQ_EXPECT_OK_WITHIN(kOneSecond, cudaq_dispatcher_stop(a.get));
  to_a.expect_clean();
  to_b.expect_clean();
}

// The manager keeps the scheduler graphs of a destroyed dispatcher. The next one uses them, whatever its number of
// schedulers.
TEST_F(DeviceGraphDispatcher, OthersComeAndGoBesideIt) {
  const host_ring ring_a({16, 256, false}, CUDAQ_MEMORY_MAPPED), ring_b({16, 256, false}, CUDAQ_MEMORY_MAPPED);
  const graph_set graphs_a({graph_of(100)}, 256, 10000), graphs_b({graph_of(100), call_of(1)}, 256, 10000);
  graph_dispatcher a(manager_.get, ring_a, graphs_a);
  graph_traffic to_a(ring_a, graphs_a), to_b(ring_b, graphs_b);
  ASSERT_NO_FATAL_FAILURE(a.expect_start());
  for (const std::uint32_t schedulers : {2u, 8u, 1u, 0u, 3u}) {
    graph_dispatcher b(manager_.get, ring_b, graphs_b, schedulers);
    ASSERT_NO_FATAL_FAILURE(b.expect_start());
    to_b.run(512, 16, [](std::uint32_t m) { return m % 2; });
    to_a.run(200, 16, [](std::uint32_t) { return 0u; });
    CUDAQ_EXPECT_OK_WITHIN(kOneSecond, cudaq_dispatcher_stop(b.get));
  }
  CUDAQ_EXPECT_OK_WITHIN(kOneSecond, cudaq_dispatcher_stop(a.get));
  to_a.expect_clean();
  to_b.expect_clean();
}

// One process per test, because the fault makes the device unusable. Nothing on the device is freed.
// Known failure 9.
TEST_F(DeviceGraphDispatcher, AFaultInAGraphIsReportedOnceAndNothingHangs) {
  graph_target faulty = graph_of(100);
  faulty.task.trap = 1;
  cudaq_dispatch_manager_t *manager = nullptr;
  CUDAQ_ASSERT_OK(cudaq_dispatch_manager_create(&manager));
  auto *ring = new host_ring({4, 256, false}, CUDAQ_MEMORY_MAPPED); // never freed
  auto *graphs = new graph_set({faulty}, 256, 100);                 // never freed
  {
    graph_dispatcher dispatcher(manager, *ring, *graphs);
    dispatcher.fault_expected = true;
    ASSERT_NO_FATAL_FAILURE(dispatcher.expect_start());
    graph_traffic load(*ring, *graphs);
    load.put(0);
    EXPECT_TRUE(eventually([&] { return dispatcher.state() == CUDAQ_DISPATCHER_FAILED; }, kOneSecond));
    const call_result stopped = CUDAQ_RESULT_WITHIN(kOneSecond, cudaq_dispatcher_stop(dispatcher.get));
    EXPECT_EQ(stopped.status, CUDAQ_ERR_CUDA) << stopped.text;
    EXPECT_NE(stopped.text.find("fault"), std::string::npos) << stopped.text;
    EXPECT_NE(dispatcher.start().status, CUDAQ_OK);
    CUDAQ_EXPECT_OK_WITHIN(kOneSecond, cudaq_dispatcher_stop(dispatcher.get));
  }
  (void)CUDAQ_RESULT_WITHIN(kOneSecond, cudaq_dispatch_manager_destroy(manager));
}

} // namespace
} // namespace cudaq::realtime::test
