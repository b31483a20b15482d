// SPDX-License-Identifier: Apache-2.0
// The search for the highest rate, over servers that are functions.
#include "tools/emulate/search/rate_search.h"
#include "tools/emulate/search/search_run.h"
#include "unittests/tools/emulate/stream_rig.h"

#include <ctime>
#include <gtest/gtest.h>
#include <map>

namespace cudaq::realtime::tools {
namespace {

/// A server that keeps each rate up to `kept`.
struct made_up_server {
  double kept = 0;
  std::map<double, int> runs; ///< by rate
  int interrupted_after = -1; ///< runs; -1: never

  std::optional<rate_trial> play(double rate) {
    if (interrupted_after >= 0 && interrupted_after-- == 0)
      return std::nullopt;
    ++runs[rate];
    rate_trial trial;
    trial.rate = rate;
    if (rate > kept)
      trial.failure = "1 shot late";
    return trial;
  }
  rate_search_result search(const rate_search &how = {}) {
    return search_rate(how, [this](double rate) { return play(rate); });
  }
};

TEST(RateSearch, FindsTheRateThatIsKeptWithItsPrecision) {
  for (const double kept : {3.0, 999.0, 1000.0, 1001.0, 54321.0, 9.9e6}) {
    made_up_server server{kept, {}};
    const rate_search_result found = server.search();
    EXPECT_FALSE(found.ended);
    EXPECT_LE(found.highest, kept);
    EXPECT_GT(found.highest * 1.02, kept);
    EXPECT_GT(found.failed, kept);
    EXPECT_LE(found.failed, found.highest * 1.02);
    EXPECT_EQ(server.runs.at(found.highest), 3);
    EXPECT_LT(server.runs.size(), 40u);
  }
}

TEST(RateSearch, PlaysEachRateAgainAndTakesItOnlyIfEachRunHolds) {
  made_up_server server{1e9, {}};
  const rate_search_result found = search_rate({}, [&](double rate) {
    std::optional<rate_trial> trial = server.play(rate);
    if (rate > 5000 && server.runs[rate] == 3) // the last of its runs
      trial->failure = "p99.9";
    return trial;
  });
  EXPECT_LE(found.highest, 5000);
  EXPECT_GT(found.highest, 4900);
  EXPECT_EQ(server.runs.at(found.failed), 3);
}

TEST(RateSearch, EndsARateAtItsFirstRunThatFails) {
  made_up_server server{1500, {}};
  server.search();
  EXPECT_EQ(server.runs.at(2000), 1);
}

TEST(RateSearch, FindsNoneIfTheLowestRateFails) {
  made_up_server server{0.5, {}};
  const rate_search_result found = server.search();
  EXPECT_EQ(found.highest, 0);
  EXPECT_EQ(found.failed, 1);
  EXPECT_FALSE(found.trials.back().failure.empty());
}

TEST(RateSearch, EndsAtTheHighestRateThatItMayPlay) {
  made_up_server server{1e12, {}};
  rate_search how;
  how.highest = 50'000;
  const rate_search_result found = server.search(how);
  EXPECT_EQ(found.highest, 50'000);
  EXPECT_EQ(found.failed, 0);
}

TEST(RateSearch, KeepsWhatItHasFoundWhenARunIsEndedAtAnyTime) {
  made_up_server whole{5000, {}};
  const std::size_t all = whole.search().trials.size();
  for (int after = 0; after < static_cast<int>(all); ++after) {
    made_up_server server{5000, {}, after};
    const rate_search_result found = server.search();
    EXPECT_TRUE(found.ended);
    EXPECT_EQ(found.trials.size(), static_cast<std::size_t>(after));
    EXPECT_LE(found.highest, 5000);
    EXPECT_EQ(found.highest != 0, after >= 3);
  }
}

// Which runs of `emulate --rounds --search-rate` hold: against a decoding server of this process, with a clock of the
// test.

constexpr std::uint64_t kCycleNs = 1000, kBoundNs = 50'000;

std::string failure_of_run(stream_rig &r, const stream_play_result &got, std::uint64_t bound_ns = kBoundNs) {
  return failure_of(got, r.plan, static_cast<double>(kCycleNs), bound_ns);
}

TEST(StreamSearch, MeasuresEachWindowOfAPauseThoughOneFrameAnswersThemAll) {
  stream_rig r(1, 20'000);
  r.options.timeout_s = 0.01;
  int requests = 0;
  r.to.judge = [&](std::uint32_t) {
    if (++requests == 1000)
      r.to.held_polls = 8000; // of at least 50 ns: 400 rounds
    return server_link::fate::served;
  };
  const stream_play_result got = r.play();
  ASSERT_EQ(got.ended, 1U);
  const std::uint64_t windows = (r.plan.rounds_before_tail() - r.plan.buffer()) / r.plan.commit();
  EXPECT_LT(got.frames, windows - 100) << "one frame for the windows of the pause";
  EXPECT_GE(got.window_time.count(), windows - 5) << "the last ones are of the tail";
  EXPECT_GT(got.window_time.percentile(99), kBoundNs) << "two of a hundred windows waited for the end of the pause";
  EXPECT_LT(got.window_time.percentile(90), kBoundNs);
  const std::string why = failure_of_run(r, got);
  EXPECT_NE(why.find("pace NOT kept"), std::string::npos) << why;
  EXPECT_NE(why.find("p99.9 "), std::string::npos) << why;
}

TEST(StreamSearch, TakesNoRunWithAFault) {
  stream_rig good(1, 2000);
  const stream_play_result held = good.play();
  ASSERT_EQ(failure_of_run(good, held), "");
  struct fault {
    const char *text;
    void (*make)(stream_play_result &);
  };
  const fault faults[] = {
      {"1 requests without an answer", [](stream_play_result &r) { r.lost = 1; }},
      {"1 answers with an error status", [](stream_play_result &r) { r.bad_status = 1; }},
      {"1 frames that are not the expected ones", [](stream_play_result &r) { r.mismatches = 1; }},
      {"not all experiments were played to their end", [](stream_play_result &r) { r.ended = 0; }},
      {"a window without an answer after ", [](stream_play_result &r) { r.undecided.not_converged = 1; }},
      {"pace NOT kept", [](stream_play_result &r) { r.pace.add(1000, 1000, 0, 1000); }},
      {"p99.9 ",
       [](stream_play_result &r) {
         for (int k = 0; k < 100; ++k)
           r.window_time.record(100 * kBoundNs);
       }},
      {"the lag grows: at least 20.0 us in the last tenth", [](stream_play_result &r) { r.last_tenth_ns = 20'000; }},
  };
  for (const fault &one : faults) {
    stream_play_result with = held;
    one.make(with);
    EXPECT_NE(failure_of_run(good, with).find(one.text), std::string::npos) << failure_of_run(good, with);
  }
}

TEST(StreamSearch, TakesNoRunWhoseLagGrowsUntilItsEnd) {
  stream_rig r(1, 20'000);
  int requests = 0;
  r.to.judge = [&](std::uint32_t) { // more and more
    r.to.held_polls = ++requests / 100;
    return server_link::fate::served;
  };
  const stream_play_result got = r.play();
  ASSERT_EQ(got.ended, 1U);
  EXPECT_GT(got.last_tenth_ns, got.first_tenth_ns + 5 * kCycleNs);
  const std::string why = failure_of_run(r, got, UINT64_MAX);
  EXPECT_NE(why.find("the lag grows"), std::string::npos) << why;
}

// Endless experiments that end early: the frames that came are checked, and the check takes no longer than the play.

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
