// SPDX-License-Identifier: Apache-2.0
// How a link over UDP finds out that its server has ended.
#include "cudaq/realtime/daemon/dispatcher/cudaq_realtime.h"
#include "lib/transport/datagram/datagram_client.h"
#include "lib/transport/datagram/udp_socket.h"
#include "lib/transport/udp/udp_wire.h"
#include "tools/emulate/links.h"
#include "tools/emulate/slot_link.h"

#include <array>
#include <chrono>
#include <gtest/gtest.h>
#include <memory>
#include <thread>

namespace cudaq::realtime::tools {
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

// The slots of an emulated control system, against a server that is the test.

class test_slots final : public slot_link {
public:
  test_slots() {
    ring.rx_flags_host = rx.data();
    ring.tx_flags_host = tx.data();
    ring.rx_data_host = requests.data();
    ring.tx_data_host = answers.data();
    ring.rx_stride_sz = ring.tx_stride_sz = 64;
    use_ring(ring, 2);
  }
  bool alive() override { return true; }
  std::string describe() const override { return "a test"; }
  bool sends(std::uint32_t id) { return send(id, 1, {}, 0); }

  cudaq_ringbuffer_t ring{};
  std::array<volatile std::uint64_t, 2> rx{}, tx{};
  alignas(64) std::array<std::uint8_t, 128> requests{}, answers{};
};

TEST(SlotLink, UsesTheSlotOfADroppedRequestAgainAfterItWasGivenUp) {
  test_slots slots;
  ASSERT_TRUE(slots.sends(0) && slots.sends(1));
  slots.rx[0] = 0; // the server drops it
  slots.give_up(0);
  EXPECT_TRUE(slots.sends(2));
  EXPECT_FALSE(slots.sends(3)) << "the next slot has a request";
}

TEST(SlotLink, LeavesTheSlotOfARequestThatMayStillBeAnsweredToTheServer) {
  test_slots slots;
  ASSERT_TRUE(slots.sends(0) && slots.sends(1));
  slots.give_up(0);
  EXPECT_FALSE(slots.sends(2)) << "the rx flag is set";
  slots.tx[0] = CUDAQ_TX_FLAG_IN_FLIGHT;
  slots.rx[0] = 0;
  EXPECT_FALSE(slots.sends(2)) << "it is in flight";
}

} // namespace
} // namespace cudaq::realtime::tools
