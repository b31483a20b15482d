// SPDX-License-Identifier: Apache-2.0
// The threads that decoders share.
#include "unittests/qec/server/server_threads_support.h"
#include "unittests/support/threads_named.h"

#include <array>
#include <cstddef>
#include <memory>

namespace {

using namespace cudaq::qec::realtime;
using namespace cudaq::qec::realtime::test;

std::vector<decoder_setup> setups_of(std::uint64_t decoders, std::uint32_t queue_length) {
  std::vector<decoder_setup> setups;
  for (std::uint64_t id = 0; id < decoders; ++id)
    setups.push_back({{.id = id, .queue_length = queue_length}, unit_for(rotated_model(4))});
  return setups;
}

TEST(ServerPool, ServesManyDecodersWithAFewThreadsInTheOrderOfEachDecoder) {
  constexpr std::uint64_t kDecoders = 300, kRounds = 20;
  decoding_server server(setups_of(kDecoders, kRounds));
  ASSERT_EQ(server.start(requester::receiver(), CUDAQ_WAIT_BLOCK, 3).text(), "");
  EXPECT_EQ(cudaq::realtime::test::threads_named("qec-decode-").size(), 3U);
  std::deque<requester> clients; // one for each decoder, so that order() is that of the decoder
  for (std::uint64_t id = 0; id < kDecoders; ++id)
    clients.emplace_back(server);
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 2; ++t)
    threads.emplace_back([&, t] {
      for (std::uint64_t counter = 0; counter < kRounds; ++counter)
        for (std::uint64_t id = t; id < kDecoders; id += 2)
          clients[id].send(kEnqueueFunctionId, enqueue_payload(id, counter, "0110"));
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_TRUE(server.stop(soon()));
  std::vector<std::uint32_t> ascending;
  for (std::uint32_t k = 0; k < kRounds; ++k)
    ascending.push_back(k);
  for (requester &client : clients) {
    ASSERT_EQ(client.order(), ascending);
    for (std::uint32_t k = 0; k < kRounds; ++k)
      ASSERT_EQ(client.answer(k), answered(server_status::ok)); // a counter out of order would not be ok
  }
}

TEST(ServerPool, ServesTheOthersWhileADecoderIsSlow) {
  rt::shared_word<std::uint32_t> open;
  std::vector<decoder_setup> setups = setups_of(3, 4);
  setups[0].unit = unit_with_gate(open);
  started_server running(std::move(setups), 2);
  requester &client = running.client;
  const std::uint32_t slow = client.send(kEnqueueFunctionId, enqueue_payload(0, 0, "1"));
  for (std::uint64_t counter = 0; counter < 3; ++counter)
    for (const std::uint64_t id : {1U, 2U})
      EXPECT_EQ(client.call(kEnqueueFunctionId, enqueue_payload(id, counter, "0110")), answered(server_status::ok));
  EXPECT_EQ(client.answers_to(slow), 0u);
  open.store(1);
  EXPECT_EQ(client.answer(slow), answered(server_status::ok));
}

TEST(ServerPool, ForgetsADecoderThatIsFreed) {
  // As after the end of the threads: workers of streams still wake the decoders, which are freed one after the other.
  const rt::tick_clock ticks;
  worker_pool pool(2);
  held_slots slots;
  rt::counter answers;
  const answer_receiver receiver{
      [](void *user, const cudaq_host_job_t &, const server_answer &) { static_cast<rt::counter *>(user)->add(); },
      &answers};
  const decoder_limits limits{.queue_length = 1};
  bytes result(64);
  const bytes reset = reset_payload(0);
  const auto wake = [&](served_decoder &decoder) {
    server_answer now;
    request_moments moments;
    EXPECT_FALSE(decoder.submit(read_request(kResetFunctionId, reset), result, {}, now, moments));
  };
  alignas(served_decoder) std::array<std::byte, sizeof(served_decoder)> place;
  served_decoder *const freed = new (place.data()) served_decoder(limits, unit_for(rotated_model(1)), ticks);
  served_decoder other(limits, unit_for(rotated_model(1)), ticks);
  freed->connect(receiver, pool, slots, nullptr);
  other.connect(receiver, pool, slots, nullptr);
  wake(*freed);
  std::destroy_at(freed);
  place.fill(std::byte{0xff}); // a thread that uses it ends the test
  wake(other);
  ASSERT_EQ(pool.start("pool-test-", 1, CUDAQ_WAIT_BLOCK, [] { return true; }).text(), "");
  EXPECT_TRUE(rt::wait_until(soon(), [&] { return answers.value() == 1; }));
  EXPECT_TRUE(pool.stop(soon()));
}

TEST(ServerPool, HasAsManyThreadsAsCoresOrTheSetting) {
  const std::uint32_t cores = std::max(std::thread::hardware_concurrency(), 8U);
  const decoding_server two(setups_of(2, 4)), many(setups_of(cores + 5, 1)), without_queue(setups_of(3, 0));
  EXPECT_EQ(two.threads_for(0), 2U);
  EXPECT_EQ(two.threads_for(1), 1U);
  EXPECT_EQ(many.threads_for(0), cores);
  EXPECT_EQ(many.threads_for(cores + 2), cores + 2);
  EXPECT_EQ(without_queue.threads_for(0), 0U);
}

} // namespace
