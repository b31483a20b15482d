// SPDX-License-Identifier: Apache-2.0
// Which runs of `emulate --rounds --search-rate` hold: against a decoding server of this process, with a clock of the
// test.
#include "tools/emulate/search/search_run.h"
#include "unittests/tools/emulate/stream_rig.h"

namespace cudaq::realtime::tools {
namespace {

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
      r.to.held_looks = 8000; // of at least 50 ns: 400 rounds
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
    r.to.held_looks = ++requests / 100;
    return server_link::fate::served;
  };
  const stream_play_result got = r.play();
  ASSERT_EQ(got.ended, 1U);
  EXPECT_GT(got.last_tenth_ns, got.first_tenth_ns + 5 * kCycleNs);
  const std::string why = failure_of_run(r, got, UINT64_MAX);
  EXPECT_NE(why.find("the lag grows"), std::string::npos) << why;
}

} // namespace
} // namespace cudaq::realtime::tools
