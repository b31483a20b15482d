// SPDX-License-Identifier: Apache-2.0
// One answer, one count, and its time: what the counters of a decoder say.
#include "unittests/qec/server/server_stream_support.h"
#include "unittests/qec/server/server_threads_support.h"
#include "unittests/support/threads_named.h"

#include <array>
#include <cstddef>
#include <memory>
#include <numeric>
#include <thread>

namespace cudaq::qec::realtime::test {
namespace {

// One answer, one count: what the counters of a decoder say.

std::uint64_t answers(const served_decoder &decoder, server_status status) {
  return decoder.counts().by_status[static_cast<std::size_t>(status)];
}

TEST(ServerCounts, HaveABusyShotAsBusyAndNothingElse) {
  rt::shared_word<std::uint32_t> open;
  started_server running(one_setup({.id = 1, .queue_length = 1}, unit_with_gate(open)));
  decoding_server &server = running.server;
  requester &client = running.client;
  const std::uint32_t first = client.send(kOneShotFunctionId, packed("1"));
  const std::uint32_t refused = client.send(kOneShotFunctionId, packed("1"));
  EXPECT_EQ(client.answer(refused).status, -5);
  open.store(1);
  EXPECT_EQ(client.answer(first).status, 0);
  const served_decoder &decoder = *server.decoders()[0];
  EXPECT_EQ(answers(decoder, server_status::busy), 1U);
  EXPECT_EQ(answers(decoder, server_status::ok), 1U);
  const auto all = decoder.counts().by_status;
  EXPECT_EQ(std::accumulate(all.begin(), all.end(), std::uint64_t{0}), decoder.counts().requests);
}

TEST(ServerCounts, PutTheStatusOfADecodeUnderTheServersName) {
  const auto of_shot = [](decode_status status) {
    return counted_status(wire_function::one_shot, static_cast<std::int32_t>(status));
  };
  EXPECT_EQ(of_shot(decode_status::ok), server_status::ok);
  EXPECT_EQ(of_shot(decode_status::deadline), server_status::deadline);
  EXPECT_EQ(of_shot(decode_status::no_solution), server_status::internal);
  EXPECT_EQ(of_shot(decode_status::not_converged), server_status::not_converged);
  EXPECT_EQ(of_shot(decode_status::bad_detector_index), server_status::bad_request);
  EXPECT_EQ(of_shot(decode_status::buffer_too_small), server_status::bad_request);
  EXPECT_EQ(counted_status(wire_function::one_shot, -4), server_status::not_ready);
  EXPECT_EQ(counted_status(wire_function::enqueue, 6), server_status::syndromes_dropped);
  EXPECT_EQ(counted_status(wire_function::enqueue, -1011), server_status::busy) << "no room for a copy";
}

TEST(ServerCounts, HaveTheDeadlinesOfTheWindowsOfAStream) {
  // A window of relay-bp that reaches its deadline without a solution breaks the stream, and the next one begins.
  const auto with = [](const char *deadline) {
    return one_setup(
        {.id = 1},
        stream_unit_with(rotated_stream_model(4),
                         {.decoder = std::string("relay-bp:deadline_us=") + deadline, .commit = 2, .buffer = 1}));
  };
  decoding_server met(with("1000000000"));
  for (std::uint64_t counter = 0; counter < 7; ++counter)
    ASSERT_EQ(call(met, kEnqueueFunctionId, enqueue_payload(1, counter, "1000")), answered(server_status::ok));
  EXPECT_EQ(met.decoders()[0]->counts().deadlines.met, 3U) << "7 rounds are 3 windows";
  EXPECT_EQ(met.decoders()[0]->counts().deadlines.missed, 0U);
  decoding_server missed(with("0.001"));
  for (std::uint64_t stream = 1; stream <= 2; ++stream) {
    ASSERT_EQ(call(missed, kResetFunctionId, reset_payload(1)), answered(server_status::ok));
    EXPECT_EQ(call(missed, kEnqueueFunctionId, enqueue_payload(1, 0, "110011001100")).status,
              static_cast<std::int32_t>(server_status::deadline));
    EXPECT_EQ(call(missed, kEnqueueFunctionId, enqueue_payload(1, 1, "1100")), answered(server_status::deadline))
        << "the stream stays broken";
    EXPECT_EQ(missed.decoders()[0]->counts().deadlines.missed, stream) << "those of earlier streams stay";
  }
}

TEST(ServerCounts, HaveTheWinnersOfARace) {
  decoder_result made = make_decoder("race:bp-osd|relay-bp,mode=best", rotated_model(4));
  ASSERT_TRUE(made) << made.error;
  decoding_server server(
      one_setup({.id = 1}, std::make_unique<decoding_unit>(std::move(made.instance), sparse_rows{}, 4)));
  for (std::uint64_t counter = 0; counter < 20; ++counter)
    ASSERT_EQ(call(server, kEnqueueFunctionId, enqueue_payload(1, counter, "1100")), answered(server_status::ok));
  ASSERT_EQ(call(server, kOneShotFunctionId, packed("1000")).status, 0);
  const auto identity = server.decoders()[0]->identity();
  EXPECT_EQ(identity->members, (std::vector<std::string>{"bp-osd", "relay-bp"}));
  ASSERT_EQ(identity->wins.size(), 2U);
  EXPECT_EQ(identity->wins[0].value() + identity->wins[1].value(), 21U) << "each shot has one winner";
}

/// As a race of two. One event: its second member fails. Two events: both do. Three: none has converged.
class broken_race : public decoder {
public:
  broken_race() : decoder(3, 1) {}
  const char *name() const noexcept override { return "race"; }
  const char *fault() const noexcept override { return "member b: broken"; }
  std::vector<std::pair<std::string, std::uint64_t>> wins() const override { return {{"a", 0}, {"b", 0}}; }
  std::uint64_t member_faults() const noexcept override { return faults_; }
  void fail_late() { ++faults_; } ///< a member, in a shot that was answered before

protected:
  decode_status decode_checked(const std::vector<std::uint64_t> &events, std::span<std::uint8_t> observables,
                               decode_details *) noexcept override {
    if (events.size() == 3)
      return decode_status::not_converged;
    faults_ += events.size();
    observables[0] = static_cast<std::uint8_t>(events.size());
    return events.size() == 2 ? decode_status::internal_error : decode_status::ok;
  }

private:
  std::uint64_t faults_ = 0;
};

TEST(ServerCounts, HaveTheFaultsOfAMemberWhereAnotherOneAnswers) {
  decoding_server server(
      one_setup({.id = 1}, std::make_unique<decoding_unit>(std::make_unique<broken_race>(), sparse_rows{}, 3)));
  for (const char *shot : {"000", "100", "000", "100"})
    ASSERT_EQ(call(server, kOneShotFunctionId, packed(shot)).status, 0);
  ASSERT_EQ(call(server, kEnqueueFunctionId, enqueue_payload(1, 0, "100")), answered(server_status::ok));
  EXPECT_EQ(server.decoders()[0]->failures().count, 3U);
  EXPECT_EQ(server.decoders()[0]->failures().last, "of a race, whose other members go on: member b: broken");
}

TEST(ServerCounts, HaveTheFaultOfEachMemberWhereNoneAnswers) {
  auto made = std::make_unique<broken_race>();
  broken_race &race = *made;
  decoding_server server(one_setup({.id = 1}, std::make_unique<decoding_unit>(std::move(made), sparse_rows{}, 3)));
  const auto count_after = [&](const char *shot, decode_status status) {
    EXPECT_EQ(call(server, kOneShotFunctionId, packed(shot)).status, static_cast<std::int32_t>(status));
    return server.decoders()[0]->failures().count;
  };
  EXPECT_EQ(count_after("110", decode_status::internal_error), 2U);
  EXPECT_EQ(server.decoders()[0]->failures().last, "internal error of the decoder: member b: broken");
  race.fail_late();
  EXPECT_EQ(count_after("011", decode_status::internal_error), 5U) << "and the late one";
  EXPECT_EQ(count_after("111", decode_status::not_converged), 6U) << "no fault of a member";
  race.fail_late();
  EXPECT_EQ(count_after("111", decode_status::not_converged), 8U);
}

TEST(ServerCounts, HaveTheFaultOfAMemberWhereTheOthersDoNotConverge) {
  auto made = std::make_unique<broken_race>();
  broken_race &race = *made;
  decoding_server server(one_setup({.id = 1}, std::make_unique<decoding_unit>(std::move(made), sparse_rows{}, 3)));
  const auto after_one = [&] {
    EXPECT_EQ(call(server, kOneShotFunctionId, packed("111")).status,
              static_cast<std::int32_t>(decode_status::not_converged));
    return server.decoders()[0]->failures();
  };
  EXPECT_EQ(after_one().last, decode_status_text(decode_status::not_converged));
  race.fail_late();
  const decode_failures both = after_one();
  EXPECT_EQ(both.count, 3U) << "two shots and a member";
  EXPECT_EQ(both.not_converged, 2U);
  EXPECT_EQ(both.last, "of a race, whose other members go on: member b: broken");
  EXPECT_EQ(after_one().last, both.last) << "one that did not converge says less";
}

/// A race with a name.
std::vector<decoder_setup> named_race(unsigned seed) {
  decoder_result made = make_decoder("race:bp-osd|relay-bp(seed=" + std::to_string(seed) + ")", rotated_model(4));
  if (!made)
    throw std::runtime_error(made.error);
  auto unit = std::make_unique<decoding_unit>(std::move(made.instance), sparse_rows{}, 4);
  unit->identity()->name = std::string(1 + seed % 40, 'a'); // long and short strings
  return one_setup({.id = 1, .queue_length = 8}, std::move(unit));
}

TEST(ServerCounts, MayBeReadWhileTheDecoderWorksAndIsExchanged) {
  started_server running(named_race(0));
  decoding_server &server = running.server;
  requester &client = running.client;
  rt::shared_word<std::uint32_t> ends;
  std::thread reader([&] {
    std::uint64_t seen = 0;
    requester mine(server);
    for (std::uint32_t number = 0; ends.load() == 0; ++number) {
      const auto identity = server.decoders()[0]->identity();
      seen += identity->name.size() + identity->wins[0].value() + server.decoders()[0]->counts().shots;
      EXPECT_EQ(mine.answer(mine.send(kNameFunctionId, reset_payload(1))).status, 0);
    }
    EXPECT_GT(seen, 0U);
  });
  for (unsigned reload = 1; reload <= 20; ++reload) {
    for (int shot = 0; shot < 5; ++shot)
      EXPECT_EQ(client.answer(client.send(kOneShotFunctionId, packed("1100"))).status, 0);
    EXPECT_EQ(server.reload(named_race(reload), soon()).outcome, reload_outcome::applied);
  }
  ends.store(1);
  reader.join();
  const auto identity = server.decoders()[0]->identity();
  EXPECT_EQ(identity->name.size(), 21U);
  EXPECT_EQ(identity->wins[0].value() + identity->wins[1].value(), 0U) << "a new decoder counts from 0";
  EXPECT_EQ(server.decoders()[0]->counts().shots, 100U);
}

// The times of a decoder's requests, stage by stage.

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

// The threads that decoders share.

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
} // namespace cudaq::qec::realtime::test
