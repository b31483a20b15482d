// SPDX-License-Identifier: Apache-2.0
// Streams of a server whose windows are decoded by workers.
#include "unittests/qec/server/server_stream_support.h"
#include "unittests/qec/server/server_threads_support.h"
#include "unittests/qec/stream/gated_plugin_support.h"
#include "unittests/qec/stream/stream_test_support.h"

#include <random>

namespace {

using namespace cudaq::qec::realtime;
using namespace cudaq::qec::realtime::test;

constexpr std::uint64_t kLong = 60'000'000'000; ///< an age limit that no test reaches

/// A started server with streams of ids 1, 2 ..., and a control system of one of them.
struct workers_rig : started_server {
  explicit workers_rig(std::vector<decoder_setup> setups) : started_server(std::move(setups), 2) {}
  explicit workers_rig(std::unique_ptr<decoding_unit> unit, std::uint32_t queue_length = 64)
      : workers_rig(one_setup({.id = 1, .queue_length = queue_length, .age_limit_ns = kLong}, std::move(unit))) {}
  std::uint32_t enqueue(const std::string &bits) {
    return client.send(kEnqueueFunctionId, enqueue_payload(1, counter++, bits));
  }
  std::uint32_t begin_tail() { return client.send(kBeginTailFunctionId, begin_tail_payload(1, counter++)); }
  std::uint32_t read(std::uint64_t wanted, std::uint64_t wait_for_round) {
    return client.send(kGetCommittedFunctionId, committed_payload(1, wanted, wait_for_round));
  }
  std::uint32_t reset() {
    counter = 0;
    return client.send(kResetFunctionId, reset_payload(1));
  }
  decoder_counts counts() const { return decoder().counts(); }

