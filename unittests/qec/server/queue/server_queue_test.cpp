// SPDX-License-Identifier: Apache-2.0
// The queue of a decoder.
#include "unittests/qec/server/readout/server_readout_support.h"
#include "unittests/qec/server/server_threads_support.h"
#include "unittests/support/program_paths.h"

#include <numeric>

namespace cudaq::qec::realtime::test {
namespace {

/// A started server with one gated decoder of id 1.
struct gate_of_rig {
  rt::shared_word<std::uint32_t> open;
};
struct gated_rig : gate_of_rig, started_server {
  explicit gated_rig(decoder_limits limits, const answer_receiver &receiver = requester::receiver())
      : started_server(one_setup(limits, unit_with_gate(open)), 0, receiver) {}
  ~gated_rig() { open.store(1); }
  std::uint32_t enqueue(std::uint64_t counter) {
    return client.send(kEnqueueFunctionId, enqueue_payload(1, counter, "1"));
  }
  std::uint32_t get() { return client.send(kGetCorrectionsFunctionId, get_payload(1, 1)); }
};

TEST(ServerQueue, AnswersInTheOrderOfTheRequests) {
  gated_rig rig({.id = 1, .queue_length = 64});
  for (std::uint64_t counter = 0; counter < 30; ++counter) {
    rig.enqueue(counter);
    rig.get();
  }
  rig.open.store(1);
  for (std::uint32_t k = 0; k < 60; ++k)
    EXPECT_EQ(rig.client.answer(k),
              k % 2 == 0 ? answered(server_status::ok) : answered(server_status::ok, k / 2 % 2 == 0 ? "1" : "0"));
  std::vector<std::uint32_t> ascending(60);
  std::iota(ascending.begin(), ascending.end(), 0u);
  EXPECT_EQ(rig.client.order(), ascending);
}

TEST(ServerQueue, AnswersBusyWhenFullAndDetectsTheGap) {
  gated_rig rig({.id = 1, .queue_length = 3});
  const std::uint32_t first = rig.enqueue(0), second = rig.enqueue(1), question = rig.get();
  const std::uint32_t refused = rig.enqueue(2);
  EXPECT_EQ(rig.client.answer(refused), answered(server_status::busy)) << "at once, while the decoder works";
  EXPECT_EQ(rig.client.answers_to(first), 0u);
  EXPECT_EQ(rig.server.decoders()[0]->waiting(), 3u);
  rig.open.store(1);
  EXPECT_EQ(rig.client.answer(first), answered(server_status::ok));
  EXPECT_EQ(rig.client.answer(second), answered(server_status::ok));
  EXPECT_EQ(rig.client.answer(question), answered(server_status::ok, "0"));
  EXPECT_EQ(rig.client.answer(rig.enqueue(3)), answered(server_status::syndromes_dropped)) << "2 was not sent again";
  const decoder_counts counts = rig.server.decoders()[0]->counts();
  EXPECT_EQ(counts.by_status[static_cast<std::size_t>(server_status::busy)], 1u);
  EXPECT_EQ(counts.requests, 5u);
  EXPECT_EQ(counts.by_status[static_cast<std::size_t>(server_status::syndromes_dropped)], 1u);
}

TEST(ServerQueue, GoesOnAfterARefusedRequestIsSentAgain) {
  gated_rig rig({.id = 1, .queue_length = 1});
  const std::uint32_t first = rig.enqueue(0);
  EXPECT_EQ(rig.client.answer(rig.enqueue(1)), answered(server_status::busy));
  rig.open.store(1);
  EXPECT_EQ(rig.client.answer(first), answered(server_status::ok));
  EXPECT_EQ(rig.client.answer(rig.enqueue(1)), answered(server_status::ok));
  EXPECT_EQ(rig.client.answer(rig.get()), answered(server_status::ok, "0"));
}

TEST(ServerQueue, DoesNotServeRequestsThatWaitedTooLong) {
  // The decoder's thread waits with the answer to a reset, so that all others wait as long as the test wants.
  rt::shared_word<std::uint32_t> goes_on;
  gated_rig rig({.id = 1, .queue_length = 8, .age_limit_ns = 100'000'000}, waiting_receiver(goes_on));
  rig.open.store(1);
  const std::uint32_t first = rig.client.send(kResetFunctionId, reset_payload(1));
  const std::uint32_t question = rig.get(), syndromes = rig.enqueue(1), late = rig.get();
  const std::uint32_t single = rig.client.send(kOneShotFunctionId, packed("1"));
  const std::uint32_t reset = rig.client.send(kResetFunctionId, reset_payload(1));
  std::this_thread::sleep_for(std::chrono::milliseconds(150));
  goes_on.store(1);
  EXPECT_EQ(rig.client.answer(first), answered(server_status::ok)) << "a reset is never too old";
  EXPECT_EQ(rig.client.answer(question), answered(server_status::busy)) << "may be asked again";
  EXPECT_EQ(rig.client.answer(syndromes), answered(server_status::syndromes_dropped));
  EXPECT_EQ(rig.client.answer(late), answered(server_status::busy));
  EXPECT_EQ(rig.client.answer(single).status, -5) << "-busy";
  EXPECT_EQ(rig.client.answer(reset), answered(server_status::ok));
  EXPECT_EQ(rig.server.decoders()[0]->counts().too_old, 4u);
  // On a busy machine a request may wait that long by itself, but not each time.
  const auto served = [&] {
    if (rig.client.answer(rig.enqueue(9)) == answered(server_status::ok))
      return true;
    EXPECT_EQ(rig.client.call(kResetFunctionId, reset_payload(1)), answered(server_status::ok));
    return false;
  };
  EXPECT_TRUE(rt::wait_until(soon(), served));
  EXPECT_GE(rig.server.decoders()[0]->counts().by_status[static_cast<std::size_t>(server_status::busy)], 3u)
      << "two questions and the shot";
}

TEST(ServerQueue, ServesWhatWasTakenAndThenStops) {
  gated_rig rig({.id = 1, .queue_length = 16});
  for (std::uint64_t counter = 0; counter < 10; ++counter)
    rig.enqueue(counter);
  rig.server.close();
  EXPECT_EQ(rig.client.answer(rig.get()), answered(server_status::not_ready));
  EXPECT_FALSE(rig.server.idle());
  rig.open.store(1);
  EXPECT_TRUE(rt::wait_until(soon(), [&] { return rig.server.idle(); }));
  for (std::uint32_t k = 0; k < 10; ++k)
    EXPECT_EQ(rig.client.answer(k), answered(server_status::ok));
  EXPECT_TRUE(rig.server.stop(soon()));
  EXPECT_EQ(rig.client.answer(rig.get()), answered(server_status::not_ready));
}

TEST(ServerQueue, AnswersEveryRequestOfManyThreadsOnce) {
  std::vector<decoder_setup> setups;
  for (std::uint64_t id = 1; id <= 3; ++id) // id 3 has no queue
    setups.push_back({{.id = id, .sequence = false, .queue_length = id == 3 ? 0u : 4u}, unit_for(rotated_model(4))});
  decoding_server server(std::move(setups));
  ASSERT_EQ(server.start(requester::receiver(), CUDAQ_WAIT_BLOCK).text(), "");
  constexpr std::uint32_t kRequests = 2000;
  std::deque<requester> clients;
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < 3; ++t)
    clients.emplace_back(server);
  for (std::uint32_t t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      for (std::uint32_t k = 0; k < kRequests; ++k)
        clients[t].send(kEnqueueFunctionId, enqueue_payload(1 + (k + t) % 4, 0, "0110")); // id 4 is unknown
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_TRUE(server.stop(soon()));
  for (requester &client : clients)
    for (std::uint32_t k = 0; k < kRequests; ++k)
      ASSERT_EQ(client.answers_to(k), 1u);
  std::uint64_t requests = 0, by_status = 0;
  for (const auto &decoder : server.decoders()) {
    const decoder_counts counts = decoder->counts();
    requests += counts.requests;
    for (const std::uint64_t n : counts.by_status)
      by_status += n;
  }
  EXPECT_EQ(by_status, requests);
  EXPECT_EQ(requests + server.strays(), 3 * kRequests);
}

TEST(ServerQueue, LatchesADecoderThatThrowsAndServesTheOthers) {
  decoder_result made = make_decoder(std::string(CUDAQ_TEST_THROWING_PLUGIN) + ":in=decode,what=int", rotated_model(1));
  ASSERT_TRUE(made) << made.error;
  std::vector<decoder_setup> setups;
  setups.push_back(
      {{.id = 1, .queue_length = 4}, std::make_unique<decoding_unit>(std::move(made.instance), sparse_rows{}, 1)});
  setups.push_back({{.id = 2, .queue_length = 4}, unit_for(rotated_model(1))});
  started_server running(std::move(setups));
  requester &client = running.client;
  const auto enqueue = [&](std::uint64_t id, std::uint64_t counter, const char *bits) {
    return client.call(kEnqueueFunctionId, enqueue_payload(id, counter, bits));
  };
  EXPECT_EQ(enqueue(1, 0, "1"), answered(server_status::internal));
  EXPECT_EQ(enqueue(1, 1, "0"), answered(server_status::internal)) << "latched";
  EXPECT_EQ(enqueue(2, 0, "1"), answered(server_status::ok));
  EXPECT_EQ(client.call(kGetCorrectionsFunctionId, get_payload(2, 1)), answered(server_status::ok, "1"));
  EXPECT_EQ(client.call(kResetFunctionId, reset_payload(1)), answered(server_status::ok));
  EXPECT_EQ(enqueue(1, 0, "0"), answered(server_status::ok));
}

TEST(ServerReadoutQueue, KeepsTheLongestRequestsAndRefusesLongerOnes) {
  decoding_server server(one_setup({.id = 6, .queue_length = 4}, readout_unit()));
  requester client(server);
  ASSERT_EQ(server.start(requester::receiver(), CUDAQ_WAIT_BLOCK).text(), "");
  const readout_shot sure{"10", {12, 12, 3}, {0, 0, 0, 0, 0}}, unsure{"10", {3, 7, 8}, {0, 0, 0, 0, 0}};
  std::uint64_t counter = 0;
  for (const auto &[shot, answer] : {std::pair{sure, "1"}, {unsure, "0"}, {sure, "1"}, {sure, "1"}, {unsure, "0"}})
    for (const soft_kind kind : kAllKinds) {
      EXPECT_EQ(client.call(kEnqueueReadoutFunctionId, readout_payload(6, counter++, shot, kind)),
                answered(server_status::ok));
      EXPECT_EQ(client.call(kGetCorrectionsFunctionId, get_payload(6, 1, true)), answered(server_status::ok, answer));
      EXPECT_EQ(client.call(kOneShotFunctionId, one_shot_payload(shot, kind)), answered(server_status::ok, answer));
    }
  bytes longer = one_shot_payload(unsure, soft_kind::f32);
  longer.push_back(0);
  EXPECT_EQ(client.call(kOneShotFunctionId, longer).status, -static_cast<std::int32_t>(server_status::bad_request));
  const readout_shot too_many{"10", {7, 7, 7, 7}, {0, 0, 0, 0, 0}};
  EXPECT_EQ(client.call(kEnqueueReadoutFunctionId, readout_payload(6, counter, too_many, soft_kind::f32)),
            answered(server_status::bad_request));
  EXPECT_TRUE(server.stop(soon()));
}

} // namespace
} // namespace cudaq::qec::realtime::test
