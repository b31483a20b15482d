// SPDX-License-Identifier: Apache-2.0
// Sleeping and waking. A sleep here lasts longer than the whole test may: a lost wake-up ends in a failure, not in a
// delay. unittests/model/shm_bell.pml checks the protocol.
#include "lib/transport/shm/shm_bell.h"
#include "unittests/support/sanitized.h"
#include "unittests/transport/shm/provider_handle.h"
#include "unittests/transport/shm/shm_traffic.h"

#include <chrono>
#include <gtest/gtest.h>
#include <thread>

namespace cudaq::realtime::test {
namespace {

using detail::shm_bell;
using steady = std::chrono::steady_clock;

constexpr std::uint64_t kLongSleep = 120'000'000'000;
constexpr auto kLimit = std::chrono::seconds(60);

TEST(ShmBell, NoWakeUpIsLostBetweenTwoThreads) {
  shm_bell ping_bell, pong_bell;
  detail::shared_word<std::uint32_t> ping, pong;
  const std::uint32_t rounds = kSanitized ? 1000 : 4000;
  const auto begin = steady::now();
  const auto wait_for = [](shm_bell &bell, detail::shared_word<std::uint32_t> &word, std::uint32_t value) {
    while (word.load() != value)
      bell.sleep(kLongSleep, [&] {
        const bool ready = word.load() == value;
        for (std::uint32_t i = 0; !ready && i < value % 8; ++i) // more time between the look and the sleep
          std::this_thread::yield();
        return ready;
      });
  };
  std::thread other([&] {
    for (std::uint32_t i = 1; i <= rounds; ++i) {
      wait_for(ping_bell, ping, i);
      pong.store(i);
      pong_bell.ring();
    }
  });
  for (std::uint32_t i = 1; i <= rounds; ++i) {
    ping.store(i);
    ping_bell.ring();
    wait_for(pong_bell, pong, i);
  }
  other.join();
  EXPECT_LT(steady::now() - begin, kLimit) << "a wake-up was lost";
}

TEST(ShmBell, ASleepEndsWithoutARing) {
  shm_bell bell;
  const auto begin = steady::now();
  bell.sleep(20'000'000, [] { return false; });
  EXPECT_LT(steady::now() - begin, kLimit);
  bell.sleep(kLongSleep, [] { return true; });
  EXPECT_LT(steady::now() - begin, kLimit);
}

TEST(ShmBell, AnIdleLoopSleepsAndAClientWakesIt) {
  const std::string name = own_name("idle");
  const provider_handle provider({"--name", name, "--unified", "--wait-us=10000"});
  ASSERT_EQ(provider.status, CUDAQ_OK) << provider.text;
  shm_client client(name);
  ASSERT_EQ(client.status, CUDAQ_OK) << client.text;
  const cudaq_cpu_dataplane_t plane = provider.dataplane();
  std::uint32_t slot = 0;
  std::uint64_t polls = 0;
  const auto begin = steady::now();
  for (; steady::now() - begin < std::chrono::milliseconds(200); ++polls)
    ASSERT_EQ(plane.rx_poll(plane.ctx, &slot), CUDAQ_RX_EMPTY);
  const auto sleeps = static_cast<std::uint64_t>((steady::now() - begin) / std::chrono::milliseconds(10)) + 1;
  EXPECT_LE(polls, 2000 + sleeps * 257);

  for (std::uint32_t i = 0; i < 20; ++i) { // while the loop sleeps
    std::thread sender([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(3));
      client.send(i % client.num_slots, kChecked, nullptr, 0, i);
    });
    while (plane.rx_poll(plane.ctx, &slot) != CUDAQ_RX_READY && steady::now() - begin < kLimit) {
    }
    sender.join();
    EXPECT_EQ(plane.tx_publish(plane.ctx, slot), CUDAQ_OK);
    EXPECT_EQ(cudaq_shm_client_wait(client.get, i % client.num_slots, kPatience), CUDAQ_OK);
    cudaq_host_ringbuffer_clear_slot(&client.ring, i % client.num_slots);
  }
}

TEST(ShmBell, ASleepingClientIsWokenByItsAnswer) {
  const std::string name = own_name("wakes");
  const provider_handle provider({"--name", name, "--unified"});
  cudaq_shm_client_options_t options{sizeof(options), CUDAQ_WAIT_BLOCK, 1, 100'000'000};
  cudaq_shm_client_t *client = nullptr;
  ASSERT_EQ(cudaq_shm_client_attach(&client, name.c_str(), kPatience, &options), CUDAQ_OK) << cudaq_shm_client_error();
  cudaq_ringbuffer_t ring{};
  ASSERT_EQ(cudaq_shm_client_ring(client, &ring, nullptr, nullptr), CUDAQ_OK);
  const cudaq_cpu_dataplane_t plane = provider.dataplane();
  for (std::uint32_t i = 0; i < 20; ++i) {
    ASSERT_EQ(cudaq_host_ringbuffer_write_rpc_request(&ring, i % 8, kChecked, nullptr, 0, i, 0), CUDAQ_OK);
    cudaq_shm_client_signal(client, i % 8);
    std::uint32_t slot = 0;
    const auto begin = steady::now();
    while (plane.rx_poll(plane.ctx, &slot) != CUDAQ_RX_READY && steady::now() - begin < kLimit) {
    }
    std::thread server([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(3));
      EXPECT_EQ(plane.tx_publish(plane.ctx, slot), CUDAQ_OK);
    });
    EXPECT_EQ(cudaq_shm_client_wait(client, i % 8, kPatience), CUDAQ_OK) << cudaq_shm_client_error();
    server.join();
    cudaq_host_ringbuffer_clear_slot(&ring, i % 8);
  }
  cudaq_shm_client_detach(client);
}

} // namespace
} // namespace cudaq::realtime::test
