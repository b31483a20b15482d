// SPDX-License-Identifier: Apache-2.0
// Hazards between a slot, its graph and the producer: slots refilled early, graphs that cannot be launched, pools
// without an idle instance, stops at any moment.
#include "unittests/gpu/graphs/device_graph_rig.h"

#include <thread>

namespace cudaq::realtime::test {
namespace {

class DeviceGraphHazards : public device_graph_test {};

scheduler_options publishing() {
  scheduler_options o;
  o.publishes = true;
  return o;
}

// The graph waits before it reads its request. The producer checks only whether a slot is free, and then refills it.
// Known failure 4.
TEST_F(DeviceGraphHazards, ASlotIsNotReleasedWhileItsGraphStillReadsIt) {
  graph_target late = graph_of(100);
  late.task.wait_ns = 50'000;
  for (const scheduler_options &o : {scheduler_options{}, publishing()})
    for (const ring_shape &shape : {ring_shape{1, 256, false}, ring_shape{2, 256, true}, ring_shape{8, 256, false}})
      run_mixed(shape, {late, graph_of(101), call_of(1)}, 3000, shape.num_slots, o);
}

// The graph has raised its flag but still runs: a new launch of the same exec is refused for a while.
TEST_F(DeviceGraphHazards, AGraphThatLingersIsLaunchedAgainWhenItIsOver) {
  graph_target lingers = graph_of(100);
  lingers.task.linger_ns = 30'000;
  for (const scheduler_options &o : {scheduler_options{}, publishing()})
    run_mixed({8, 256, false}, {lingers, graph_of(101)}, 3000, 8, o);
}

// Known failure 3.
TEST_F(DeviceGraphHazards, AGraphThatWasNotUploadedIsAnsweredWithAnError) {
  graph_target absent = graph_of(100);
  absent.not_uploaded = 1;
  const host_ring ring({8, 256, false}, CUDAQ_MEMORY_MAPPED);
  const graph_set graphs({graph_of(101), absent, call_of(1)}, 256, 300);
  graph_scheduler scheduler(ring, graphs);
  ASSERT_NO_FATAL_FAILURE(scheduler.start());
  graph_traffic load(ring, graphs);
  load.failing = 1;
  load.expected_status = CUDAQ_RPC_ERR_LAUNCH_FAILED;
  load.run(300, 8, [](std::uint32_t m) { return m % 3; });
  scheduler.stop();
  load.expect_clean();
}

// One instance of the pool refuses every launch.
TEST_F(DeviceGraphHazards, AGoodInstanceServesBesideOneThatWasNotUploaded) {
  graph_target pool = graph_of(100, 0, 2);
  pool.not_uploaded = 1;
  run_mixed({8, 256, false}, {pool, graph_of(101)}, 3000, 8);
}

TEST_F(DeviceGraphHazards, CreateRefusesOneGraphWithTwoContextsAndAContextThatIsNotAligned) {
  const host_ring ring({4, 256, false}, CUDAQ_MEMORY_MAPPED);
  graph_set graphs({graph_of(100), graph_of(101)}, 256, 100);
  void *const second = graphs.contexts[1];
  graphs.contexts[1] = static_cast<char *>(second) + 4;
  EXPECT_EQ(graph_scheduler(ring, graphs).created, cudaErrorInvalidValue);
  graphs.contexts[1] = second;
  const std::vector<cudaq_function_entry_t> entries = graphs.entries;
  graphs.entries[1].handler = entries[0].handler;
  graphs.table_dev = std::make_unique<device_array<cudaq_function_entry_t>>(graphs.entries);
  EXPECT_EQ(graph_scheduler(ring, graphs).created, cudaErrorInvalidValue);
  graphs.entries = entries; // each graph is destroyed once
}

// Known failure 11.
TEST_F(DeviceGraphHazards, TwoSchedulersServeSideBySide) {
  struct side {
    side()
        : ring({16, 256, false}, CUDAQ_MEMORY_MAPPED),
          graphs({graph_of(100, 1), graph_of(100, 2), graph_of(101)}, 256, 20000) {}
    host_ring ring;
    graph_set graphs;
  } a, b;
  graph_scheduler first(a.ring, a.graphs), second(b.ring, b.graphs);
  ASSERT_NO_FATAL_FAILURE(first.start());
  ASSERT_NO_FATAL_FAILURE(second.start());
  graph_traffic to_first(a.ring, a.graphs, 1), to_second(b.ring, b.graphs, 2);
  const auto any = [](std::uint32_t m) { return m * 2654435761u % 3; };
  std::thread other([&] { to_second.run(20000, 16, any); });
  to_first.run(20000, 16, any);
  other.join();
  first.stop();
  to_second.run(1000, 16, any); // the end of the first does not affect the second
  second.stop();
  to_first.expect_clean();
  to_second.expect_clean();
}

// Known failure 19.
TEST_F(DeviceGraphHazards, APoolWithoutAnIdleGraphKeepsItsRequestsAndLetsOthersPass) {
  auto *const gate = mapped_word<std::uint32_t>();
  graph_target pool = graph_of(100, 0, 2);
  pool.task.gate = gate;
  const host_ring ring({64, 256, false}, CUDAQ_MEMORY_MAPPED);
  const graph_set graphs({pool, graph_of(101), call_of(1)}, 256, 1000);
  graph_scheduler scheduler(ring, graphs);
  ASSERT_NO_FATAL_FAILURE(scheduler.start());
  graph_traffic load(ring, graphs);
  std::vector<std::uint32_t> waiting;
  for (int n = 0; n < 7; ++n)
    waiting.push_back(load.put(0));
  for (int n = 0; n < 50; ++n)
    EXPECT_TRUE(load.await(load.put(n % 2 == 0 ? 1U : 2U)));
  for (const std::uint32_t slot : waiting)
    EXPECT_FALSE(load.collect(slot)) << "the gate is closed";
  store_release(*gate, 1u);
  for (const std::uint32_t slot : waiting)
    EXPECT_TRUE(load.await(slot));
  scheduler.stop();
  load.expect_clean(false);
}

// A stop leaves the requests that were not accepted in the ring. The next start serves them.
// Known failure 12.
TEST_F(DeviceGraphHazards, StopsAThousandTimesAtAnyMomentAndLosesNothing) {
  graph_target slow = graph_of(100);
  slow.task.wait_ns = 20'000;
  const host_ring ring({16, 256, false}, CUDAQ_MEMORY_MAPPED);
  const graph_set graphs({slow, graph_of(101, 0, 2), call_of(1)}, 256, 4'000'000);
  graph_scheduler scheduler(ring, graphs);
  graph_traffic load(ring, graphs);
  std::atomic<bool> enough{false};
  ASSERT_NO_FATAL_FAILURE(scheduler.start());
  std::thread client([&] {
    while (!enough.load())
      load.run(100, 12, [](std::uint32_t m) { return m * 2654435761u % 3; });
  });
  std::mt19937 random(7);
  for (int stop = 0; stop < 1000 && !HasFailure(); ++stop) {
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 2000));
    scheduler.stop();
    scheduler.start();
  }
  enough.store(true);
  client.join();
  scheduler.stop();
  load.expect_clean(false);
}

} // namespace
} // namespace cudaq::realtime::test
