// SPDX-License-Identifier: Apache-2.0
// A router's link to nodes over UCX: messages name the connection that they came over, in both directions, as the rules
// of router and node need it; and a node whose loop has paused.
#include "lib/transport/ucx/ucx_link.h"
#include "unittests/support/eventually.h"
#include "unittests/support/program_paths.h"
#include "unittests/transport/provider_library.h"

#include <algorithm>
#include <cstring>
#include <gtest/gtest.h>
#include <memory>

namespace cudaq::realtime::test {
namespace {

using namespace std::chrono_literals;
using detail::route_header;
using detail::route_kind;

struct made_node {
  cudaq_realtime_bridge_handle_t handle = nullptr;
  cudaq_cpu_dataplane_t plane{};
  std::uint32_t port = 0;
};

/// A router's end of the sessions with some nodes, and what has come over it.
class router_end {
public:
  explicit router_end(const std::vector<const made_node *> &nodes) {
    detail::ucx_link_options options;
    for (const made_node *const node : nodes)
      options.nodes.push_back({"127.0.0.1", node->port});
    options.tls = "tcp";
    const auto make = reinterpret_cast<detail::ucx_make_link_fn>(
        dlsym(dlopen(CUDAQ_UCX_PROVIDER, RTLD_NOW | RTLD_LOCAL), detail::kUcxMakeLink));
    EXPECT_NE(make, nullptr);
    char reason[256] = "";
    link.reset(make(detail::kUcxLinkVersion, &options, reason, sizeof reason));
    EXPECT_TRUE(link) << reason;
    for (std::uint32_t n = 0; n < nodes.size(); ++n)
      EXPECT_TRUE(link->connect(n));
  }
  /// `id`: of a hello, that of the router.
  void send(std::uint32_t node, route_kind kind, std::uint64_t epoch, std::uint64_t id = 1) const {
    route_header header;
    header.kind = kind;
    header.node = static_cast<std::uint16_t>(node);
    header.epoch = epoch;
    header.generation = id;
    link->send(node, header, {});
  }
  void progress() { link->progress(on_message, on_failure); }

  std::unique_ptr<detail::node_link> link;
  std::vector<route_kind> kinds;                                               ///< of the messages that came
  std::vector<std::pair<std::optional<std::uint32_t>, std::uint64_t>> sources; ///< their connections and epochs
  bool ended = false;                                                          ///< a connection

private:
  // Members, because the link also calls them in flush().
  const detail::node_link::message_receiver on_message = [this](std::optional<std::uint32_t> from,
                                                                std::span<const std::uint8_t> message) {
    route_header header;
    ASSERT_GE(message.size(), sizeof header);
    std::memcpy(static_cast<void *>(&header), message.data(), sizeof header);
    kinds.push_back(header.kind);
    sources.emplace_back(from, std::uint64_t{header.epoch});
  };
  const detail::node_link::failure_receiver on_failure = [this](std::uint32_t) { ended = true; };
};

/// Nodes and the router's end of their sessions, in this thread.
struct UcxLink : ::testing::Test {
  static constexpr std::uint64_t kEpoch = 40; ///< of the session with node 0; that with node 1 has the next one

