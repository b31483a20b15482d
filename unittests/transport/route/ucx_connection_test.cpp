// SPDX-License-Identifier: Apache-2.0
// Messages over UCX name the connection that they came over, in both directions: the rules of router and node need it.
#include "lib/transport/ucx/ucx_link.h"
#include "unittests/support/eventually.h"
#include "unittests/support/program_paths.h"
#include "unittests/transport/datagram/datagram_provider_library.h"

#include <array>
#include <cstring>
#include <gtest/gtest.h>
#include <memory>

namespace cudaq::realtime::test {
namespace {

using detail::route_header;
using detail::route_kind;

/// Two nodes, and a router's end of both sessions, in this thread.
struct UcxConnection : ::testing::Test {
  static constexpr std::uint64_t kEpoch = 40; ///< of the session with node 0; that with node 1 has the next one

  void SetUp() override {
    library = std::make_unique<datagram_provider_library>(CUDAQ_UCX_PROVIDER);
    ASSERT_NE(library->table, nullptr) << library->error;
    detail::ucx_link_options options;
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      ASSERT_EQ(library->create({"--tls=tcp"}, nodes[n]), CUDAQ_OK) << library->error_text();
      ASSERT_EQ(library->table->get_cpu_dataplane(nodes[n], &planes[n]), CUDAQ_OK) << library->error_text();
      options.nodes.push_back(
          {"127.0.0.1", static_cast<std::uint32_t>(std::stoul(value_of(library->endpoint(nodes[n]), "port")))});
    }
    options.tls = "tcp";
    const auto make = reinterpret_cast<detail::ucx_make_link_fn>(
        dlsym(dlopen(CUDAQ_UCX_PROVIDER, RTLD_NOW | RTLD_LOCAL), detail::kUcxMakeLink));
    ASSERT_NE(make, nullptr);
    char reason[256] = "";
    link.reset(make(detail::kUcxLinkVersion, &options, reason, sizeof reason));
    ASSERT_TRUE(link) << reason;
    for (std::uint32_t n = 0; n < nodes.size(); ++n) {
      ASSERT_TRUE(link->connect(n));
      send(n, route_kind::hello, kEpoch + n);
    }
    ASSERT_TRUE(eventually([&] { return move() >= 2; }));
  }
  void TearDown() override {
    link.reset();
    for (const cudaq_realtime_bridge_handle_t node : nodes)
      if (node != nullptr) {
        EXPECT_EQ(library->table->disconnect(node), CUDAQ_OK);
        EXPECT_EQ(library->table->destroy(node), CUDAQ_OK);
      }
  }

  void send(std::uint32_t node, route_kind kind, std::uint64_t epoch) {
    route_header header;
    header.kind = kind;
    header.node = static_cast<std::uint16_t>(node);
    header.epoch = epoch;
    header.generation = 1; // of a hello: the router's id
    link->send(node, header, {});
  }
  /// Both sides go on. Returns how many messages have come in all.
  std::size_t move() {
    for (const cudaq_cpu_dataplane_t &plane : planes) {
      std::uint32_t slot = 0;
      EXPECT_EQ(plane.rx_poll(plane.ctx, &slot), CUDAQ_RX_EMPTY);
    }
    link->progress(on_message, on_failure);
    return kinds.size();
  }

  std::unique_ptr<datagram_provider_library> library;
  std::array<cudaq_realtime_bridge_handle_t, 2> nodes{};
  std::array<cudaq_cpu_dataplane_t, 2> planes{};
  std::unique_ptr<detail::node_link> link;
  std::vector<route_kind> kinds;
  // Members, because the link also calls them in flush().
  const detail::node_link::message_receiver on_message = [this](std::optional<std::uint32_t> from,
                                                                std::span<const std::uint8_t> message) {
    route_header header;
    ASSERT_GE(message.size(), sizeof header);
    std::memcpy(static_cast<void *>(&header), message.data(), sizeof header);
    kinds.push_back(header.kind);
    ASSERT_TRUE(from.has_value());
    EXPECT_EQ(*from, header.epoch - kEpoch) << "the node of this session";
  };
  const detail::node_link::failure_receiver on_failure = [](std::uint32_t node) { ADD_FAILURE() << node; };
};

TEST_F(UcxConnection, IsNamedByEachMessageOfANode) {
  for (std::uint32_t n = 0; n < nodes.size(); ++n)
    send(n, route_kind::ping, kEpoch + n);
  ASSERT_TRUE(eventually([&] { return move() >= 4; }));
  EXPECT_EQ(std::vector<route_kind>(kinds.begin() + 2, kinds.end()), std::vector(2, route_kind::pong));
}

TEST_F(UcxConnection, OfAnotherSessionIsNotAnsweredByTheNode) {
  send(1, route_kind::ping, kEpoch + 1); // from now on the node knows that messages of this session name it
  ASSERT_TRUE(eventually([&] { return move() >= 3; }));
  // A second connection to node 1 plays another router, which has seen the number of the session.
  detail::ucx_link_options options;
  options.nodes = {
      {"127.0.0.1", static_cast<std::uint32_t>(std::stoul(value_of(library->endpoint(nodes[1]), "port")))}};
  options.tls = "tcp";
  const auto make = reinterpret_cast<detail::ucx_make_link_fn>(
      dlsym(dlopen(CUDAQ_UCX_PROVIDER, RTLD_NOW | RTLD_LOCAL), detail::kUcxMakeLink));
  char reason[256] = "";
  const std::unique_ptr<detail::node_link> other(make(detail::kUcxLinkVersion, &options, reason, sizeof reason));
  ASSERT_TRUE(other) << reason;
  ASSERT_TRUE(other->connect(0));
  std::vector<route_kind> to_other;
  const detail::node_link::message_receiver other_message = [&](std::optional<std::uint32_t>,
                                                                std::span<const std::uint8_t> message) {
    route_header header;
    std::memcpy(static_cast<void *>(&header), message.data(), sizeof header);
    to_other.push_back(header.kind);
  };
  const auto send_other = [&](route_kind kind, std::uint64_t epoch) {
    route_header header;
    header.kind = kind;
    header.epoch = epoch;
    header.generation = 2;
    other->send(0, header, {});
  };
  send_other(route_kind::bye, kEpoch + 1); // would end the session of the first router
  send_other(route_kind::hello, kEpoch + 9);
  ASSERT_TRUE(eventually([&] {
    move();
    other->progress(other_message, on_failure);
    return !to_other.empty(); // the node has read what came before the hello, too
  }));
  const std::size_t before = kinds.size();
  send(1, route_kind::ping, kEpoch + 1);
  ASSERT_TRUE(eventually([&] { return move() > before; })) << "the session is over";
  EXPECT_EQ(kinds.back(), route_kind::pong);
}

} // namespace
} // namespace cudaq::realtime::test
