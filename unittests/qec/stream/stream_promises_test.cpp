// SPDX-License-Identifier: Apache-2.0
// Sentences of stream.h that no other test needs: who waits for how long, and what is taken.
#include "unittests/qec/stream/gated_plugin_support.h"
#include "unittests/qec/stream/stream_test_support.h"

namespace cudaq::qec::realtime::test {
namespace {

const std::string kText = repetition_dem(4, 0.01, 1, 1000); // 3 detectors a round
const std::vector<std::uint8_t> kQuiet(4096);

stream_options gated(std::size_t workers, std::uint64_t queue_rounds = 0) {
  return {.decoder = std::string(CUDAQ_TEST_GATED_PLUGIN) + ":gated=1",
          .commit = 3,
          .buffer = 3,
          .mode = stream_mode::sequential,
          .workers = workers,
          .queue_rounds = queue_rounds};
}

TEST(StreamPromises, WaitCommittedReturnsAtItsDeadline) {
  const gate slow;
  const auto stream = stream_or_throw(kText, gated(1));
  ASSERT_EQ(stream->push(kQuiet, 3 * 60), decode_status::ok);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(stream->wait_committed(1, begin + std::chrono::milliseconds(30)).committed_rounds, 0U);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(30));
  slow.open(); // the end of the stream waits for the decode
}

TEST(StreamPromises, WaitCommittedReturnsAtOnceWithoutWorkers) {
  const auto stream = stream_or_throw(kText, {.decoder = "bp-osd", .commit = 2, .buffer = 2});
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(stream->wait_committed(1, soon(20)).committed_rounds, 0U);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(15));
}

TEST(StreamPromises, WaitCommittedReturnsEarlyWhenTheStreamBreaks) {
  stream_options options = gated(1);
  options.decoder = std::string(CUDAQ_TEST_THROWING_PLUGIN) + ":in=decode,what=int";
  const auto stream = stream_or_throw(kText, options);
  std::vector<std::uint8_t> events(64, 0xFF);
  ASSERT_EQ(stream->push(events, 3 * 60), decode_status::ok);
  const stream_progress now = stream->wait_committed(1000, soon(20));
  EXPECT_EQ(now.status, decode_status::internal_error);
  EXPECT_FALSE(now.is_final);
}

TEST(StreamPromises, APushOfMoreBitsThanItsBytesHaveTakesNothing) {
  for (const std::size_t workers : {0U, 1U}) {
    const auto stream = stream_or_throw(kText, {.decoder = "bp-osd", .commit = 2, .buffer = 2, .workers = workers});
    EXPECT_EQ(stream->push(std::span(kQuiet).first(1), 9), decode_status::buffer_too_small);
    EXPECT_EQ(stream->pushed_bits(), 0U);
    EXPECT_EQ(stream->push(std::span(kQuiet).first(1), 8), decode_status::ok);
    EXPECT_EQ(stream->pushed_bits(), 8U);
  }
}

TEST(StreamPromises, FinishIsNeverBusy) {
  const gate slow;
  const auto stream = stream_or_throw(kText, gated(1, 50));
  for (int round = 0; round < 50; ++round)
    ASSERT_EQ(stream->push(kQuiet, 3), decode_status::ok);
  ASSERT_EQ(stream->push(kQuiet, 3), decode_status::busy) << "the queue is full";
  EXPECT_EQ(stream->finish(kQuiet, 3), decode_status::ok);
  EXPECT_FALSE(stream->poll().is_final) << "it does not wait";
  slow.open();
  EXPECT_TRUE(stream->wait_committed(UINT64_MAX, soon()).is_final);
}

} // namespace
} // namespace cudaq::qec::realtime::test