  /// The router has said hello to as many nodes as there are lists of options, and they have answered.
  void join(const std::vector<std::vector<std::string>> &options_of_nodes) {
    library = std::make_unique<provider_library>(CUDAQ_UCX_PROVIDER);
    ASSERT_NE(library->table, nullptr) << library->error;
    std::vector<const made_node *> all;
    nodes.resize(options_of_nodes.size());
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      ASSERT_EQ(library->create(options_of_nodes[n], nodes[n].handle), CUDAQ_OK) << library->error_text();
      ASSERT_EQ(library->table->get_cpu_dataplane(nodes[n].handle, &nodes[n].plane), CUDAQ_OK) << library->error_text();
      nodes[n].port = static_cast<std::uint32_t>(std::stoul(value_of(library->endpoint(nodes[n].handle), "port")));
      all.push_back(&nodes[n]);
    }
    router = std::make_unique<router_end>(all);
    for (std::uint32_t n = 0; n < nodes.size(); ++n)
      router->send(n, route_kind::hello, kEpoch + n);
    ASSERT_TRUE(comes(route_kind::welcome, static_cast<std::ptrdiff_t>(nodes.size())));
  }
  void TearDown() override {
    router.reset();
    for (const made_node &node : nodes)
      if (node.handle != nullptr) {
        EXPECT_EQ(library->table->disconnect(node.handle), CUDAQ_OK);
        EXPECT_EQ(library->table->destroy(node.handle), CUDAQ_OK);
      }
  }
  void poll_nodes() {
    for (const made_node &node : nodes) {
      std::uint32_t slot = 0;
      EXPECT_EQ(node.plane.rx_poll(node.plane.ctx, &slot), CUDAQ_RX_EMPTY);
    }
    ++polls;
  }
  /// Both sides go on until this many messages of the kind have come. False: a connection has ended, or time is over.
  bool comes(route_kind kind, std::ptrdiff_t count) {
    return eventually([&] {
             poll_nodes();
             router->progress();
             return router->ended || std::ranges::count(router->kinds, kind) >= count;
           }) &&
           !router->ended;
  }

  std::unique_ptr<provider_library> library;
  std::vector<made_node> nodes;
  std::unique_ptr<router_end> router;
  std::uint64_t polls = 0;
};

TEST_F(UcxLink, NamesTheConnectionOfEachMessageOfANode) {
  ASSERT_NO_FATAL_FAILURE(join({{"--tls=tcp"}, {"--tls=tcp"}}));
  for (std::uint32_t n = 0; n < nodes.size(); ++n)
    router->send(n, route_kind::ping, kEpoch + n);
  ASSERT_TRUE(comes(route_kind::pong, 2));
  for (const auto &[from, epoch] : router->sources) {
    ASSERT_TRUE(from.has_value());
    EXPECT_EQ(*from, epoch - kEpoch) << "the node of this session";
  }
}

TEST_F(UcxLink, CannotEndTheSessionOfAnotherOne) {
  ASSERT_NO_FATAL_FAILURE(join({{"--tls=tcp"}, {"--tls=tcp"}}));
  router->send(1, route_kind::ping, kEpoch + 1); // from now on the node knows that messages of this session name it
  ASSERT_TRUE(comes(route_kind::pong, 1));
  // A second connection to node 1 plays another router, which has seen the number of the session.
  router_end other({&nodes[1]});
  other.send(0, route_kind::bye, kEpoch + 1, 2); // would end the session of the first router
  other.send(0, route_kind::hello, kEpoch + 9, 2);
  ASSERT_TRUE(eventually([&] {
    poll_nodes();
    router->progress();
    other.progress();
    return !other.kinds.empty(); // the node has read what came before the hello, too
  }));
  router->send(1, route_kind::ping, kEpoch + 1);
  EXPECT_TRUE(comes(route_kind::pong, 2)) << "the session is over";
  EXPECT_FALSE(other.ended);
}

TEST_F(UcxLink, IsNotEndedByAPauseOfItsNode) {
  constexpr std::uint64_t kPollsPerTick = 32, kFlushNs = 1'000'000'000;
  ASSERT_NO_FATAL_FAILURE(join({{"--tls=tcp", "--silence-ms=800"}}));
  while (polls % kPollsPerTick != 1) // the next polls do not look at the sessions
    poll_nodes();
  router->send(0, route_kind::ping, kEpoch);
  ASSERT_TRUE(router->link->flush(kFlushNs));
  std::this_thread::sleep_for(850ms); // the loop is in a handler, and the ping waits
  for (std::uint64_t n = 0; n < 2 * kPollsPerTick; ++n)
    poll_nodes();
  router->send(0, route_kind::ping, kEpoch);
  EXPECT_TRUE(comes(route_kind::pong, 2));
}

} // namespace
} // namespace cudaq::realtime::test
