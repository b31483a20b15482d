// SPDX-License-Identifier: Apache-2.0
// A stream allocates nothing per round: allocations of the whole program are counted while rounds come. The decoder of
// the windows is bp-osd, which allocates nothing either.
#include "unittests/qec/stream/stream_test_support.h"
#include "unittests/support/counted_memory.h"

namespace cudaq::qec::realtime::test {
namespace {

class StreamAllocations : public testing::TestWithParam<std::size_t> {};

TEST_P(StreamAllocations, RoundsAllocateNothingAfterTheFirstExperiment) {
  if (cudaq::realtime::test::kSanitized)
    GTEST_SKIP() << "sanitizers interpose the same functions";
  const std::string text = repetition_dem(3, 0.02, 1, 300);
  const auto whole = *parse_dem(text);
  component_sampler errors(whole, 3);
  for (const stream_mode mode : {stream_mode::sequential, stream_mode::parallel}) {
    const auto stream =
        stream_or_throw(text, {.decoder = "bp-osd", .commit = 3, .buffer = 3, .mode = mode, .workers = GetParam()});
    const std::uint64_t tail = stream->tail_detectors(), before = whole.num_detectors - tail;
    for (int k = 0; k < 5; ++k) {
      const auto shot = errors.next();
      const std::vector<std::uint8_t> last = part_of(shot.events, before, tail);
      std::vector<std::uint8_t> round(1), frame(1);
      stream->reset();
      counting.store(k != 0); // the first experiment may fill the decoders' memory
      for (std::uint64_t at = 0; at < before; at += 2) {
        round[0] = static_cast<std::uint8_t>(shot.events[at / 8] >> at % 8 & 3);
        while (stream->push(round, 2) == decode_status::busy)
          static_cast<void>(stream->poll(frame));
      }
      const decode_status status = stream->finish(last, tail);
      const stream_progress end = stream->wait_committed(UINT64_MAX, soon(), frame);
      counting.store(false);
      ASSERT_EQ(status, decode_status::ok);
      EXPECT_TRUE(end.is_final);
      EXPECT_EQ(allocations.exchange(0), 0U) << (mode == stream_mode::parallel ? "parallel" : "sequential");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Workers, StreamAllocations, testing::Values(0, 2));

} // namespace
} // namespace cudaq::qec::realtime::test
