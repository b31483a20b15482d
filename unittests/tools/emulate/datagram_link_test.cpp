// SPDX-License-Identifier: Apache-2.0
// How a link over UDP finds out that its server has ended.
#include "lib/transport/datagram/datagram_client.h"
#include "lib/transport/datagram/udp_socket.h"
#include "lib/transport/udp/udp_wire.h"
#include "tools/emulate/links.h"

#include <chrono>
#include <gtest/gtest.h>
#include <memory>
#include <thread>

namespace cudaq::realtime::tools::test {
namespace {

// A process that has no core, or is stopped, may hear of two short absences of a server that runs between them.
TEST(DatagramLink, CountsRefusalsOnlyIfTheyFollowOneAnother) {
  detail::datagram_client client;
  detail::datagram_client_options options;
  options.port = 1; // no program listens there
  options.retry_after = std::chrono::milliseconds(100);
  options.reports_refusals = true;
  ASSERT_TRUE(client.open(options, detail::make_udp_wire(options.slot_size)).ok());
  for (const auto pause :
       {std::chrono::milliseconds(0), std::chrono::milliseconds(2100), std::chrono::milliseconds(1000)}) {
    std::this_thread::sleep_for(pause);
    client.probe();
    client.probe(); // has the answer to the first one
    EXPECT_FALSE(client.refused());
  }
}

TEST(DatagramLink, NoticesTheEndOfAServerThatHadReceivedAllRequests) {
  detail::udp_address address;
  ASSERT_TRUE(detail::udp_address_of("address", "127.0.0.1", 0, address).ok());
  auto server = std::make_unique<detail::udp_socket>();
  ASSERT_TRUE(server->open(address, 0).ok());
  emulate_options options;
  options.port = static_cast<int>(server->port());
  options.slot_size = 256;
  const std::unique_ptr<link> to = make_udp_link(options, 4, 64);
  ASSERT_TRUE(to->send(0, 7, {}, 1));
  server->wait(true, std::chrono::seconds(10));
  EXPECT_TRUE(to->alive());
  server.reset(); // the request arrived, so the system has nothing to report
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  bool alive = true;
  while (alive && std::chrono::steady_clock::now() < deadline) {
    (void)to->receive();
    alive = to->alive();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_FALSE(alive);
  EXPECT_NE(to->end_text().find("no server listens there"), std::string::npos) << to->end_text();
}

} // namespace
} // namespace cudaq::realtime::tools::test
