// SPDX-License-Identifier: Apache-2.0
// Streams whose windows are decoded by other threads: queues, slow and failing decoders, the end. What is decoded does
// not matter here, so a plug-in whose speed the test controls takes the place of a decoder.
#include "unittests/qec/stream/gated_plugin_support.h"
#include "unittests/qec/stream/stream_test_support.h"

#include <atomic>
#include <thread>

namespace cudaq::qec::realtime::test {
namespace {

const std::string kText = repetition_dem(4, 0.01, 1, 1000); // 3 detectors a round
const std::string kGated = std::string(CUDAQ_TEST_GATED_PLUGIN) + ":gated=1";
const std::vector<std::uint8_t> kQuiet(4096);

stream_options gated(std::size_t workers, std::uint64_t queue_rounds = 0) {
  return {.decoder = kGated,
          .commit = 3,
          .buffer = 3,
          .mode = stream_mode::sequential,
          .workers = workers,
          .queue_rounds = queue_rounds};
}

TEST(StreamWorkers, PushReturnsWhileADecodeRunsAndIsBusyWhenTheQueueIsFull) {
  const gate slow;
  const auto stream = stream_or_throw(kText, gated(1, 50));
  decode_status status = decode_status::ok;
  for (std::uint64_t k = 0; k < 100 && (status = stream->push(kQuiet, 3)) == decode_status::ok; ++k)
    EXPECT_EQ(stream->poll().committed_rounds, 0U);
  EXPECT_EQ(status, decode_status::busy);
  EXPECT_EQ(stream->pushed_rounds(), 50U);
  EXPECT_EQ(stream->push(kQuiet, 1), decode_status::busy);
  EXPECT_EQ(stream->pushed_bits(), 150U) << "nothing was taken";
  EXPECT_EQ(stream->push(kQuiet, 3 * 100), decode_status::not_supported) << "more than the queue can ever take";
  EXPECT_FALSE(stream->wait_committed(1, std::chrono::steady_clock::now() + std::chrono::milliseconds(5)).is_final);
  slow.open();
  for (std::uint64_t round = 50; round < 1000; ++round) // the backlog goes, nothing is lost
    ASSERT_EQ(push_part(*stream, kQuiet, 0, 3), decode_status::ok);
  ASSERT_EQ(stream->finish(kQuiet, 3), decode_status::ok);
  const stream_progress end = stream->wait_committed(1001, soon());
  EXPECT_TRUE(end.is_final);
  EXPECT_EQ(end.committed_rounds, 1001U);
  const stream_statistics counts = stream->statistics();
  EXPECT_EQ(counts.windows, 999 / 3 - 1 + 1) << "all but the last one have a buffer after them";
  EXPECT_GE(counts.worst_lag_rounds, 50U);
  EXPECT_GE(counts.worst_queue_rounds, 3 * 14U);
}

TEST(StreamWorkers, TakeEachPushThatIsSupportedAlsoInAHeadOfSmallRounds) {
  std::string text = "repeat 40 {\ndetector(0) D0\nerror(0.1) D0 L0\nshift_detectors(1) 1\n}\nrepeat 1000 {\n";
  for (const char *const k : {"0", "1", "2", "3", "4", "5", "6", "7"})
    text += std::string("detector(0) D") + k + "\nerror(0.1) D" + k + " L0\n";
  text += "shift_detectors(1) 8\n}\n";
  stream_options options = gated(1, 20);
  options.decoder = CUDAQ_TEST_GATED_PLUGIN;
  options.commit = options.buffer = 2;
  for (const std::uint64_t count : {8U, 24U, 96U}) {
    const auto stream = stream_or_throw(text, options);
    ASSERT_EQ(stream->push(kQuiet, 97), decode_status::not_supported);
    ASSERT_EQ(stream->push(kQuiet, count), decode_status::ok) << count << " bits, and no window is complete";
    for (int push = 0; push < 50; ++push)
      ASSERT_EQ(push_part(*stream, kQuiet, 0, count), decode_status::ok);
    EXPECT_EQ(stream->pushed_bits(), 51 * count);
  }
}

TEST(StreamWorkers, WaitReturnsWhenTheRoundIsFinal) {
  const gate slow;
  const auto stream = stream_or_throw(kText, gated(2));
  slow.open();
  std::thread pushes([&] {
    for (int k = 0; k < 200; ++k)
      EXPECT_EQ(push_part(*stream, kQuiet, 0, 3), decode_status::ok);
  });
  for (std::uint64_t round = 1; round < 190; round += 20) {
    std::uint8_t frame = 0xEE;
    const stream_progress now = stream->wait_committed(round, soon(), {&frame, 1});
    EXPECT_EQ(now.status, decode_status::ok);
    EXPECT_GE(now.committed_rounds, round);
    EXPECT_GE(now.pushed_rounds, now.committed_rounds);
    EXPECT_EQ(frame, 0);
  }
  pushes.join();
  EXPECT_EQ(stream->poll().status, decode_status::ok);
  stream_options options = gated(0);
  const auto two = stream_or_throw("logical_observable L8\n" + kText, options);
  std::uint8_t one_byte = 0;
  EXPECT_EQ(two->poll({&one_byte, 1}).status, decode_status::buffer_too_small) << "nine observables";
}

TEST(StreamWorkers, ResetDropsWhatIsQueuedAndLeavesNoWorkerInTheStream) {
  const gate slow;
  const auto stream = stream_or_throw(kText, gated(1));
  const unsigned before = slow.begun();
  ASSERT_EQ(stream->push(kQuiet, 3 * 60), decode_status::ok);
  ASSERT_TRUE(slow.wait_for_begun(before + 1));
  std::atomic<bool> resets{false};
  std::thread opens([&] {
    while (!resets.load())
      std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    slow.open();
  });
  resets.store(true);
  stream->reset(); // waits for the window that has begun
  opens.join();
  EXPECT_EQ(slow.begun(), before + 1) << "the other windows were dropped";
  EXPECT_EQ(stream->pushed_bits(), 0U);
  EXPECT_EQ(stream->committed_rounds(), 0U);
  ASSERT_EQ(stream->push(kQuiet, 3 * 60), decode_status::ok);
  ASSERT_EQ(stream->finish(kQuiet, 3), decode_status::ok);
  EXPECT_TRUE(stream->wait_committed(UINT64_MAX, soon()).is_final);
  EXPECT_EQ(stream->windows(), 20U);
}

TEST(StreamWorkers, AWaitEndsEarlyAfterAReset) {
  const auto stream = stream_or_throw(kText, gated(1));
  const auto now = [] { return std::chrono::steady_clock::now(); };
  const auto give_up = now() + std::chrono::seconds(10);
  std::atomic<bool> back{false};
  std::thread waits([&] {
    static_cast<void>(stream->wait_committed(1, give_up + std::chrono::seconds(1)));
    back = true;
  });
  for (; !back && now() < give_up; std::this_thread::sleep_for(std::chrono::milliseconds(1)))
    stream->reset(); // again and again: the wait may begin after the first one
  EXPECT_TRUE(back.load());
  waits.join();
}

TEST(StreamWorkers, ADestroyedStreamLeavesThePoolToTheOthers) {
  const gate slow;
  const auto pool = workers_or_throw(2);
  stream_options options = gated(0);
  options.pool = pool;
  auto first = stream_or_throw(kText, options);
  const auto stays = stream_or_throw(kText, options);
  ASSERT_EQ(first->push(kQuiet, 3 * 300), decode_status::ok);
  ASSERT_EQ(stays->push(kQuiet, 3 * 300), decode_status::ok);
  std::thread opens([&] { slow.open(); });
  first.reset();
  opens.join();
  EXPECT_GE(stays->wait_committed(297, soon()).committed_rounds, 297U);
}

TEST(StreamWorkers, ASlowStreamKeepsItsOwnWorkersOnly) {
  const gate slow;
  const auto pool = workers_or_throw(2);
  stream_options options = gated(1);
  options.pool = pool;
  const auto held = stream_or_throw(kText, options);
  options.decoder = CUDAQ_TEST_GATED_PLUGIN;
  const auto quick = stream_or_throw(kText, options);
  ASSERT_EQ(held->push(kQuiet, 3 * 300), decode_status::ok);
  ASSERT_EQ(quick->push(kQuiet, 3 * 300), decode_status::ok);
  EXPECT_GE(quick->wait_committed(297, soon()).committed_rounds, 297U);
  EXPECT_EQ(held->committed_rounds(), 0U);
  slow.open();
}

TEST(StreamWorkers, AWindowThatFailsBreaksItsStreamOnly) {
  const gate slow;
  slow.open();
  const auto pool = workers_or_throw(2);
  struct failure {
    std::string decoder;
    std::size_t byte; ///< of an event
    decode_status status;
    std::uint64_t committed; ///< rounds
  };
  for (const auto &[decoder, byte, expected, committed] :
       {failure{CUDAQ_TEST_GATED_PLUGIN, 45, decode_status::no_solution, 117}, // detector 360, in round 120
        failure{std::string(CUDAQ_TEST_THROWING_PLUGIN) + ":in=decode,what=int", 0, decode_status::internal_error,
                0}}) {
    std::vector<std::uint8_t> event(4096);
    event[byte] = 1;
    stream_options options = gated(0);
    options.pool = pool;
    options.decoder = decoder;
    const auto bad = stream_or_throw(kText, options), good = stream_or_throw(kText, options);
    ASSERT_EQ(bad->push(event, 3 * 300), decode_status::ok) << "its failure is known later";
    ASSERT_EQ(good->push(kQuiet, 3 * 300), decode_status::ok);
    EXPECT_GE(good->wait_committed(297, soon()).committed_rounds, 297U);
    const stream_progress end = bad->wait_committed(UINT64_MAX, soon());
    EXPECT_EQ(end.status, expected);
    EXPECT_EQ(end.committed_rounds, committed) << "what was final stays final";
    EXPECT_EQ(bad->push(kQuiet, 3), expected);
    EXPECT_EQ(bad->finish(kQuiet, 3), expected);
    bad->reset();
    ASSERT_EQ(bad->push(kQuiet, 3 * 300), decode_status::ok);
    EXPECT_GE(bad->wait_committed(297, soon()).committed_rounds, 297U);
  }
}

TEST(StreamWorkers, SixtyFourStreamsOnTwoWorkersTakeTurns) {
  const gate slow;
  const auto pool = workers_or_throw(2);
  constexpr int kStreams = 64;
  constexpr unsigned kWindows = 12;
  std::vector<std::unique_ptr<stream_decoder>> streams;
  for (int id = 0; id < kStreams; ++id) {
    stream_options options = gated(0);
    options.pool = pool;
    options.decoder += ",id=" + std::to_string(id);
    streams.push_back(stream_or_throw(kText, options));
  }
  const unsigned before = slow.begun();
  for (const auto &stream : streams)
    ASSERT_EQ(stream->push(kQuiet, 3 * (3 * kWindows + 3)), decode_status::ok);
  slow.open();
  for (const auto &stream : streams)
    EXPECT_GE(stream->wait_committed(3 * kWindows, soon()).committed_rounds, 3 * kWindows);
  ASSERT_EQ(slow.begun(), before + kStreams * kWindows);
  std::vector<unsigned> begun(kStreams);
  for (unsigned k = 0; k < kStreams * kWindows; ++k) {
    ++begun[static_cast<std::size_t>(slow.listed(before + k))];
    // A stream stays back for good after a window whose decode the system has delayed: a few of them may be so.
    std::vector<unsigned> sorted = begun;
    std::ranges::sort(sorted);
    ASSERT_LE(sorted.back() - sorted[kStreams / 4], 2U) << "after " << k << " windows";
  }
}

TEST(StreamWorkers, TheSameStreamInTwoThreadsGivesTheSameFrames) {
  const std::string text = repetition_dem(3, 0.03, 1, 100);
  const auto whole = *parse_dem(text);
  component_sampler errors(whole, 11);
  const auto shot = errors.next();
  for (const auto &pool : {std::shared_ptr<stream_workers>(), workers_or_throw(2)}) {
    std::vector<std::uint8_t> flips[2];
    std::vector<std::thread> threads;
    for (auto &mine : flips)
      threads.emplace_back([&] {
        const auto stream = stream_or_throw(
            text, {.decoder = "bp-osd", .commit = 3, .buffer = 3, .mode = stream_mode::sequential, .pool = pool});
        if (run(*stream, shot.events, whole.num_detectors) == decode_status::ok)
          mine = flips_of(*stream);
      });
    for (std::thread &thread : threads)
      thread.join();
    EXPECT_EQ(flips[0].size(), 1U);
    EXPECT_EQ(flips[0], flips[1]);
  }
}

TEST(StreamWorkers, AreUsedAsThePageSays) {
  CUDAQ_SKIP_WITHOUT_PYMATCHING();
  workers_result workers = make_stream_workers(2); // threads for any number of streams
  stream_options options{.decoder = "pymatching", .pool = workers.instance};
  ASSERT_TRUE(workers) << workers.error;
  const auto stream = stream_or_throw(kText, options);
  EXPECT_TRUE(stream->is_parallel());
  EXPECT_NE(stream->description().find("parallel, 2 workers"), std::string::npos) << stream->description();
  ASSERT_EQ(stream->push(kQuiet, 3 * 1000), decode_status::ok);
  ASSERT_EQ(stream->finish(kQuiet, 3), decode_status::ok);
  std::uint8_t frame = 0xEE;
  EXPECT_TRUE(stream->wait_committed(UINT64_MAX, soon(), {&frame, 1}).is_final);
  EXPECT_EQ(frame, 0);
}

TEST(StreamWorkers, FewLastWindowsAreKept) {
  const gate slow;
  slow.open();
  // Commits of 40 rounds: the last windows of short experiments are built when they are needed.
  stream_options options = gated(1);
  options.commit = 40;
  const auto stream = stream_or_throw(kText, options);
  const int before = slow.alive();
  int max_built = 0;
  for (std::uint64_t rounds = 1; rounds < 40; ++rounds) {
    stream->reset();
    ASSERT_EQ(stream->push(kQuiet, 3 * rounds), decode_status::ok);
    ASSERT_EQ(stream->finish(kQuiet, 3), decode_status::ok);
    ASSERT_TRUE(stream->wait_committed(UINT64_MAX, soon()).is_final);
    max_built = std::max(max_built, slow.alive() - before);
  }
  EXPECT_GE(max_built, 1) << "they are built when they are needed";
  EXPECT_LE(max_built, 8);
}

TEST(StreamWorkers, RefuseSizesThatCannotBeRightWithAText) {
  EXPECT_NE(make_stream_workers(0).error.find("1 to 1024"), std::string::npos);
  EXPECT_NE(make_stream_workers(5000).error.find("1 to 1024"), std::string::npos);
  EXPECT_NE(make_stream_decoder(kText, gated(1, 5)).error.find("queue_rounds 5"), std::string::npos);
  EXPECT_NE(make_stream_decoder(kText, gated(2000)).error.find("1 to 1024"), std::string::npos);
  EXPECT_EQ(workers_or_throw(3)->count(), 3U);
}

} // namespace
} // namespace cudaq::qec::realtime::test
