// SPDX-License-Identifier: Apache-2.0
// Launch hooks that end their thread (pthread_exit). They run on the dispatcher's thread, so the run ends with it.
#include "unittests/host_dispatcher/fake_graphs.h"

#include <pthread.h>

namespace cudaq::realtime::test {
namespace {

struct flavour {
  const char *name;
  std::uint32_t completion;
  bool markers;
};

/// Worker 0, of function 1, has the hook and the completion of the flavour. Worker 1, of function 2, has no hook.
class HookExit : public two_graphs, public ::testing::WithParamInterface<flavour> {
protected:
  HookExit() : two_graphs(GetParam().completion) {}
  void SetUp() override {
    two_graphs::SetUp();
    plan.markers = GetParam().markers;
  }
  static void expect_end(graph_rig &rig) {
    EXPECT_TRUE(eventually([&] { return rig.dispatcher.exited(); })) << rig.dispatcher.describe();
    EXPECT_NE(rig.dispatcher.exit_reason().text().find("function 0x00000001"), std::string::npos);
    EXPECT_TRUE(rig.stop());
    const cudaq_dispatcher_stats_t stats = rig.stats();
    EXPECT_EQ(stats.in_flight, 0u);
    EXPECT_EQ(stats.busy_slots, 0u);
    EXPECT_EQ(stats.responded, 2u);
  }
};

// Known failure 55.
TEST_P(HookExit, BeforeTheLaunchFailsItsRequestAndTheRun) {
  plan.workers[0].pre_launch_fn = [](void *, void *, cudaStream_t) { pthread_exit(nullptr); };
  graph_rig rig(plan);
  rig.send(0, 2, 5, 1);
  expect_answer(rig, 0, 0);
  rig.send(1, 1, 5, 2);
  ASSERT_TRUE(eventually([&] { return rig.answered(1); })) << rig.dispatcher.describe();
  if (GetParam().markers)
    EXPECT_EQ(rig.look(1), CUDAQ_TX_ERROR) << "as a launch that fails";
  else
    EXPECT_EQ(rig.status_of(1), CUDAQ_RPC_ERR_LAUNCH_FAILED);
  expect_end(rig);
}

// The graph runs already, and may have answered: its answer is the only one.
TEST_P(HookExit, AfterTheLaunchLeavesTheRequestToItsGraph) {
  spin_gate gate;
  plan.workers[0].post_launch_data = &gate;
  plan.workers[0].post_launch_fn = [](void *user, void *, cudaStream_t) {
    static_cast<spin_gate *>(user)->pass();
    pthread_exit(nullptr);
  };
  graph_rig rig(plan);
  rig.send(0, 2, 5, 1);
  expect_answer(rig, 0, 0);
  rig.send(1, 1, 5, 2);
  const bool at_once = GetParam().completion == CUDAQ_WORKER_GRAPH_PUBLISHES; // not only when the hook is over
  if (at_once) {
    expect_answer(rig, 1, 0);
    cudaq_host_ringbuffer_clear_slot(&rig.ring.ring, 1);
  }
  gate.open = true;
  if (!at_once)
    expect_answer(rig, 1, 0);
  expect_end(rig);
  EXPECT_EQ(rig.look(1), at_once ? CUDAQ_TX_EMPTY : CUDAQ_TX_READY) << "a second answer";
  EXPECT_EQ(rig.stats().launches, 2u);
}

INSTANTIATE_TEST_SUITE_P(Workers, HookExit,
                         ::testing::Values(flavour{"Library", CUDAQ_WORKER_LIBRARY_PUBLISHES, true},
                                           flavour{"LibraryWithoutMarkers", CUDAQ_WORKER_LIBRARY_PUBLISHES, false},
                                           flavour{"Graph", CUDAQ_WORKER_GRAPH_PUBLISHES, true},
                                           flavour{"GraphWithoutMarkers", CUDAQ_WORKER_GRAPH_PUBLISHES, false},
                                           flavour{"Caller", CUDAQ_WORKER_CALLER_PUBLISHES, true},
                                           flavour{"CallerWithoutMarkers", CUDAQ_WORKER_CALLER_PUBLISHES, false}),
                         [](const auto &tested) { return std::string(tested.param.name); });

} // namespace
} // namespace cudaq::realtime::test
