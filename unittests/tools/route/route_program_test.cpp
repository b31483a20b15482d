// SPDX-License-Identifier: Apache-2.0
// The program `route`: its ends, its configuration, and others on the ports of a node.
#include "lib/transport/ucx/ucx_link.h"
#include "unittests/support/program_paths.h"
#include "unittests/tools/route/routed_servers.h"

#include <arpa/inet.h>
#include <dlfcn.h>

namespace cudaq::realtime::tools::test {
namespace {

using namespace std::chrono_literals;

class Route : public testing::Test {
protected:
  void SetUp() override {
    if (no_yaml())
      GTEST_SKIP() << "this build has no YAML parser";
  }
  program_result run_with(const std::string &config, const std::string &transport = "udp") {
    write(folder_.path() / "route.yaml", config);
    return run_program("route --config '" + (folder_.path() / "route.yaml").string() + "' --transport " + transport +
                       " -- --port=0");
  }
  void expect_refused(const std::string &config, const std::string &text) {
    const program_result result = run_with(config);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_TRUE(contains(result.err, text)) << result.err;
  }

  scratch_folder folder_;
};

TEST_F(Route, NamesThePlaceOfAWrongField) {
  expect_refused("nodes: 3\n", "line 1, column 8: nodes: \"3\" is not a list of at least one map");
  expect_refused("nodes:\n  - {name: a, port: 0}\n", "line 2, column 21: nodes[0].port: \"0\" is not a whole number");
  expect_refused("nodes:\n  - {name: a b, port: 1}\n", "nodes[0].name: \"a b\" is not a word");
  expect_refused("nodes:\n  - {name: \"a\\xFFb\", port: 1}\n", "is not a word of ASCII");
  expect_refused("nodes:\n  - {name: a, port: 1}\n  - {name: a, port: 2}\n", "line 3, column 12: nodes[1].name: a is");
  expect_refused("nodes:\n  - {name: a, port: 1, decoders: [4]}\n  - {name: b, port: 2, first_decoder: 3, "
                 "last_decoder: 5}\n",
                 "decoder 4 is there twice");
  expect_refused("nodes:\n  - {name: a, port: 1, first_decoder: 3}\n", "first_decoder and last_decoder: both or none");
  expect_refused("nodes:\n  - {name: a, port: 1, first_decoder: 3, last_decoder: 2}\n", "nodes[0].last_decoder: \"2\"");
  expect_refused("nodes:\n  - {name: a, port: 1, first_decoder: 0, last_decoder: 1048575}\n"
                 "  - {name: b, port: 2, first_decoder: 2000000, last_decoder: 2000000}\n",
                 "nodes[1].first_decoder: more than 1048576 decoders in all nodes");
  expect_refused("nodes:\n  - {name: a, port: 1, first_decoder: 0, last_decoder: 1048575}\n"
                 "  - {name: b, port: 2, decoders: [2000000]}\n",
                 "nodes[1].decoders: more than 1048576 decoders in all nodes");
  expect_refused("nodes: [{name: a, port: 1}]\nfunctions: [{name: qec_decode, node: b}]\n",
                 "line 2, column 38: functions[0].node: \"b\" is not the name of a node");
  expect_refused("nodes: [{name: a, port: 1}]\nfunctions: [{node: a}]\n", "name or id: one of the two");
  expect_refused("nodes: [{name: a, port: 1}]\nfunctions: [{name: enqueue_syndromes}]\n", "is routed already");
  expect_refused("nodes: [{name: a, port: 1}]\nfunctions: [{name: enqueue_readout}]\n", "is routed already");
  expect_refused(
      "nodes: [{name: a, port: 1}]\nfunctions: [{name: get_decoder_name, node: a}, {name: get_decoder_name}]\n",
      "functions[1].name: get_decoder_name is routed already");
  expect_refused("nodes: [{name: a, port: 1}]\nlost_after_ms: 150\n",
                 "line 2, column 16: lost_after_ms: it is at least");
  expect_refused("nodes: [{name: a, port: 1}]\nheart: 1\n", "heart: unknown field");
  expect_refused("nodes: [{name: a, port: 1, address: here}]\n", "nodes[0].address: \"here\" is not an IPv4 address");
  expect_refused("nodes: [{name: a, port: 1}]\ntls: nothing\n", "the transports 'nothing' of UCX");
}

TEST_F(Route, RefusesAProviderWhoseTransportsUcxDoesNotKnow) {
  write(folder_.path() / "route.yaml", "nodes: [{name: a, port: 1}]\n");
  const program_result r = run_program("route --config '" + (folder_.path() / "route.yaml").string() +
                                       "' --transport ucx -- --port=0 --tls=nothing");
  EXPECT_EQ(r.exit_code, 2) << "-1: it crashed";
  EXPECT_TRUE(contains(r.err, "the transports 'nothing' of UCX (--tls, UCX_TLS)")) << r.err;
}

TEST_F(Route, PrintsItsSchema) {
  const program_result schema = run_program("route --schema");
  EXPECT_EQ(schema.exit_code, 0);
  EXPECT_TRUE(contains(schema.out, "\"lost_after_ms\"")) << schema.out;
}

TEST_F(Route, RefusesWithoutUcxAndNamesTheMissingLibrary) {
  // Far from the build tree the program finds no provider ucx.
  const std::filesystem::path copy = folder_.path() / "cudaq-realtime";
  std::filesystem::copy_file(CUDAQ_TOOL_PATH, copy);
  write(folder_.path() / "route.yaml", "nodes: [{name: a, port: 1}]\n");
  const std::string err = (folder_.path() / "err").string();
  const std::string command = "'" + copy.string() + "' route --config '" + (folder_.path() / "route.yaml").string() +
                              "' --transport " + CUDAQ_UDP_PROVIDER + " -- --port=0 2>'" + err + "'";
  const int status = std::system(command.c_str());
  EXPECT_EQ(WEXITSTATUS(status), 3);
  EXPECT_TRUE(contains(read_file(err), "route needs the provider ucx")) << read_file(err);
  EXPECT_TRUE(contains(read_file(err), "libucx-dev")) << read_file(err);
}

TEST_F(Route, AnswersWhileItsNodesAreNotThereAndEnds) {
  routed_servers servers(folder_.path(), 1, "tcp");
  servers.kill(0);
  servers.start_router();
  checked_streams streams(servers.router_port(), kStreamsPerNode, 1);
  EXPECT_TRUE(streams.run_until([&] { return streams.answers(kNotReadyStatus) > 10; }));
  streams.finish();
  EXPECT_EQ(streams.answers(kNotReadyStatus), streams.sent());
  servers.router().signal(SIGTERM);
  EXPECT_EQ(servers.router().wait(), 0) << servers.errors();
}

TEST_F(Route, DrainsANodeAndTakesItBackWithItsStreams) {
  routed_servers servers(folder_.path(), 2, "tcp");
  const std::string limit = "lost_after_ms: 20000\n";
  servers.start_router(limit);
  servers.wait_joined();
  checked_streams streams(servers.router_port(), 2 * kStreamsPerNode, 1);
  ASSERT_TRUE(streams.all_decode(5));
  const auto reload = [&](const std::string &text, const std::string &outcome) {
    write(folder_.path() / "route.yaml", text);
    servers.router().signal(SIGHUP);
    EXPECT_EQ(servers.router().line(), "CUDAQ_REALTIME_ROUTER_CONFIG_" + outcome) << servers.errors();
  };
  std::string drained = servers.config(limit);
  drained.insert(drained.find("port: "), "drain: true, ");
  reload(drained, "APPLIED");
  EXPECT_TRUE(streams.run_until([&] { return streams.answers(kNotReadyStatus) != 0; }));
  EXPECT_EQ(streams.answers(kDroppedStatus), 0u);
  reload(servers.config(limit), "APPLIED");
  EXPECT_TRUE(streams.all_decode(5));
  EXPECT_EQ(streams.answers(kDroppedStatus), 0u);
  reload("nodes: [{name: a, port: 1}]\n", "REJECTED old_config_active");
  reload(servers.config(), "REJECTED old_config_active"); // without the limit
  EXPECT_TRUE(streams.all_decode(5));
  streams.finish();
  const auto top =
      run_good_program("top --interval 0.1 --count 1 --json --counters " + folder_.path().string() + "/counters");
  const auto &nodes = top.at("samples").at(0).at("nodes");
  ASSERT_EQ(nodes.size(), 2U);
  for (std::uint32_t n = 0; n < 2; ++n) {
    EXPECT_EQ(nodes.at(n).at("name"), routed_servers::name(n));
    EXPECT_EQ(nodes.at(n).at("joined"), true);
  }
}

TEST_F(Route, ANodeThatEndsAnswersAndComesBack) {
  routed_servers servers(folder_.path(), 2, "posix,tcp");
  servers.start_router("lost_after_ms: 20000\nreconnect_ms: 50\n");
  servers.wait_joined();
  checked_streams streams(servers.router_port(), 2 * kStreamsPerNode, 1);
  ASSERT_TRUE(streams.all_decode(5));
  servers.node(0).signal(SIGTERM);
  EXPECT_TRUE(streams.run_until([&] { return !servers.node(0).runs(); }));
  EXPECT_EQ(servers.node(0).wait(), 0) << servers.errors();
  EXPECT_LT(streams.longest(), 60s);
  servers.start(0);
  EXPECT_TRUE(streams.all_decode(5)) << servers.errors();
  streams.finish();
}

// Bytes of a stranger on the port of a node, and messages that no router sends.
TEST_F(Route, StrangersOnThePortOfANodeHarmNoRouter) {
  routed_servers servers(folder_.path(), 1, "tcp");
  servers.start_router("lost_after_ms: 20000\n");
  servers.wait_joined();
  checked_streams streams(servers.router_port(), kStreamsPerNode, 1);
  std::mt19937 random(3);
  std::vector<int> kept;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(servers.port(0)));
  for (int round = 0; round < 30; ++round) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, reinterpret_cast<const sockaddr *>(&address), sizeof address) == 0 && round % 3 != 0) {
      bytes garbage(random() % 300);
      for (std::uint8_t &byte : garbage)
        byte = static_cast<std::uint8_t>(random());
      (void)send(fd, garbage.data(), garbage.size(), MSG_NOSIGNAL);
    }
    kept.push_back(fd);
    if (round % 4 == 0) {
      close(kept.back());
      kept.pop_back();
    }
    streams.run_for(5ms);
  }
  EXPECT_TRUE(streams.all_decode(5)) << servers.errors();
  for (const int fd : kept)
    close(fd);

  void *const library = dlopen(CUDAQ_UCX_PROVIDER, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  const auto make = reinterpret_cast<detail::ucx_make_link_fn>(dlsym(library, detail::kUcxMakeLink));
  detail::ucx_link_options options;
  options.nodes = {{"127.0.0.1", static_cast<std::uint32_t>(servers.port(0))}};
  options.tls = "tcp";
  char reason[256] = "";
  const std::unique_ptr<detail::node_link> stranger(make(detail::kUcxLinkVersion, &options, reason, sizeof reason));
  ASSERT_TRUE(stranger) << reason;
  ASSERT_TRUE(stranger->connect(0));
  for (int round = 0; round < 300; ++round) {
    detail::route_header header;
    header.kind = static_cast<detail::route_kind>(random() % 12);
    header.epoch = random();
    header.slot = static_cast<std::uint32_t>(random());
    header.generation = random();
    const bytes payload(random() % 3000);
    header.length = static_cast<std::uint32_t>(random() % 2 == 0 ? payload.size() : random());
    stranger->send(0, header, payload);
    (void)stranger->progress([](std::optional<std::uint32_t>, std::span<const std::uint8_t>) {}, [](std::uint32_t) {});
    if (round % 20 == 0)
      streams.run_for(5ms);
  }
  EXPECT_TRUE(streams.all_decode(5)) << servers.errors();
  EXPECT_TRUE(servers.node(0).runs());
  streams.finish();
}

} // namespace
} // namespace cudaq::realtime::tools::test
