// SPDX-License-Identifier: Apache-2.0
// Endless experiments that end early: the frames that came are checked, and the check takes no longer than the play.
#include "unittests/tools/emulate/stream_rig.h"

#include <ctime>

namespace cudaq::realtime::tools {
namespace {

constexpr std::uint64_t kManyRounds = 1'000'000'000; ///< minutes of decoding, if all of them were decoded
constexpr int kTurns = 5000;

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void spoil_frame(server_link &to, std::uint64_t number) {
  to.spoil = [number, frame = std::uint64_t{0}](std::uint32_t function, std::vector<std::uint8_t> &result) mutable {
    if (function == qec::kGetCommittedFunctionId && ++frame == number)
      result.back() ^= 1;
  };
}

TEST(StreamEnding, ASignalEndsAPlanOfManyRoundsAfterTheWorkOfThoseThatWerePlayed) {
  for (const std::size_t workers : {0U, 2U}) {
    stream_rig r(1, kManyRounds, std::string(stream_rig::kDecoder) + ",mode=sequential",
                 {.decoder = "lookup", .commit = 2, .buffer = 3}, workers);
    const double begin = processor_seconds();
    const stream_play_result got = r.play(kTurns);
    EXPECT_EQ(got.unanswered(), 0U) << "what a signal ends was not played";
    EXPECT_LT(processor_seconds() - begin, 20);
    EXPECT_EQ(got.ended, 0U);
    EXPECT_GT(got.frames, 20U);
    EXPECT_EQ(got.mismatches, 0U);
    EXPECT_EQ(got.notes, std::vector<std::string>{});
  }
}

TEST(StreamEnding, TheFramesBeforeASignalAreChecked) {
  stream_rig r(1, kManyRounds);
  spoil_frame(r.to, 10);
  EXPECT_EQ(r.play(kTurns).mismatches, 1U);
}

TEST(StreamEnding, TheFramesBeforeTheEndOfTheServerAreChecked) {
  stream_rig r(1, kManyRounds);
  spoil_frame(r.to, 10);
  std::uint64_t requests = 0;
  r.to.judge = [&](std::uint32_t) {
    r.to.lives = ++requests < 1000;
    return r.to.lives ? server_link::fate::served : server_link::fate::lost;
  };
  const double begin = processor_seconds();
  const stream_play_result got = r.play();
  EXPECT_LT(processor_seconds() - begin, 20);
  EXPECT_TRUE(got.stalled);
  EXPECT_GT(got.frames, 20U);
  EXPECT_EQ(got.mismatches, 1U);
  EXPECT_GT(got.wall_ns, 0U);
}

TEST(StreamEnding, AFrameOfRoundsThatWereNotSentIsRefused) {
  stream_rig r(1, kManyRounds);
  r.to.spoil = [](std::uint32_t function, std::vector<std::uint8_t> &result) {
    if (function == qec::kGetCommittedFunctionId)
      result[3] = result[11] = 1; // 16777216 rounds more, final and sent
  };
  const stream_play_result got = r.play();
  EXPECT_EQ(got.ended, 0U);
  EXPECT_EQ(got.frames, 0U);
  ASSERT_FALSE(got.notes.empty());
  EXPECT_NE(got.notes[0].find("rounds are final"), std::string::npos) << got.notes[0];
}

} // namespace
} // namespace cudaq::realtime::tools
