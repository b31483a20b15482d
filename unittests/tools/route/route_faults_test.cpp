// SPDX-License-Identifier: Apache-2.0
// What the program `route` does when the transport in front fails, when an answer is too long for it, and when a
// changed configuration cannot be taken.
#include "unittests/support/program_paths.h"
#include "unittests/tools/route/routed_servers.h"

namespace cudaq::realtime::tools::test {
namespace {

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

} // namespace
} // namespace cudaq::realtime::tools::test