  std::uint64_t counter = 0;
};

const std::string kDem = repetition_dem(4, 0.05, 1, 100); // 3 detectors a round
const std::string kRound = "000";

std::string rounds(std::size_t count) {
  std::string bits;
  for (std::size_t k = 0; k < count; ++k)
    bits += kRound;
  return bits;
}

/// A decoder that ends when the gate is open, and finds nothing.
std::unique_ptr<decoding_unit> gated_unit(std::uint64_t queue_rounds = 0, const std::string &settings = ":gated=1") {
  return stream_unit_with(kDem, {.decoder = CUDAQ_TEST_GATED_PLUGIN + settings,
                                 .commit = 3,
                                 .buffer = 3,
                                 .mode = stream_mode::sequential,
                                 .workers = 1,
                                 .queue_rounds = queue_rounds});
}

TEST(ServerStreamWorkers, GiveTheFramesOfAStreamWithoutWorkersInEachMode) {
  const auto pool = workers_or_throw(2); // for all streams
  for (const stream_mode mode : {stream_mode::sequential, stream_mode::parallel, stream_mode::automatic}) {
    stream_options options{.decoder = "lookup", .commit = 3, .buffer = 2, .mode = mode, .pool = pool};
    const std::string dem = repetition_dem(2, 0.05, 1, 100); // a detector a round
    workers_rig rig(stream_unit_with(dem, options));
    options.pool = nullptr;
    options.mode = mode == stream_mode::sequential ? mode : stream_mode::parallel;
    const auto reference = stream_or_throw(dem, options);
    std::mt19937 random(7);
    for (int stream = 0; stream < 5; ++stream) {
      reference->reset();
      ASSERT_EQ(rig.client.answer(rig.reset()), answered(server_status::ok));
      const auto expected = [&] {
        return committed(reference->committed_rounds(), reference->pushed_rounds(),
                         reference->observables()[0] != 0 ? "1" : "0");
      };
      const auto some_round = [&random] { return std::string(random() % 4 == 0 ? "1" : "0"); };
      for (std::uint64_t round = 0, all = 20 + random() % 30; round < all; ++round) {
        const std::string bits = some_round();
        ASSERT_EQ(reference->push(packed(bits), 1), decode_status::ok);
        const std::uint32_t read = rig.read(1, reference->committed_rounds()), sent = rig.enqueue(bits);
        ASSERT_EQ(rig.client.answer(sent), answered(server_status::ok));
        static_cast<void>(rig.client.answer(read));
        ASSERT_EQ(rig.client.answer(rig.read(1, reference->committed_rounds())), expected()) << round;
      }
      const std::string tail = some_round();
      ASSERT_EQ(reference->finish(packed(tail), 1), decode_status::ok);
      rig.begin_tail();
      ASSERT_EQ(rig.client.answer(rig.enqueue(tail)), answered(server_status::ok));
      ASSERT_EQ(rig.client.answer(rig.read(1, UINT64_MAX)), expected());
    }
    EXPECT_EQ(rig.counts().shots, 5U);
    EXPECT_EQ(rig.counts().stream.committed, rig.counts().stream.pushed);
  }
}

TEST(ServerStreamWorkers, AnswerBitsAtOnceAndAReadWhenItsWindowIsDecoded) {
  const gate slow;
  workers_rig rig(gated_unit());
  const std::uint32_t read = rig.read(1, 3);
  EXPECT_EQ(rig.client.answer(rig.enqueue(rounds(7))), answered(server_status::ok));
  EXPECT_EQ(rig.client.answer(rig.read(1, 0)), committed(0, 7, "0")) << "a read that does not wait";
  EXPECT_EQ(rig.client.answers_to(read), 0U);
  EXPECT_EQ(rig.counts().stream.lag, 7U);
  slow.open();
  EXPECT_EQ(rig.client.answer(read), committed(3, 7, "0")) << "no other request came";
  EXPECT_TRUE(rt::wait_until(soon(), [&] { return rig.counts().stream.lag == 4; }));
}

TEST(ServerStreamWorkers, AreBusyAtTheLimitForARoundThatNeedsNoBitsOfTheTail) {
  const gate slow;
  workers_rig rig(one_setup({.id = 1, .queue_length = 16, .age_limit_ns = 500'000'000}, gated_unit()));
  EXPECT_EQ(rig.client.answer(rig.enqueue(rounds(7))), answered(server_status::ok));
  EXPECT_EQ(rig.client.answer(rig.begin_tail()), answered(server_status::ok));
  const std::uint32_t of_window = rig.read(1, 3), of_tail = rig.read(1, 4);
  EXPECT_EQ(rig.client.answer(of_window), answered(server_status::busy)) << "a worker has all bits that it needs";
  EXPECT_EQ(rig.client.answer(of_tail), answered(server_status::syndromes_dropped));
  slow.open();
  EXPECT_EQ(rig.client.answer(rig.read(1, 3)), committed(3, 7, "0"));
}

TEST(ServerStreamWorkers, LoseNoBitsWhenTheirQueueIsFull) {
  const gate slow;
  workers_rig rig(gated_unit(50));
  std::vector<std::uint32_t> sent;
  for (int k = 0; k < 30; ++k)
    sent.push_back(rig.enqueue(rounds(4)));
  const std::uint32_t read = rig.read(1, 110);
  EXPECT_EQ(rig.client.answer(sent[11]), answered(server_status::ok)) << "48 rounds";
  EXPECT_EQ(rig.client.answers_to(sent[12]), 0U) << "two of its rounds are too many";
  EXPECT_EQ(rig.server.decoders()[0]->waiting(), 19U) << "it stays in the queue of the server, and so does the rest";
  slow.open();
  for (const std::uint32_t one : sent)
    EXPECT_EQ(rig.client.answer(one), answered(server_status::ok));
  EXPECT_GE(rig.client.answer(read).result[0], 110);
  EXPECT_EQ(rig.counts().stream.pushed, 120U);
  EXPECT_EQ(rig.counts().by_status[static_cast<std::size_t>(server_status::busy)], 0U);
}

TEST(ServerStreamWorkers, AreBusyWithoutAQueueUntilThereIsRoomAndLatchNothing) {
  const gate slow;
  decoding_server server(one_setup({.id = 1}, gated_unit(50)));
  std::uint64_t counter = 0;
  const auto enqueue = [&] { return call(server, kEnqueueFunctionId, enqueue_payload(1, counter, rounds(4))); };
  for (; counter < 12; ++counter)
    ASSERT_EQ(enqueue(), answered(server_status::ok));
  EXPECT_EQ(enqueue(), answered(server_status::busy));
  EXPECT_EQ(call(server, kGetCommittedFunctionId, committed_payload(1, 1, 3)), answered(server_status::busy));
  EXPECT_EQ(call(server, kGetCommittedFunctionId, committed_payload(1, 1)), committed(0, 48, "0"));
  slow.open();
  EXPECT_TRUE(rt::wait_until(soon(), [&] { return enqueue() == answered(server_status::ok); })) << "the same counter";
  EXPECT_EQ(server.decoders()[0]->counts().stream.pushed, 52U);
}

TEST(ServerStreamWorkers, AreBusyWithoutAQueueAlsoForACopyThatFindsRoom) {
  const gate slow;
  decoding_server server(one_setup({.id = 1}, gated_unit(50)));
  const auto enqueue = [&](std::uint64_t counter, std::uint32_t id) {
    return call(server, kEnqueueFunctionId, enqueue_payload(1, counter, rounds(4)), id, 1000 + id);
  };
  for (std::uint32_t id = 1; id <= 12; ++id)
    ASSERT_EQ(enqueue(id, id), answered(server_status::ok));
  EXPECT_EQ(enqueue(13, 13), answered(server_status::busy));
  slow.open();
  const auto has_room = [&] {
    return call(server, kGetCommittedFunctionId, committed_payload(1, 1)) != committed(0, 48, "0");
  };
  ASSERT_TRUE(rt::wait_until(soon(), has_room));
  EXPECT_EQ(enqueue(13, 13), answered(server_status::busy));
  EXPECT_EQ(enqueue(13, 14), answered(server_status::ok)) << "another request with its counter";
  EXPECT_EQ(enqueue(13, 13), answered(server_status::busy)) << "and nothing latches";
  EXPECT_EQ(server.decoders()[0]->counts().stream.pushed, 52U);
}

TEST(ServerStreamWorkers, RefuseARequestThatIsLongerThanTheirQueue) {
  decoding_server server(one_setup({.id = 1}, gated_unit(50)));
  EXPECT_EQ(call(server, kEnqueueFunctionId, enqueue_payload(1, 1, rounds(39))), answered(server_status::bad_request));
  EXPECT_EQ(server.decoders()[0]->failures().count, 0U) << "no decode has failed";
}

TEST(ServerStreamWorkers, CountAStreamThatEndsBetweenItsLastBitsAndTheReset) {
  const gate slow;
  auto unit = gated_unit();
  const stream_decoder &stream = *unit->stream();
  decoding_server server(one_setup({.id = 1}, std::move(unit)));
  ASSERT_EQ(call(server, kEnqueueFunctionId, enqueue_payload(1, 1, rounds(6))), answered(server_status::ok));
  ASSERT_EQ(call(server, kBeginTailFunctionId, begin_tail_payload(1, 2)), answered(server_status::ok));
  ASSERT_EQ(call(server, kEnqueueFunctionId, enqueue_payload(1, 3, kRound)), answered(server_status::ok));
  slow.open();
  ASSERT_TRUE(rt::wait_until(soon(), [&] { return stream.poll().is_final; }));
  EXPECT_EQ(call(server, kResetFunctionId, reset_payload(1)), answered(server_status::ok));
  EXPECT_EQ(server.decoders()[0]->counts().shots, 1U);
  EXPECT_NE(server.decoders()[0]->counts().tail_ns, 0U);
}

TEST(ServerStreamWorkers, LatchAFailedWindowAtALaterRequest) {
  workers_rig rig(stream_unit_for(paired_stream_model(), 2, 1, workers_or_throw(1)));
  const std::uint32_t read = rig.read(1, 2);
  EXPECT_EQ(rig.client.answer(rig.enqueue("110010")), answered(server_status::ok)) << "the second round is wrong";
  EXPECT_EQ(rig.client.answer(read), answered(server_status::internal)) << "from here on the failure is known";
  for (const std::uint32_t one : {rig.read(1, 0), rig.enqueue("11"), rig.begin_tail()})
    EXPECT_EQ(rig.client.answer(one), answered(server_status::internal));
  EXPECT_EQ(rig.client.call(kGetCorrectionsFunctionId, get_payload(1, 1)), answered(server_status::internal));
  EXPECT_EQ(rig.client.answer(rig.reset()), answered(server_status::ok));
  EXPECT_EQ(rig.client.answer(rig.enqueue("110011")), answered(server_status::ok));
  EXPECT_EQ(rig.client.answer(rig.read(1, 2)), committed(2, 3, "1"));
}

TEST(ServerStreamWorkers, EndAStreamWhenItsLastRoundIsFinal) {
  const gate slow;
  workers_rig rig(gated_unit());
  rig.enqueue(rounds(6));
  rig.begin_tail();
  ASSERT_EQ(rig.client.answer(rig.enqueue(kRound)), answered(server_status::ok)) << "all bits have come";
  EXPECT_EQ(rig.counts().shots, 0U);
  EXPECT_EQ(rig.counts().stream.lag, 7U);
  const std::uint32_t read = rig.read(1, UINT64_MAX);
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  slow.open();
  EXPECT_EQ(rig.client.answer(read), committed(7, 7, "0"));
  EXPECT_TRUE(rt::wait_until(soon(), [&] { return rig.counts().shots == 1; }));
  EXPECT_EQ(rig.counts().stream.lag, 0U);
  EXPECT_GE(rig.counts().tail_ns, 5'000'000U) << "from the arrival of the last bits";
  EXPECT_EQ(rig.client.answer(rig.enqueue(kRound)), answered(server_status::stream_misaligned));
}

TEST(ServerStreamWorkers, AResetDropsTheWindowsThatWait) {
  const gate slow;
  workers_rig rig(gated_unit());
  const unsigned before = slow.begun();
  ASSERT_EQ(rig.client.answer(rig.enqueue(rounds(60))), answered(server_status::ok));
  ASSERT_TRUE(slow.wait_for_begun(before + 1));
  const std::uint32_t read = rig.read(1, 3), reset = rig.reset();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(rig.client.answers_to(reset), 0U) << "one window has begun";
  slow.open();
  EXPECT_EQ(rig.client.answer(reset), answered(server_status::ok));
  EXPECT_EQ(rig.client.answer(read), answered(server_status::busy)) << "it waited for a round of the old stream";
  EXPECT_EQ(slow.begun(), before + 1);
  EXPECT_EQ(rig.client.answer(rig.enqueue(rounds(6))), answered(server_status::ok));
  EXPECT_EQ(rig.client.answer(rig.read(1, 3)), committed(3, 6, "0"));
}

TEST(ServerStreamWorkers, LeaveAServerUnfinishedUntilTheRoundsThatTheyDecodeAreRead) {
  const gate slow;
  workers_rig rig(gated_unit());
  ASSERT_EQ(rig.client.answer(rig.enqueue(rounds(7))), answered(server_status::ok));
  rig.server.begin_end();
  EXPECT_TRUE(rt::wait_until(soon(), [&] { return rig.server.idle(); }));
  EXPECT_TRUE(rig.server.has_unfinished()) << "three rounds become final without further bits";
  slow.open();
  const full_answer all = committed(3, 7, "0");
  EXPECT_TRUE(rt::wait_until(soon(), [&] { return rig.client.answer(rig.read(1, 0)) == all; }));
  EXPECT_FALSE(rig.server.has_unfinished());
}

TEST(ServerStreamWorkers, LeaveAServerUnfinishedAlsoWithoutAQueue) {
  const gate slow;
  decoding_server server(one_setup({.id = 1}, gated_unit()));
  ASSERT_EQ(call(server, kEnqueueFunctionId, enqueue_payload(1, 1, rounds(7))), answered(server_status::ok));
  server.begin_end();
  EXPECT_TRUE(server.has_unfinished());
  slow.open();
  const auto read = [&] { return call(server, kGetCommittedFunctionId, committed_payload(1, 1)); };
  EXPECT_TRUE(rt::wait_until(soon(), [&] { return read() == committed(3, 7, "0"); }));
  EXPECT_FALSE(server.has_unfinished());
}

TEST(ServerStreamWorkers, AResetIsAnsweredBeforeTheModelThatItReplacesIsFreed) {
  const gate slow;
  slow.open();
  workers_rig rig(gated_unit(0, ":slow_destroy=1"));
  slow.close();
  ASSERT_EQ(rig.client.answer(rig.enqueue(kRound)), answered(server_status::ok));
  auto next = one_setup({.id = 1, .queue_length = 64, .age_limit_ns = kLong}, gated_unit(0, ""));
  ASSERT_EQ(rig.server.reload(std::move(next), soon()).outcome, reload_outcome::applied);
  EXPECT_EQ(rig.client.answer(rig.reset()), answered(server_status::ok));
  EXPECT_EQ(rig.counts().exchanges, 1U);
  EXPECT_EQ(rig.client.answer(rig.enqueue(kRound)), answered(server_status::ok)) << "by the new model";
  const int both = slow.alive();
  slow.open();
  rig.server.free_replaced();
  EXPECT_LT(slow.alive(), both) << "the old model has been there until now";
}

TEST(ServerStreamWorkers, MayBeInAWindowWhenTheServerEnds) {
  const gate slow;
  std::thread opens;
  {
    workers_rig rig(gated_unit());
    const unsigned before = slow.begun();
    ASSERT_EQ(rig.client.answer(rig.enqueue(rounds(60))), answered(server_status::ok));
    ASSERT_TRUE(slow.wait_for_begun(before + 1));
    const std::uint32_t read = rig.read(1, 30);
    rig.server.close();
    EXPECT_EQ(rig.client.answer(read), answered(server_status::not_ready));
    opens = std::thread([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      slow.open();
    });
  }
  opens.join();
  EXPECT_EQ(slow.alive(), 0);
}

} // namespace
