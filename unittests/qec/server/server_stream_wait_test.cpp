// SPDX-License-Identifier: Apache-2.0
// Requests that wait for a round, with threads.
#include "unittests/qec/server/server_stream_support.h"
#include "unittests/qec/server/server_threads_support.h"
#include "unittests/qec/stream/stream_test_support.h"

#include <cstring>

namespace {

using namespace cudaq::qec::realtime;
using namespace cudaq::qec::realtime::test;

/// A started server with one stream of id 1 with 2 detectors a round, commit 2 and buffer 1.
struct stream_rig : started_server {
  explicit stream_rig(decoder_limits limits)
      : started_server(one_setup(limits, stream_unit_for(rotated_stream_model(2))), 2) {}
  std::uint32_t enqueue(const std::string &bits) {
    return client.send(kEnqueueFunctionId, enqueue_payload(1, counter++, bits));
  }
  std::uint32_t wait_for(std::uint64_t round) {
    return client.send(kGetCommittedFunctionId, committed_payload(1, 2, round));
  }
  std::uint64_t counter = 0;
};

constexpr std::uint64_t kLong = 60'000'000'000; ///< an age limit that no test reaches

TEST(ServerStreamWait, AnswersWhenTheRoundIsFinalAndDoesNotHoldUpLaterRounds) {
  stream_rig rig({.id = 1, .queue_length = 16, .age_limit_ns = kLong});
  const std::uint32_t third = rig.wait_for(4), first = rig.wait_for(1), second = rig.wait_for(2);
  EXPECT_EQ(rig.client.answer(rig.enqueue("1000")), answered(server_status::ok));
  EXPECT_EQ(rig.client.answers_to(first), 0U);
  EXPECT_EQ(rig.client.answer(rig.enqueue("01")), answered(server_status::ok));
  EXPECT_EQ(rig.client.answer(first), committed(2, 3, "10"));
  EXPECT_EQ(rig.client.answer(second), committed(2, 3, "10"));
  EXPECT_EQ(rig.client.answers_to(third), 0U);
  EXPECT_FALSE(rig.server.idle());
  EXPECT_EQ(rig.client.answer(rig.enqueue("1111")), answered(server_status::ok));
  EXPECT_EQ(rig.client.answer(third), committed(4, 5, "00"));
  EXPECT_TRUE(rt::wait_until(soon(), [&] { return rig.server.idle(); }));
}

TEST(ServerStreamWait, IsServedAgainOnlyWhenItsRoundIsFinal) {
  stream_rig rig({.id = 1, .queue_length = 16, .age_limit_ns = kLong});
  const std::uint32_t wait = rig.wait_for(10), other = rig.wait_for(10);
  for (int round = 0; round < 10; ++round)
    EXPECT_EQ(rig.client.answer(rig.enqueue("00")), answered(server_status::ok));
  EXPECT_EQ(rig.client.answers_to(wait), 0U) << "8 rounds are final";
  EXPECT_EQ(rig.client.answer(rig.enqueue("00")), answered(server_status::ok));
  EXPECT_EQ(rig.client.answer(wait), committed(10, 11, "00"));
  EXPECT_EQ(rig.client.answer(other), committed(10, 11, "00"));
  EXPECT_EQ(rig.server.decoders()[0]->begun(), 2U + 11U + 2U) << "twice each read, once each request with bits";
}

TEST(ServerStreamWait, IsBusyAfterTheAgeLimitWithoutAnotherRequest) {
  stream_rig rig({.id = 1, .queue_length = 16, .age_limit_ns = 30'000'000});
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(rig.client.answer(rig.wait_for(1)), answered(server_status::busy));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(30));
  EXPECT_EQ(rig.client.answer(rig.wait_for(1)), answered(server_status::busy)) << "and once more";
  EXPECT_EQ(rig.server.decoders()[0]->counts().by_status[static_cast<std::size_t>(server_status::busy)], 2U);
}

TEST(ServerStreamWait, IsBusyAfterASecondWithoutAnAgeLimit) {
  stream_rig rig({.id = 1, .queue_length = 16});
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(rig.client.answer(rig.wait_for(1)), answered(server_status::busy));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1));
}

TEST(ServerStreamWait, IsNotReadyAtTheEnd) {
  stream_rig rig({.id = 1, .queue_length = 16, .age_limit_ns = kLong});
  const std::uint32_t wait = rig.wait_for(1);
  ASSERT_TRUE(rig.all_served());
  rig.server.close();
  EXPECT_EQ(rig.client.answer(wait), answered(server_status::not_ready));
  EXPECT_TRUE(rt::wait_until(soon(), [&] { return rig.server.idle(); }));
}

