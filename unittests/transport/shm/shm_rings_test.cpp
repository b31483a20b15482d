// SPDX-License-Identifier: Apache-2.0
// The rings of several clients in one dataplane, whose loop the test plays step by step; and how loop and clients sleep
// and are woken (unittests/model/shm_bell.pml checks the protocol).
#include "lib/transport/shm/shm_bell.h"
#include "unittests/support/processes/started_program.h"
#include "unittests/support/program_paths.h"
#include "unittests/support/sanitized.h"
#include "unittests/transport/shm/loop_by_hand.h"

namespace cudaq::realtime::test {
namespace {

// Under the sanitizers an overflow of a sum is an error, too.
constexpr std::uint64_t kHugeTimes[] = {std::uint64_t{1} << 62, INT64_MAX, std::uint64_t{INT64_MAX} + 1, UINT64_MAX};

// Known failure 44.
TEST(ShmRings, AHugeTimeoutOfAttachWaitsForTheServer) {
  for (const std::uint64_t timeout : kHugeTimes) {
    const std::string name = own_name("rings"); // that of the loop below
    std::unique_ptr<shm_client> client;
    std::thread attaches([&] { client = std::make_unique<shm_client>(name, CUDAQ_WAIT_BLOCK, timeout); });
    std::this_thread::sleep_for(std::chrono::milliseconds(50)); // there is no server yet
    const loop_by_hand loop("1");
    attaches.join();
    EXPECT_EQ(client->status, CUDAQ_OK) << timeout << ": " << client->text;
  }
}

TEST(ShmRings, AHugeTimeoutOfWaitWaitsForTheAnswer) {
  for (const std::uint32_t policy : {CUDAQ_WAIT_SPIN, CUDAQ_WAIT_SPIN_YIELD, CUDAQ_WAIT_BLOCK})
    for (const std::uint64_t huge : kHugeTimes) {
      loop_by_hand loop("1");
      const cudaq_shm_client_options_t options{sizeof(options), policy, huge, 0}; // how long it spins is huge, too
      cudaq_shm_client_t *client = nullptr;
      ASSERT_EQ(cudaq_shm_client_attach(&client, loop.name.c_str(), kPatience, &options), CUDAQ_OK);
      cudaq_ringbuffer_t ring{};
      ASSERT_EQ(cudaq_shm_client_ring(client, &ring, nullptr, nullptr), CUDAQ_OK);
      EXPECT_EQ(cudaq_host_ringbuffer_write_rpc_request(&ring, 0, kChecked, nullptr, 0, 5, 0), CUDAQ_OK);
      cudaq_shm_client_signal(client, 0);
      cudaq_status_t status = CUDAQ_ERR_INTERNAL;
      std::thread waits([&] { status = cudaq_shm_client_wait(client, 0, huge); });
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      std::uint32_t slot = 0;
      EXPECT_TRUE(loop.poll_until(slot));
      loop.answer(slot);
      waits.join();
      EXPECT_EQ(status, CUDAQ_OK) << "policy " << policy << ", " << huge;
      cudaq_shm_client_detach(client);
    }
}

TEST(ShmRings, ABusyClientDoesNotHoldUpAnotherOne) {
  loop_by_hand loop("2");
  const auto busy = loop.attach(), other = loop.attach();
  for (std::uint32_t i = 0; i < 4; ++i)
    busy->send(i, kChecked, nullptr, 0, i);
  other->send(0, kChecked, nullptr, 0, 77);
  std::uint32_t slot = 0, polls = 0;
  do
    ASSERT_TRUE(loop.poll_until(slot));
  while (loop.request_id(slot) != 77 && ++polls < 9);
  EXPECT_LE(polls, 1u);
}

TEST(ShmRings, AnEmptyPollDoesNotMoveTheCursorToASlotInFlight) {
  loop_by_hand loop("1", "8");
  const auto client = loop.attach();
  std::uint32_t slot = 0;
  for (std::uint32_t i = 0; i < 5; ++i) {
    client->send(i, kChecked, nullptr, 0, i);
    ASSERT_TRUE(loop.poll_until(slot));
  }
  for (int polls = 0; polls < 10000; ++polls) // several looks over the ring, past slots 5 to 7
    ASSERT_FALSE(loop.poll(slot));
  loop.answer(0);
  cudaq_host_ringbuffer_clear_slot(&client->ring, 0);
  for (const std::uint32_t next : {5U, 6U, 7U, 0U})
    client->send(next, kChecked, nullptr, 0, 10 + next);
  for (const std::uint32_t next : {5U, 6U, 7U, 0U}) {
    ASSERT_TRUE(loop.poll_until(slot));
    EXPECT_EQ(loop.request_id(slot), 10 + next) << "in the order in which the client has filled them";
  }
}

TEST(ShmRings, ASlotIsServedAgainAfterItsAnswerIsCollected) {
  loop_by_hand loop("1", "1");
  const auto client = loop.attach();
  std::uint32_t slot = 0, again = 0;
  client->send(0, kChecked, nullptr, 0, 1);
  ASSERT_TRUE(loop.poll_until(slot));
  loop.answer(slot);
  client->send(0, kChecked, nullptr, 0, 2); // breaks the protocol: its answer is not collected
  for (int i = 0; i < 1000; ++i)
    ASSERT_FALSE(loop.poll(again));
  cudaq_host_ringbuffer_clear_slot(&client->ring, 0);
  EXPECT_TRUE(loop.poll_until(slot));
}

TEST(ShmRings, AWaitSaysWhyItsSlotIsFree) {
  loop_by_hand loop("1");
  const auto client = loop.attach();
  const auto expect_free = [&](std::uint32_t slot, const std::string &why) {
    EXPECT_EQ(cudaq_shm_client_wait(client->get, slot, kPatience), CUDAQ_ERR_UNSUPPORTED);
    EXPECT_NE(std::string(cudaq_shm_client_error()).find(why), std::string::npos) << cudaq_shm_client_error();
  };
  std::uint32_t slot = 0;
  expect_free(1, "no request was signalled in it");
  client->send(0, kChecked, nullptr, 0, 1);
  ASSERT_TRUE(loop.poll_until(slot));
  loop.drop(slot);
  EXPECT_FALSE(loop.poll(slot));
  expect_free(0, "the server dropped its request");
  client->send(1, kChecked, nullptr, 0, 2);
  client->send(1, kChecked, nullptr, 0, 3); // the rx flag is still set: the server sees one request
  ASSERT_TRUE(loop.poll_until(slot));
  loop.answer(slot);
  EXPECT_EQ(cudaq_shm_client_wait(client->get, 1, kPatience), CUDAQ_OK) << cudaq_shm_client_error();
  cudaq_host_ringbuffer_clear_slot(&client->ring, 1);
  expect_free(1, "signalled before the slot was free");
  client->send(2, kChecked, nullptr, 0, 4);
  ASSERT_TRUE(loop.poll_until(slot));
  loop.answer(slot);
  EXPECT_EQ(cudaq_shm_client_wait(client->get, 2, kPatience), CUDAQ_OK) << cudaq_shm_client_error();
  cudaq_host_ringbuffer_clear_slot(&client->ring, 2);
  expect_free(2, "its answer was collected");
}

TEST(ShmRings, ARequestOutOfOrderIsFound) {
  loop_by_hand loop("2");
  const auto client = loop.attach(), silent = loop.attach();
  client->send(2, kChecked, nullptr, 0, 42);
  std::uint32_t slot = 0;
  ASSERT_TRUE(loop.poll_until(slot));
  EXPECT_EQ(loop.request_id(slot), 42u);
}

TEST(ShmRings, ARequestOutOfOrderIsFoundAfterASlotWhoseRequestWasDroppedLate) {
  loop_by_hand loop("1", "8");
  const auto client = loop.attach();
  std::uint32_t slot = 0;
  for (const std::uint32_t i : {0u, 1u}) {
    client->send(i, kChecked, nullptr, 0, i);
    ASSERT_TRUE(loop.poll_until(slot));
  }
  loop.answer(1);
  cudaq_host_ringbuffer_clear_slot(&client->ring, 1);
  loop.drop(0); // several polls after it was taken
  client->send(1, kChecked, nullptr, 0, 42);
  ASSERT_TRUE(loop.poll_until(slot));
  EXPECT_EQ(loop.request_id(slot), 42u);
  EXPECT_EQ(cudaq_host_ringbuffer_slot_available(&client->ring, 0), 1);
}

TEST(ShmRings, ARequestFarOutOfOrderIsFoundBeforeALaterOne) {
  loop_by_hand loop("1", "1000");
  const auto client = loop.attach();
  for (const std::uint32_t i : {700u, 300u, 999u})
    client->send(i, kChecked, nullptr, 0, i);
  for (const std::uint32_t expected : {300u, 700u, 999u}) {
    std::uint32_t slot = 0;
    ASSERT_TRUE(loop.poll_until(slot));
    EXPECT_EQ(loop.request_id(slot), expected);
    loop.answer(slot);
  }
}

TEST(ShmRings, AnAnswerToAClientThatLeftNeverReachesTheNextOne) {
  loop_by_hand loop("1");
  auto old = loop.attach();
  const std::string secret = "of the old client";
  old->send(0, kChecked, secret.data(), static_cast<std::uint32_t>(secret.size()), 1);
  old->send(1, kChecked, nullptr, 0, 2);
  std::uint32_t first = 0, second = 0, none = 0;
  ASSERT_TRUE(loop.poll_until(first) && loop.poll_until(second));
  old->detach();
  for (int i = 0; i < 100; ++i) // the ring is not given away while the loop holds requests of it
    ASSERT_FALSE(loop.poll(none));
  EXPECT_EQ(loop.attach(30'000'000)->status, CUDAQ_ERR_TIMEOUT);
  loop.answer(first);
  EXPECT_EQ(loop.attach(30'000'000)->status, CUDAQ_ERR_TIMEOUT);
  EXPECT_EQ(loop.request_id(second), 2u) << "the loop reads a request of a client that left";
  loop.drop(second);
  for (int i = 0; i < 128; ++i) // one of each 64 polls looks for dropped requests
    ASSERT_FALSE(loop.poll(none));
  const auto next = loop.attach_while_polling();
  ASSERT_EQ(next->status, CUDAQ_OK) << next->text;
  for (std::uint32_t i = 0; i < next->num_slots; ++i) {
    EXPECT_EQ(cudaq_host_ringbuffer_slot_available(&next->ring, i), 1);
    for (std::uint32_t b = 0; b < next->slot_size; ++b)
      EXPECT_EQ(next->ring.rx_data_host[i * next->ring.rx_stride_sz + b], 0) << "data of the old client";
  }
  next->send(0, kChecked, nullptr, 0, 3);
  ASSERT_TRUE(loop.poll_until(first));
  EXPECT_EQ(loop.request_id(first), 3u);
  loop.answer(first);
  EXPECT_EQ(cudaq_shm_client_wait(next->get, 0, kPatience), CUDAQ_OK);
}

TEST(ShmRings, AttachIsRefusedBeyondMaxClientsAndWaitsForAFreeRing) {
  loop_by_hand loop("2");
  auto a = loop.attach(), b = loop.attach();
  const auto c = loop.attach(0);
  EXPECT_EQ(c->status, CUDAQ_ERR_TIMEOUT);
  EXPECT_NE(c->text.find("all 2 rings of the server are in use"), std::string::npos) << c->text;
  std::unique_ptr<shm_client> waiting;
  std::atomic<bool> done{false};
  std::thread thread([&] {
    waiting = std::make_unique<shm_client>(loop.name);
    done = true;
  });
  a->detach();
  for (std::uint32_t none = 0; !done;) { // the attach ends by itself after its patience
    EXPECT_FALSE(loop.poll(none));
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  thread.join();
  EXPECT_EQ(waiting->status, CUDAQ_OK) << waiting->text;
}

TEST(ShmRings, TheEndOfTheServerIsReportedToItsClients) {
  loop_by_hand loop("1");
  const auto client = loop.attach();
  EXPECT_EQ(cudaq_shm_client_alive(client->get), 1);
  EXPECT_EQ(cudaq_shm_client_wait(client->get, 9, 0), CUDAQ_ERR_INVALID_ARG);
  client->send(0, kChecked, nullptr, 0, 1);
  EXPECT_EQ(cudaq_shm_client_wait(client->get, 0, 1000), CUDAQ_ERR_TIMEOUT);
  loop.provider.destroy();
  EXPECT_EQ(cudaq_shm_client_alive(client->get), 0);
  EXPECT_EQ(cudaq_shm_client_wait(client->get, 0, kPatience), CUDAQ_ERR_STATE);
}

TEST(ShmExample, CollectsALateAnswerBeforeItUsesTheSlotAgain) {
  loop_by_hand loop("1");
  started_program example({CUDAQ_SHM_EXAMPLE, loop.name, "7", "5", "1000"}); // 5 requests in 4 slots, 1 ms for each
  std::uint32_t slot = 0;
  for (std::uint32_t id = 0; id < 4; ++id) {
    ASSERT_TRUE(loop.poll_until(slot)); // after the first one: it went on without the answer
    EXPECT_EQ(slot, id);
    if (id != 0)
      loop.answer(slot);
  }
  EXPECT_EQ(loop.request_id(0), 0u) << "no request is written into a slot whose answer is not collected";
  loop.answer(0);
  ASSERT_TRUE(loop.poll_until(slot));
  EXPECT_EQ(slot, 0u);
  EXPECT_EQ(loop.request_id(0), 4u);
  loop.answer(0);
  std::multiset<std::string> lines;
  for (int k = 0; k < 5; ++k) {
    const std::string line = example.line();
    const bool any = line.starts_with("late ") && !line.starts_with("late 0:"); // 1 ms is short on a busy machine
    lines.insert(line.substr(any ? 5 : 0));
  }
  EXPECT_EQ(lines, (std::multiset<std::string>{"late 0: status 0, ", "1: status 0, ", "2: status 0, ", "3: status 0, ",
                                               "4: status 0, "}));
  EXPECT_EQ(example.wait(), 0);
}

// A sleep lasts longer than the whole test may: a lost wake-up ends in a failure, not in a delay.
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
