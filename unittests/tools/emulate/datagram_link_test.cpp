// SPDX-License-Identifier: Apache-2.0
// How a link over UDP finds out that its server has ended.
#include "lib/transport/datagram/udp_socket.h"
#include "tools/emulate/links.h"

#include <chrono>
#include <gtest/gtest.h>
#include <memory>
#include <thread>

namespace cudaq::realtime::tools::test {
namespace {

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