TEST(ServerStreamWait, HasTheStatusOfTheStreamWhenItBreaks) {
  stream_rig rig({.id = 1, .queue_length = 16, .age_limit_ns = kLong});
  const std::uint32_t wait = rig.wait_for(1), other = rig.wait_for(50);
  ASSERT_EQ(rig.client.answer(rig.enqueue("10")), answered(server_status::ok));
  ++rig.counter;
  EXPECT_EQ(rig.client.answer(rig.enqueue("10")), answered(server_status::syndromes_dropped));
  EXPECT_EQ(rig.client.answer(wait), answered(server_status::syndromes_dropped));
  EXPECT_EQ(rig.client.answer(other), answered(server_status::syndromes_dropped));
}

TEST(ServerStreamWait, IsBusyWhenANewStreamBegins) {
  stream_rig rig({.id = 1, .queue_length = 16, .age_limit_ns = kLong});
  const std::uint32_t wait = rig.wait_for(1);
  EXPECT_EQ(rig.client.call(kResetFunctionId, reset_payload(1)), answered(server_status::ok));
  EXPECT_EQ(rig.client.answer(wait), answered(server_status::busy)) << "it waited for a round of the old one";
}

TEST(ServerStreamWait, GoesOnAfterAResetThatIsRefused) {
  stream_rig rig({.id = 1, .queue_length = 16, .age_limit_ns = kLong});
  const std::uint32_t wait = rig.wait_for(1);
  bytes too_short = reset_payload(1);
  too_short.pop_back();
  EXPECT_EQ(rig.client.call(kResetFunctionId, too_short), answered(server_status::bad_request));
  EXPECT_EQ(rig.client.answer(rig.enqueue("010000")), answered(server_status::ok));
  EXPECT_EQ(rig.client.answer(wait), committed(2, 3, "01"));
}

TEST(ServerStreamWait, GoesOnAfterACopyOfTheResetBeforeIt) {
  stream_rig rig({.id = 1, .queue_length = 16, .age_limit_ns = kLong});
  EXPECT_EQ(rig.client.call(kResetFunctionId, reset_payload(1), 1, 1001), answered(server_status::ok));
  const std::uint32_t wait = rig.wait_for(1);
  EXPECT_EQ(rig.client.call(kResetFunctionId, reset_payload(1), 1, 1001), answered(server_status::ok)) << "it is late";
  EXPECT_EQ(rig.client.answer(rig.enqueue("010000")), answered(server_status::ok));
  EXPECT_EQ(rig.client.answer(wait), committed(2, 3, "01"));
}

TEST(ServerStreamWait, EndsWithTheTailAlsoForRoundsThatDoNotCome) {
  stream_rig rig({.id = 1, .queue_length = 16, .age_limit_ns = kLong});
  const std::uint32_t wait = rig.wait_for(1'000'000);
  rig.enqueue("1000");
  rig.client.send(kBeginTailFunctionId, begin_tail_payload(1, rig.counter++));
  ASSERT_EQ(rig.client.answer(rig.enqueue("01")), answered(server_status::ok));
  EXPECT_EQ(rig.client.answer(wait), committed(3, 3, "11"));
}

TEST(ServerStreamWait, TakesAsManyRequestsAsTheQueueAndNoMore) {
  stream_rig rig({.id = 1, .queue_length = 3, .age_limit_ns = kLong});
  std::vector<std::uint32_t> waits;
  for (int k = 0; k < 3; ++k) {
    waits.push_back(rig.wait_for(1));
    ASSERT_TRUE(rig.all_served());
  }
  EXPECT_EQ(rig.client.answer(rig.wait_for(1)), answered(server_status::busy));
  EXPECT_EQ(rig.client.answer(rig.enqueue("010000")), answered(server_status::ok));
  for (const std::uint32_t wait : waits)
    EXPECT_EQ(rig.client.answer(wait), committed(2, 3, "01"));
}

TEST(ServerStreamWait, IsBusyForMoreThanEightRequestsOfADecoderWhateverTheQueue) {
  stream_rig rig({.id = 1, .queue_length = 100, .age_limit_ns = kLong});
  std::vector<std::uint32_t> waits;
  for (int k = 0; k < 8; ++k)
    waits.push_back(rig.wait_for(1));
  ASSERT_TRUE(rig.all_served());
  for (int k = 0; k < 20; ++k)
    EXPECT_EQ(rig.client.answer(rig.wait_for(1)), answered(server_status::busy)) << "at once";
  EXPECT_EQ(rig.client.answer(rig.enqueue("010000")), answered(server_status::ok));
  for (const std::uint32_t wait : waits)
    EXPECT_EQ(rig.client.answer(wait), committed(2, 3, "01"));
}

