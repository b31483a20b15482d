// SPDX-License-Identifier: Apache-2.0
// A node over UCX whose loop has paused.
#include "lib/transport/ucx/ucx_link.h"
#include "unittests/support/eventually.h"
#include "unittests/support/program_paths.h"
#include "unittests/transport/datagram/datagram_provider_library.h"

#include <algorithm>
#include <cstring>
#include <gtest/gtest.h>
#include <memory>

namespace cudaq::realtime::test {
namespace {

using namespace std::chrono_literals;
using detail::route_header;
using detail::route_kind;

/// A node, and a router's end of a session, in this thread.
struct UcxSilence : ::testing::Test {
  static constexpr std::uint64_t kFlushNs = 1'000'000'000;

  void SetUp() override {
    library = std::make_unique<datagram_provider_library>(CUDAQ_UCX_PROVIDER);
    ASSERT_NE(library->table, nullptr) << library->error;
    ASSERT_EQ(library->create({"--tls=tcp", "--silence-ms=800"}, node), CUDAQ_OK) << library->error_text();
    ASSERT_EQ(library->table->get_cpu_dataplane(node, &plane), CUDAQ_OK) << library->error_text();
    const auto make = reinterpret_cast<detail::ucx_make_link_fn>(
        dlsym(dlopen(CUDAQ_UCX_PROVIDER, RTLD_NOW | RTLD_LOCAL), detail::kUcxMakeLink));
    ASSERT_NE(make, nullptr);
    detail::ucx_link_options options;
    options.nodes = {{"127.0.0.1", static_cast<std::uint32_t>(std::stoul(value_of(library->endpoint(node), "port")))}};
    options.tls = "tcp";
    char reason[256] = "";
    link.reset(make(detail::kUcxLinkVersion, &options, reason, sizeof reason));
    ASSERT_TRUE(link) << reason;
    ASSERT_TRUE(link->connect(0));
  }
  void TearDown() override {
    link.reset();
    if (node != nullptr) {
      EXPECT_EQ(library->table->disconnect(node), CUDAQ_OK);
      EXPECT_EQ(library->table->destroy(node), CUDAQ_OK);
    }
  }

  void poll_node() {
    std::uint32_t slot = 0;
    EXPECT_EQ(plane.rx_poll(plane.ctx, &slot), CUDAQ_RX_EMPTY);
    ++polls;
  }
  void send(route_kind kind) {
    route_header header;
    header.kind = kind;
    header.epoch = 5;
    header.generation = 1; // of a hello: the router's id
    link->send(0, header, {});
  }
  /// Both sides go on until this many messages of the kind have come, or the connection has ended.
  bool comes(route_kind kind, std::ptrdiff_t count) {
    return eventually([&] {
      poll_node();
      link->progress(on_message, on_failure);
      return ended || std::ranges::count(received, kind) >= count;
    });
  }

  std::unique_ptr<datagram_provider_library> library;
  cudaq_realtime_bridge_handle_t node = nullptr;
  cudaq_cpu_dataplane_t plane{};
  std::unique_ptr<detail::node_link> link;
  std::vector<route_kind> received;
  std::uint64_t polls = 0;
  bool ended = false;
  // Members, because the link also calls them in flush().
  const detail::node_link::message_receiver on_message = [this](std::optional<std::uint32_t>,
                                                                std::span<const std::uint8_t> message) {
    route_header header;
    ASSERT_GE(message.size(), sizeof header);
    std::memcpy(static_cast<void *>(&header), message.data(), sizeof header);
    received.push_back(header.kind);
  };
  const detail::node_link::failure_receiver on_failure = [this](std::uint32_t) { ended = true; };
};

TEST_F(UcxSilence, ThePauseOfTheNodeIsNotThatOfItsRouter) {
  constexpr std::uint64_t kPollsPerTick = 32;
  send(route_kind::hello);
  ASSERT_TRUE(comes(route_kind::welcome, 1));
  ASSERT_FALSE(ended);
  while (polls % kPollsPerTick != 1) // the next polls do not look at the sessions
    poll_node();
  send(route_kind::ping);
  ASSERT_TRUE(link->flush(kFlushNs));
  std::this_thread::sleep_for(850ms); // the loop is in a handler, and the ping waits
  for (std::uint64_t n = 0; n < 2 * kPollsPerTick; ++n)
    poll_node();
  send(route_kind::ping);
  ASSERT_TRUE(comes(route_kind::pong, 2));
  EXPECT_FALSE(ended);
}

} // namespace
} // namespace cudaq::realtime::test
