// SPDX-License-Identifier: Apache-2.0
// The router with nodes that are killed, lie, or are not there.
#include "unittests/support/program_paths.h"
#include "unittests/support/test_scale.h"
#include "unittests/tools/route/routed_servers.h"
#include "unittests/transport/provider_library.h"

#include <atomic>
#include <thread>

namespace cudaq::realtime::tools::test {
namespace {

// The router over UCX with 1 to 8 servers, each a process: over shared memory and over TCP, while nodes are killed and
// stopped.
//
//   CUDAQ_ROUTE_KILLS=N   nodes that are killed, each while another one is stopped (4)

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

// What the program `route` does when the transport in front fails, when an answer is too long for it, and when a
// changed configuration cannot be taken.

class RouteFaults : public testing::Test {
protected:
  void SetUp() override {
    if (no_yaml())
      GTEST_SKIP() << "this build has no YAML parser";
  }
  std::filesystem::path path(const std::string &name) const { return folder_.path() / name; }
  std::vector<std::string> route_arguments(const std::vector<std::string> &options) const {
    std::vector<std::string> all{"route",
                                 "--config",
                                 path("route.yaml"),
                                 "--transport",
                                 CUDAQ_TEST_SOCKET_PROVIDER,
                                 "--",
                                 "--socket=" + path("front.sock").string()};
    all.insert(all.end(), options.begin(), options.end());
    return all;
  }
  std::string errors() const { return read_file(path("stderr")); }

  scratch_folder folder_;
};

TEST_F(RouteFaults, EndsWithATextWhenTheTransportInFrontFails) {
  write(path("route.yaml"), "nodes: [{name: a, port: 1}]\n");
  const program_result result =
      run_program("route --config '" + path("route.yaml").string() + "' --transport '" + CUDAQ_TEST_FAILING_PROVIDER +
                  "' -- --socket=" + path("front.sock").string());
  EXPECT_EQ(result.exit_code, 3) << "124: it did not end";
  EXPECT_TRUE(contains(result.err, "the provider of the test has no peer")) << result.err;
}

// 800 observables are 100 bytes; the slots in front have 64, and take results of 40.
TEST_F(RouteFaults, AnAnswerThatIsTooLongForTheFrontIsAStatusAndNotLost) {
  write(path("node.yaml"), "decoders:\n  - id: 6\n    type: lookup\n    dem: |\n      error(0.1) D0 L799\n");
  running_program node(
      {"serve", "--config", path("node.yaml"), "--transport", "ucx", "--wait", "block", "--", "--port=0", "--tls=tcp"},
      path("stderr"));
  const std::string ready = node.line();
  ASSERT_TRUE(ready.starts_with("QEC_DECODING_SERVER_READY ")) << errors();
  write(path("route.yaml"), "nodes: [{name: a, decoders: [6], port: " + std::to_string(number_in(ready, "port")) +
                                "}]\ntls: tcp\nlost_after_ms: 20000\nanswer_limit_ms: 20000\n");
  running_program router(route_arguments({"--slot-size=64"}), path("stderr"));
  ASSERT_TRUE(router.line().starts_with("CUDAQ_REALTIME_ROUTER_READY ")) << errors();
  ASSERT_EQ(router.line(), "CUDAQ_REALTIME_ROUTER_NODE name=a state=joined carrier=tcp") << errors();
  socket_peer peer(path("front.sock"));
  for (std::uint64_t shot = 0; shot < 3; ++shot) { // neither the stream nor a credit is lost
    EXPECT_EQ(peer.call(kEnqueue, joined(numbers({6, shot, 0, 1}), {1})).status, 0) << errors();
    EXPECT_EQ(peer.call(kGet, joined(numbers({6, 800}), {1})).status, CUDAQ_RPC_ERR_RESULT_TOO_LARGE) << errors();
  }
  EXPECT_EQ(peer.call(kReset, numbers({6})).status, 0);
}

TEST_F(RouteFaults, RejectsAChangeThatItCannotMakeWithTheReason) {
  const std::string nodes = "nodes: [{name: a, port: 1, decoders: [1]}]\n";
  write(path("route.yaml"), nodes);
  running_program router(route_arguments({}), path("stderr"));
  ASSERT_TRUE(router.line().starts_with("CUDAQ_REALTIME_ROUTER_READY ")) << errors();
  const std::pair<std::string, std::string> rejected[] = {
      {"nodes: [\n", "not YAML"},
      {"nodes: [{name: a, port: 1, decoders: [2]}]\n", "nodes: only drain can change while the router runs"},
      {"nodes: [{name: a, port: 2, decoders: [1]}]\n", "nodes: only drain can change while the router runs"},
      {nodes + "functions: [{name: qec_decode, node: a}]\n", "functions: they cannot change while the router runs"},
      {nodes + "heartbeat_ms: 50\n", "the times, credits and queue_length cannot change while the router runs"},
      {nodes + "queue_length: 3\n", "the times, credits and queue_length cannot change while the router runs"},
      {nodes + "tls: tcp\n", "tls and transport cannot change while the router runs"},
      {nodes + "transport: {provider: shm}\n", "tls and transport cannot change while the router runs"}};
  for (const auto &[text, reason] : rejected) {
    const std::size_t before = errors().size();
    write(path("route.yaml"), text);
    router.signal(SIGHUP);
    EXPECT_EQ(router.line(), "CUDAQ_REALTIME_ROUTER_CONFIG_REJECTED old_config_active") << text;
    EXPECT_TRUE(contains(errors().substr(before), reason)) << text << errors().substr(before);
  }
  write(path("route.yaml"), "nodes: [{name: a, port: 1, decoders: [1], drain: true}]\n");
  router.signal(SIGHUP);
  EXPECT_EQ(router.line(), "CUDAQ_REALTIME_ROUTER_CONFIG_APPLIED") << errors();
  router.signal(SIGTERM);
  EXPECT_EQ(router.wait(), 0) << errors();
}

// A node that is no decoding server and answers what it likes. The router and its requesters go on.

/// A node in this process that answers every request with one status, from a thread of its own.
class lying_node {
public:
  explicit lying_node(std::int32_t status) : library_(CUDAQ_UCX_PROVIDER), status_(status) {
    EXPECT_NE(library_.table, nullptr) << library_.error;
    EXPECT_EQ(library_.create({"--tls=tcp"}, handle_), CUDAQ_OK) << library_.error_text();
    EXPECT_EQ(library_.table->get_cpu_dataplane(handle_, &plane_), CUDAQ_OK) << library_.error_text();
    thread_ = std::thread([this] { run(); });
  }
  lying_node(const lying_node &) = delete;
  lying_node &operator=(const lying_node &) = delete;
  ~lying_node() {
    ends_ = true;
    thread_.join();
    EXPECT_EQ(library_.table->disconnect(handle_), CUDAQ_OK);
    EXPECT_EQ(library_.table->destroy(handle_), CUDAQ_OK);
  }
  int port() const { return number_in(" " + library_.endpoint(handle_), "port"); }

private:
  void run() {
    while (!ends_) {
      std::uint32_t slot = 0;
      if (plane_.rx_poll(plane_.ctx, &slot) != CUDAQ_RX_READY) {
        std::this_thread::yield();
        continue;
      }
      cudaq_rpc_response_t answer{};
      answer.magic = CUDAQ_RPC_MAGIC_RESPONSE;
      answer.status = status_;
      std::memcpy(plane_.ring.tx_data_host + slot * plane_.ring.tx_stride_sz, &answer, sizeof answer);
      EXPECT_EQ(plane_.tx_publish(plane_.ctx, slot), CUDAQ_OK);
    }
  }

