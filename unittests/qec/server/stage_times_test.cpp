// SPDX-License-Identifier: Apache-2.0
// The times of a decoder's requests, stage by stage.
#include "unittests/qec/server/server_threads_support.h"

#include <thread>

namespace {

using namespace cudaq::qec::realtime;
using namespace cudaq::qec::realtime::test;

constexpr std::uint64_t kMs = 1'000'000;

rt::time_histogram::snapshot times(decoding_server &server, request_stage stage) {
  return server.decoders()[0]->times().read(stage);
}

TEST(StageTimes, SayWhereARequestWaited) {
  rt::shared_word<std::uint32_t> open;
  started_server running(one_setup({.id = 1, .queue_length = 3}, unit_with_gate(open)));
  decoding_server &server = running.server;
  requester &client = running.client;
  const std::uint32_t first = client.send(kOneShotFunctionId, packed("1"));
  ASSERT_TRUE(rt::wait_until(soon(), [&] { return server.decoders()[0]->begun() == 1; }));
  const std::uint32_t second = client.send(kOneShotFunctionId, packed("1")),
                      third = client.send(kOneShotFunctionId, packed("1")),
                      refused = client.send(kOneShotFunctionId, packed("1"));
  EXPECT_EQ(client.answer(refused).status, -5) << "the queue is full";
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  open.store(1);
  for (const std::uint32_t number : {first, second, third})
    EXPECT_EQ(client.answer(number).status, 0);
  ASSERT_TRUE(rt::wait_until(soon(), [&] { return server.idle(); }));
  for (const request_stage stage : {request_stage::accepted, request_stage::queued, request_stage::taken,
                                    request_stage::decoded, request_stage::answered, request_stage::whole})
    EXPECT_EQ(times(server, stage).count, 3U) << kRequestStages[static_cast<std::size_t>(stage)];
  EXPECT_GE(times(server, request_stage::decoded).max_ns, 30 * kMs) << "the first one was decoded";
  EXPECT_GE(times(server, request_stage::taken).sum_ns, 60 * kMs) << "the others were in the queue";
  EXPECT_GE(times(server, request_stage::whole).sum_ns, 90 * kMs);
}

TEST(StageTimes, AddUpToTheWholeTime) {
  started_server running(one_setup({.id = 1, .queue_length = 8}, unit_for(rotated_model(4))));
  decoding_server &server = running.server;
  requester &client = running.client;
  for (int k = 0; k < 100; ++k)
    EXPECT_EQ(client.call(kOneShotFunctionId, packed("1000")).status, 0);
  ASSERT_TRUE(rt::wait_until(soon(), [&] { return server.idle(); }));
  std::uint64_t sum = 0;
  for (const request_stage stage : {request_stage::accepted, request_stage::queued, request_stage::taken,
                                    request_stage::decoded, request_stage::answered})
    sum += times(server, stage).sum_ns;
  const std::uint64_t whole = times(server, request_stage::whole).sum_ns;
  // Each part is rounded down, and the counters of two cores may differ by some ticks.
  EXPECT_NEAR(static_cast<double>(sum), static_cast<double>(whole), 100 * 1000.0);
  EXPECT_GT(whole, 100U * 100U);
}

TEST(StageTimes, WithoutAQueueAreThoseOfTheDecode) {
  rt::shared_word<std::uint32_t> open;
  decoding_server server(one_setup({.id = 1}, unit_with_gate(open)));
  std::thread opens([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    open.store(1);
  });
  EXPECT_EQ(call(server, kOneShotFunctionId, packed("1")).status, 0);
  opens.join();
  EXPECT_GE(times(server, request_stage::decoded).max_ns, 10 * kMs);
  for (const request_stage stage :
       {request_stage::accepted, request_stage::queued, request_stage::taken, request_stage::answered}) {
    EXPECT_EQ(times(server, stage).count, 1U);
    EXPECT_EQ(times(server, stage).max_ns, 0U);
  }
}

TEST(StageTimes, OfThreadsThatSubmitAtOnceAreNotLost) {
  decoding_server server(one_setup({.id = 1}, unit_for(rotated_model(4))));
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&server] {
      for (int k = 0; k < 2000; ++k)
        EXPECT_EQ(call(server, kOneShotFunctionId, packed("1000")).status, 0);
    });
  for (std::thread &t : threads)
    t.join();
  EXPECT_EQ(times(server, request_stage::decoded).count, 6000U);
  EXPECT_EQ(times(server, request_stage::whole).count, 6000U);
}

} // namespace
