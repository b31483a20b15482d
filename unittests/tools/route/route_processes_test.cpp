// SPDX-License-Identifier: Apache-2.0
// The router over UCX with 1 to 8 servers, each a process: over shared memory and over TCP, while nodes are killed and
// stopped.
//
//   CUDAQ_ROUTE_KILLS=N   nodes that are killed, each while another one is stopped (4)
#include "unittests/support/test_scale.h"
#include "unittests/tools/route/routed_servers.h"

namespace cudaq::realtime::tools::test {
namespace {

using namespace std::chrono_literals;

struct carried {
  const char *name;
  const char *tls;     ///< for UCX
  const char *carrier; ///< what must carry the messages
};

const carried kCarriers[] = {{"SharedMemory", "posix,tcp", "posix"}, {"Tcp", "tcp", "tcp"}};

class route_processes : public testing::Test {
protected:
  explicit route_processes(const carried &by) : by_(by) {}
  void SetUp() override {
    if (no_yaml())
      GTEST_SKIP() << "this build has no YAML parser";
  }
  void expect_carrier(routed_servers &servers) {
    for (const auto &[node, carrier] : servers.wait_joined())
      EXPECT_EQ(carrier, by_.carrier) << node;
  }
  /// The router's end: all lines, and every request that was sent was processed.
  void expect_good_end(routed_servers &servers, checked_streams &streams) {
    streams.finish();
    servers.router().signal(SIGTERM);
    std::string last;
    for (std::string line = servers.router().line(); !line.empty(); line = servers.router().line())
      last = line;
    EXPECT_EQ(last, "CUDAQ_REALTIME_ROUTER_PROCESSED count=" + std::to_string(streams.sent())) << servers.errors();
    EXPECT_EQ(servers.router().wait(), 0) << servers.errors();
  }

  const carried by_;
  scratch_folder folder_;
};

class RouteNodes : public route_processes, public testing::WithParamInterface<std::tuple<carried, std::uint32_t>> {
protected:
  RouteNodes() : route_processes(std::get<0>(GetParam())) {}
};

TEST_P(RouteNodes, AnswerAllStreamsRightly) {
  const std::uint32_t nodes = std::get<1>(GetParam());
  // Neither side gives up the other one while that waits for a core.
  routed_servers servers(folder_.path(), nodes, by_.tls, 20000);
  servers.start_router("lost_after_ms: 20000\nanswer_limit_ms: 20000\n");
  expect_carrier(servers);
  checked_streams streams(servers.router_port(), nodes * kStreamsPerNode, nodes);
  EXPECT_TRUE(streams.all_decode(50));
  EXPECT_EQ(streams.answers(kDroppedStatus) + streams.answers(kNotReadyStatus) + streams.answers(kBusyStatus), 0u);
  expect_good_end(servers, streams);
}

INSTANTIATE_TEST_SUITE_P(Ucx, RouteNodes,
                         testing::Combine(testing::ValuesIn(kCarriers), testing::Values(1u, 2u, 4u, 8u)),
                         [](const auto &tested) {
                           return std::get<0>(tested.param).name + std::to_string(std::get<1>(tested.param));
                         });

class RouteOver : public route_processes, public testing::WithParamInterface<carried> {
protected:
  RouteOver() : route_processes(GetParam()) {}
};

// A node is killed, or stopped for longer than a heartbeat and continued, again and again, under load.
TEST_P(RouteOver, NodesThatDieAndStopCostOnlyStatuses) {
  constexpr std::uint32_t kNodes = 4;
  routed_servers servers(folder_.path(), kNodes, by_.tls);
  servers.start_router("heartbeat_ms: 50\nlost_after_ms: 600\nreconnect_ms: 50\n");
  expect_carrier(servers);
  checked_streams streams(servers.router_port(), kNodes * kStreamsPerNode, 7);
  streams.run_for(200ms);
  std::mt19937 random(11);
  for (std::uint64_t kills = realtime::test::number_from("CUDAQ_ROUTE_KILLS", 4); kills != 0; --kills) {
    const auto node = static_cast<std::uint32_t>(random() % kNodes), other = (node + 1) % kNodes;
    servers.kill(node);
    servers.node(other).signal(SIGSTOP);
    streams.run_for(std::chrono::milliseconds(300 + random() % 700)); // sometimes shorter than lost_after
    servers.start(node);
    servers.node(other).signal(SIGCONT);
    streams.run_for(std::chrono::milliseconds(random() % 400));
  }
  EXPECT_TRUE(streams.all_decode(20)) << servers.errors(); // all come back, each with right answers only
  EXPECT_GT(streams.answers(kDroppedStatus), 0u);
  EXPECT_LT(streams.longest(), 110s); // lost_after, and what a busy machine adds
  expect_good_end(servers, streams);
}

INSTANTIATE_TEST_SUITE_P(Ucx, RouteOver, testing::ValuesIn(kCarriers),
                         [](const auto &tested) { return tested.param.name; });

} // namespace
} // namespace cudaq::realtime::tools::test