  const cudaq::realtime::test::provider_library library_;
  const std::int32_t status_;
  cudaq_realtime_bridge_handle_t handle_ = nullptr;
  cudaq_cpu_dataplane_t plane_{};
  std::atomic<bool> ends_ = false;
  std::thread thread_;
};

TEST(RouteLyingNode, AnswersWithTheNumberOfADeferredAnswerAndNoSlotIsLost) {
  constexpr std::uint32_t kSlots = 4;
  const scratch_folder folder;
  lying_node node(INT32_MIN);
  write(folder.path() / "route.yaml", "nodes:\n  - {name: liar, port: " + std::to_string(node.port()) +
                                          ", decoders: [0]}\ntls: tcp\nanswer_limit_ms: 20000\n");
  running_program router({"route", "--config", folder.path() / "route.yaml", "--transport", "udp", "--", "--port=0",
                          "--num-slots=" + std::to_string(kSlots), "--unified"},
                         folder.path() / "stderr");
  const std::string ready = router.line();
  ASSERT_TRUE(ready.starts_with("CUDAQ_REALTIME_ROUTER_READY ")) << ready << read_file(folder.path() / "stderr");
  ASSERT_NE(router.line().find("state=joined"), std::string::npos);
  detail::datagram_client_options options;
  options.port = static_cast<std::uint32_t>(number_in(ready, "port"));
  detail::datagram_client client;
  ASSERT_TRUE(client.open(options, detail::make_udp_wire(options.slot_size)).ok());
  for (std::uint32_t id = 1; id <= 3 * kSlots; ++id) {
    ASSERT_TRUE(client.send(id, kReset, numbers({0}), 1000 + id));
    const auto reply = client.receive_within(std::chrono::milliseconds(kLimitMs));
    ASSERT_TRUE(reply) << "request " << id;
    EXPECT_EQ(reply->header.status, CUDAQ_RPC_ERR_NO_RESPONSE);
    EXPECT_TRUE(reply->result.empty());
  }
}

} // namespace
} // namespace cudaq::realtime::tools::test
