// SPDX-License-Identifier: Apache-2.0
// The dataplane of the provider shm, whose loop the test plays step by step.
#pragma once

#include "unittests/transport/shm/provider_handle.h"
#include "unittests/transport/shm/shm_traffic.h"

#include <atomic>
#include <chrono>
#include <cstring>
#include <gtest/gtest.h>
#include <memory>
#include <thread>

namespace cudaq::realtime::test {

class loop_by_hand {
public:
  explicit loop_by_hand(const std::string &clients, const std::string &slots = "4")
      : name(own_name("rings")),
        provider({"--name", name, "--unified", "--max-clients", clients, "--num-slots", slots}),
        plane(provider.dataplane()) {
    EXPECT_EQ(provider.status, CUDAQ_OK) << provider.text;
  }

  bool poll(std::uint32_t &slot) { return plane.rx_poll(plane.ctx, &slot) == CUDAQ_RX_READY; }
  bool poll_until(std::uint32_t &slot) {
    for (const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
         std::chrono::steady_clock::now() < end;)
      if (poll(slot))
        return true;
    return false;
  }
  std::uint8_t *request(std::uint32_t slot) const { return plane.ring.rx_data_host + slot * plane.ring.rx_stride_sz; }
  std::uint32_t request_id(std::uint32_t slot) const {
    cudaq_rpc_header_t header;
    std::memcpy(&header, request(slot), sizeof(header));
    return header.request_id;
  }
  void answer(std::uint32_t slot) {
    const cudaq_rpc_response_t header{CUDAQ_RPC_MAGIC_RESPONSE, 0, 0, request_id(slot), 0};
    std::memcpy(plane.ring.tx_data_host + slot * plane.ring.tx_stride_sz, &header, sizeof(header));
    EXPECT_EQ(plane.tx_publish(plane.ctx, slot), CUDAQ_OK);
  }
  void drop(std::uint32_t slot) { plane.ring.rx_flags_host[slot] = 0; }
  /// Attaches while the loop polls, as it does in a server.
  std::unique_ptr<shm_client> attach(std::uint64_t timeout_ns = kPatience) {
    std::unique_ptr<shm_client> made;
    std::thread thread([&] { made = std::make_unique<shm_client>(name, CUDAQ_WAIT_SPIN_YIELD, timeout_ns); });
    thread.join();
    return made;
  }

  /// Attaches while this thread polls: only a poll gives away a ring whose client has left, and the thread of the
  /// provider may see late that it has left.
  std::unique_ptr<shm_client> attach_while_polling() {
    std::unique_ptr<shm_client> made;
    std::atomic<bool> done{false};
    std::thread thread([&] {
      made = std::make_unique<shm_client>(name, CUDAQ_WAIT_SPIN_YIELD, kPatience);
      done = true;
    });
    for (std::uint32_t none = 0; !done;) {
      EXPECT_FALSE(poll(none));
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    thread.join();
    return made;
  }

  std::string name;
  provider_handle provider;
  cudaq_cpu_dataplane_t plane;
};

} // namespace cudaq::realtime::test
