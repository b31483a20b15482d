// SPDX-License-Identifier: Apache-2.0
// Sentences of stream.h that no other test needs: who waits for how long, and what is taken.
#include "lib/qec/stream/stream_factory.h"
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

// Pushing that waits for room, with workers at the worst moments.

/// A stream whose workers make all rounds final between the end of a busy push and the caller's next step. A wait for
/// rounds that do not come ends, and is counted.
class late_caller final : public stream_decoder {
public:
  late_caller(std::unique_ptr<stream_decoder> of, const gate &slow) : of_(std::move(of)), slow_(slow) {}
  int busy = 0;
  mutable int in_vain = 0; ///< waits

  decode_status push(std::span<const std::uint8_t> bits, std::uint64_t count,
                     const stream_values &known) noexcept override {
    const decode_status status = of_->push(bits, count, known);
    if (status == decode_status::busy) {
      ++busy;
      slow_.open();
      static_cast<void>(of_->wait_committed(realtime::complete_rounds(*of_), soon()));
    }
    return status;
  }
  stream_progress wait_committed(std::uint64_t round, std::chrono::steady_clock::time_point,
                                 std::span<std::uint8_t> observables) const noexcept override {
    const stream_progress now = of_->wait_committed(round, std::chrono::steady_clock::now(), observables);
    in_vain += now.committed_rounds < round ? 1 : 0;
    return now;
  }
  decode_status finish(std::span<const std::uint8_t> bits, std::uint64_t count,
                       const stream_values &known) noexcept override {
    return of_->finish(bits, count, known);
  }
  stream_values_info values_info() const noexcept override { return of_->values_info(); }
  void reset() noexcept override { of_->reset(); }
  stream_progress poll(std::span<std::uint8_t> observables) const noexcept override { return of_->poll(observables); }
  std::span<const std::uint8_t> observables() const noexcept override { return of_->observables(); }
  std::uint64_t committed_rounds() const noexcept override { return of_->committed_rounds(); }
  std::uint64_t pushed_rounds() const noexcept override { return of_->pushed_rounds(); }
  std::uint64_t pushed_bits() const noexcept override { return of_->pushed_bits(); }
  std::uint64_t windows() const noexcept override { return of_->windows(); }
  stream_statistics statistics() const noexcept override { return of_->statistics(); }
  const char *fault() const noexcept override { return of_->fault(); }
  std::uint64_t head_detectors() const noexcept override { return of_->head_detectors(); }
  std::uint64_t body_detectors() const noexcept override { return of_->body_detectors(); }
  std::uint64_t tail_detectors() const noexcept override { return of_->tail_detectors(); }
  std::uint64_t num_observables() const noexcept override { return of_->num_observables(); }
  bool is_parallel() const noexcept override { return of_->is_parallel(); }
  const std::string &description() const noexcept override { return of_->description(); }

private:
  const std::unique_ptr<stream_decoder> of_;
  const gate &slow_;
};

TEST(PushWhenFree, DoesNotWaitForRoundsThatNeedFurtherBits) {
  const gate slow;
  late_caller stream(stream_or_throw(kText, gated(1, 50)), slow);
  for (int round = 0; round < 200; ++round)
    ASSERT_EQ(push_when_free(stream, kQuiet, 3), decode_status::ok);
  EXPECT_GE(stream.busy, 1);
  EXPECT_EQ(stream.in_vain, 0);
  EXPECT_EQ(stream.pushed_rounds(), 200U);
}

} // namespace
} // namespace cudaq::qec::realtime::test
