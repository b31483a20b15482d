// SPDX-License-Identifier: Apache-2.0
// Graphs together with the other features of a host dispatcher: handler pools, shared rings, other wait policies. On
// fake graphs.
#include "unittests/host_dispatcher/fake_graphs.h"

namespace cudaq::realtime::test {
namespace {

class GraphMix : public ::testing::Test {
protected:
  std::vector<std::unique_ptr<checked_function>> functions;
  static constexpr std::uint32_t kMessages = kEmulated ? 4000 : 20000;
  const std::uint32_t messages = load_size(kMessages);

  checked_function *add() {
    functions.push_back(std::make_unique<checked_function>(static_cast<std::uint32_t>(functions.size() + 1), messages));
    checked_function::v1_by_id[functions.back()->id] = functions.back().get();
    return functions.back().get();
  }
  cudaq_host_worker_t graph(std::uint32_t completion) { return fake_worker(add()->id, 0, completion); }
  detail::v2_handler handler() {
    checked_function *f = add();
    return {f->id, checked_function::serve, f, {}};
  }
  traffic_plan traffic_of_all() const { return traffic_for(functions, messages); }
};

// Known failure 19.
TEST_F(GraphMix, PoolHandlersAndGraphsShareARing) {
  for (const bool markers : {true, false}) {
    functions.clear();
    graph_rig_plan plan;
    plan.shape = {16, 128, false};
    plan.markers = markers;
    plan.when_busy = CUDAQ_BUSY_WORKERS_PASS_FUNCTION;
    plan.workers = {graph(CUDAQ_WORKER_LIBRARY_PUBLISHES), graph(CUDAQ_WORKER_GRAPH_PUBLISHES),
                    graph(CUDAQ_WORKER_CALLER_PUBLISHES)};
    plan.v2 = {handler(), handler()};
    plan.pool = 2;
    graph_rig rig(plan);
    traffic load(rig.ring, traffic_of_all());
    load.run();
    load.expect_clean();
    EXPECT_TRUE(rig.stop());
    EXPECT_EQ(rig.stats().responded, messages);
    EXPECT_LT(rig.stats().launches, rig.stats().dispatched);
  }
}

// Known failure 14.
TEST_F(GraphMix, GraphsAndHandlersOfTwoDispatchersShareARing) {
  for (const std::uint32_t when_busy : {CUDAQ_BUSY_WORKERS_WAIT, CUDAQ_BUSY_WORKERS_PASS_FUNCTION}) {
    functions.clear();
    graph_rig_plan plan;
    plan.shape = {8, 128, false};
    plan.shared = true;
    plan.default_owner = true;
    plan.when_busy = when_busy;
    plan.workers = {graph(CUDAQ_WORKER_LIBRARY_PUBLISHES), graph(CUDAQ_WORKER_GRAPH_PUBLISHES)};
    graph_rig graphs(plan);
    graph_rig_plan other;
    other.shape = plan.shape;
    other.shared = true;
    other.ring = &graphs.ring;
    other.router = graphs.router();
    other.v2 = {handler(), handler()};
    other.device_threads = 1;
    graph_rig handlers(other);
    traffic load(graphs.ring, traffic_of_all());
    load.run();
    load.expect_clean();
    EXPECT_TRUE(handlers.stop());
    EXPECT_TRUE(graphs.stop());
    EXPECT_EQ(graphs.stats().responded + handlers.stats().responded, messages);
    EXPECT_NE(graphs.stats().launches, 0u);
    EXPECT_EQ(handlers.stats().launches, 0u);
  }
}

// Known failure 28.
TEST_F(GraphMix, ABlockingDispatcherLosesNothing) {
  graph_rig_plan plan;
  plan.shape = {16, 128, true};
  plan.wait_policy = CUDAQ_WAIT_BLOCK;
  plan.workers = {graph(CUDAQ_WORKER_LIBRARY_PUBLISHES), graph(CUDAQ_WORKER_CALLER_PUBLISHES)};
  graph_rig rig(plan);
  traffic load(rig.ring, traffic_of_all());
  load.run();
  load.expect_clean();
  EXPECT_TRUE(rig.stop());
  EXPECT_EQ(rig.stats().responded, messages);
}

} // namespace
} // namespace cudaq::realtime::test