TEST(ServerStreamWait, SaysThatTheTailLacksBitsAndHowMany) {
  stream_rig rig({.id = 1, .queue_length = 16, .age_limit_ns = 500'000'000});
  const auto described = [&rig] {
    bytes payload;
    for (const std::uint64_t number : {1U, 2U}) // the decoder; with the parts of its stream
      append_number(payload, number);
    const full_answer answer = call(rig.server, kDescribeFunctionId, payload);
    EXPECT_EQ(answer.status, 0);
    EXPECT_EQ(answer.result.size(), sizeof(cudaq_qec_stream_description_t));
    cudaq_qec_stream_description_t parts{};
    std::memcpy(&parts, answer.result.data(), std::min(sizeof parts, answer.result.size()));
    return parts;
  };
  rig.client.answer(rig.enqueue("1000"));
  EXPECT_EQ(described().head_detectors, 2U);
  EXPECT_EQ(described().tail_detectors, 2U);
  EXPECT_EQ(described().missing_tail_bits, 0U) << "the tail has not begun";
  rig.client.answer(rig.client.send(kBeginTailFunctionId, begin_tail_payload(1, rig.counter++)));
  ASSERT_EQ(rig.client.answer(rig.enqueue("0")), answered(server_status::ok)) << "a part of the tail";
  EXPECT_EQ(described().missing_tail_bits, 1U);
  EXPECT_EQ(rig.client.answer(rig.wait_for(3)), answered(server_status::syndromes_dropped));
  ASSERT_EQ(rig.client.answer(rig.enqueue("1")), answered(server_status::ok)) << "nothing has latched";
  EXPECT_EQ(rig.client.answer(rig.wait_for(3)), committed(3, 3, "11"));
  EXPECT_EQ(described().missing_tail_bits, 0U);
}

/// Plays streams of 41 rounds to a decoder, with a read that waits for each window, also after the first exchange of
/// its model; returns what went wrong.
std::string play_streams(decoding_server &server, std::uint64_t id, unsigned least, unsigned &streams) {
  constexpr std::uint64_t kRounds = 41;
  requester client(server);
  std::uint64_t state = id;
  const auto is_exchanged = [&] { return server.decoders()[id - 1]->counts().exchanges != 0; };
  for (const auto end = soon(); streams < least || (!is_exchanged() && rt::steady_clock::now() < end); ++streams) {
    if (client.call(kResetFunctionId, reset_payload(id)) != answered(server_status::ok))
      return "reset";
    std::string sum = "00";
    std::vector<std::string> sums{sum};
    std::uint64_t counter = 0;
    std::uint32_t read = 0;
    for (std::uint64_t round = 0; round < kRounds; ++round) {
      if (round % 2 == 1) {
        const std::uint64_t window = round - 1; // whose last round was the one before
        if (window != 0 && client.answer(read) != committed(window, round, sums[window]))
          return "window " + std::to_string(window);
        read = client.send(kGetCommittedFunctionId, committed_payload(id, 2, window + 2));
      }
      if (round + 1 == kRounds &&
          client.call(kBeginTailFunctionId, begin_tail_payload(id, counter++)) != answered(server_status::ok))
        return "begin_tail";
      std::string bits;
      for (std::size_t k = 0; k < 2; ++k) {
        bits += (state = state * 6364136223846793005U + 1442695040888963407U) >> 63 != 0 ? '1' : '0';
        sum[k] = sum[k] == bits[k] ? '0' : '1';
      }
      sums.push_back(sum);
      if (client.call(kEnqueueFunctionId, enqueue_payload(id, counter++, bits)) != answered(server_status::ok))
        return "round " + std::to_string(round);
    }
    if (client.call(kGetCommittedFunctionId, committed_payload(id, 2, kRounds)) != committed(kRounds, kRounds, sum))
      return "the end";
  }
  return "";
}

/// The number of workers.
class ServerStreamWaits : public testing::TestWithParam<std::size_t> {};

TEST_P(ServerStreamWaits, LoseNoReadInManyStreamsAndReloads) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  constexpr unsigned kStreams = 10;
#else
  constexpr unsigned kStreams = 60;
#endif
  const auto setups = [] { // of a reload, too: with new workers
    const auto workers = GetParam() == 0 ? nullptr : workers_or_throw(GetParam());
    std::vector<decoder_setup> all;
    for (const std::uint64_t id : {1U, 2U, 3U})
      all.push_back({{.id = id, .queue_length = 8, .age_limit_ns = kLong},
                     stream_unit_for(rotated_stream_model(2), 2, 1, workers)});
    return all;
  };
  started_server running(setups(), 2);
  decoding_server &server = running.server;
  std::string problems[3];
  unsigned streams[3] = {};
  rt::shared_word<std::uint32_t> ended;
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      try {
        problems[t] = play_streams(server, t + 1, kStreams, streams[t]);
      } catch (const std::exception &e) {
        problems[t] = e.what();
      }
      ended.add(1);
    });
  while (ended.load() != 3)
    EXPECT_EQ(server.reload(setups(), soon()).outcome, reload_outcome::applied);
  for (std::thread &thread : threads)
    thread.join();
  for (unsigned t = 0; t < 3; ++t) {
    EXPECT_EQ(problems[t], "") << t;
    EXPECT_EQ(server.decoders()[t]->counts().shots, streams[t]);
    EXPECT_GT(server.decoders()[t]->counts().exchanges, 0U);
  }
}

INSTANTIATE_TEST_SUITE_P(ByWorkers, ServerStreamWaits, testing::Values(0, 2), testing::PrintToStringParamName());

} // namespace
