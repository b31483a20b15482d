// SPDX-License-Identifier: Apache-2.0
// The endless experiments of `emulate`, against a decoding server of this process, with a clock of the test.
#include "unittests/qec/stream/stream_readout_support.h"
#include "unittests/support/scratch_folder.h"
#include "unittests/tools/emulate/stream_rig.h"

#include <fstream>

namespace cudaq::realtime::tools {
namespace {

TEST(StreamPlan, FindsTheWindowsOfTheDecoder) {
  stream_plan plan(kStreamDem, stream_rig::kDecoder, 0, 10, 0);
  EXPECT_EQ(plan.rounds(), 10U);
  EXPECT_EQ(plan.commit(), 2U);
  EXPECT_EQ(plan.buffer(), 3U);
  EXPECT_EQ(plan.final_after(4), 0U);
  EXPECT_EQ(plan.final_after(5), 2U);
  EXPECT_EQ(plan.final_after(6), 2U);
  EXPECT_EQ(plan.final_after(7), 4U);
  EXPECT_EQ(stream_plan(qec::test::repetition_dem(3, 0.02, 3, 100), stream_rig::kDecoder, 0, 10, 0).rounds(), 11U)
      << "the next whole repetition";
  EXPECT_EQ(stream_plan(kStreamDem, "bp-osd", 0, 10, 0).commit(), 3U) << "the distance of the code";
  EXPECT_THROW(stream_plan(kStreamDem, "no-such-decoder", 0, 10, 0), usage_error);
  EXPECT_THROW(stream_plan("error(0.1) D0 L0", stream_rig::kDecoder, 0, 10, 0), usage_error);
}

TEST(StreamPlayer, PlaysEveryRoundOfEveryExperimentAtThePace) {
  stream_rig r(5);
  const stream_play_result got = r.play();
  EXPECT_EQ(got.notes, std::vector<std::string>{});
  EXPECT_EQ(got.ended, 5U);
  EXPECT_EQ(got.rounds, 1000U);
  EXPECT_EQ(got.mismatches, 0U);
  EXPECT_EQ(got.tail_time.count(), 5U);
  EXPECT_EQ(got.frames, got.lag_time.count() + 5);
  EXPECT_GE(got.frames, 5U * 95) << "nearly one for each window";
  EXPECT_GE(got.wall_ns, 5U * 199'000U);
  EXPECT_LE(got.wall_ns, 5U * 230'000U);
  EXPECT_GE(got.lag_time.min(), 3000U) << "of the buffer";
  EXPECT_LE(got.lag_rounds.max(), 8U);
  EXPECT_LE(got.window_time.max(), 3000U);
  EXPECT_EQ(r.to.requests[qec::kBeginTailFunctionId], 5U);
  EXPECT_TRUE(got.pace.has_plan());
  EXPECT_TRUE(got.pace.kept()) << got.pace.text();
}

TEST(StreamPlayer, CountsIdsModuloTwoToThe32) {
  stream_rig r(2);
  r.first_id = UINT32_MAX - 150; // of about 600
  int reads = 0;
  r.to.judge = [&](std::uint32_t function) { // some are sent again
    return function == qec::kGetCommittedFunctionId && ++reads % 3 == 0 ? server_link::fate::busy
                                                                        : server_link::fate::served;
  };
  const stream_play_result got = r.play();
  EXPECT_EQ(got.notes, std::vector<std::string>{});
  EXPECT_GT(got.requests, 300U);
  EXPECT_EQ(got.ended, 2U);
  EXPECT_EQ(got.mismatches + got.lost, 0U);
}

TEST(StreamPlayer, TheCheckOfAnExperimentIsNoTimeOfTheRequestAfterIt) {
  stream_rig r(2);
  std::uint64_t now = 1'000'000;
  const stream_player *playing = nullptr;
  bool is_checked = false;
  stream_player player(r.options, r.plan, r.to, r.slot_bytes, [&] {
    if (!is_checked && playing != nullptr && playing->result().ended == 1) {
      is_checked = true;
      now += 10'000'000; // ten times the timeout
    }
    return now += 50;
  });
  playing = &player;
  r.to.judge = [&](std::uint32_t function) {
    if (is_checked && function == qec::kResetFunctionId)
      r.to.held_polls = 1000; // the answer comes after some checks for losses
    return server_link::fate::served;
  };
  for (int turn = 0; turn < 10'000'000 && !player.done(); ++turn)
    player.turn();
  EXPECT_TRUE(is_checked);
  EXPECT_EQ(player.result().ended, 2U);
  EXPECT_EQ(player.result().lost, 0U);
  EXPECT_EQ(player.result().notes, std::vector<std::string>{});
}

TEST(StreamPlayer, AServerThatTakesRoundsTooSlowlyBreaksThePace) {
  stream_rig r(1);
  r.options.cycle_us = 0.05; // one reading of the clock
  const stream_play_result got = r.play();
  EXPECT_EQ(got.ended, 1U);
  EXPECT_FALSE(got.pace.kept()) << got.pace.text();
  EXPECT_LT(got.pace.ratio(), 0.99);
}

TEST(StreamPlayer, AServerThatPausesBreaksThePaceAlthoughTheEndIsInTime) {
  stream_rig r(1, 20'000);
  r.options.timeout_s = 0.01;
  int requests = 0;
  r.to.judge = [&](std::uint32_t) {
    if (++requests == 1000)
      r.to.held_polls = 8000; // of at least 50 ns
    return server_link::fate::served;
  };
  const stream_play_result got = r.play();
  EXPECT_EQ(got.ended, 1U);
  EXPECT_EQ(got.lost, 0U);
  EXPECT_GT(got.pace.ratio(), 0.999);
  EXPECT_GT(got.pace.worst_lag(), 200U) << "a hundredth of the rounds";
  EXPECT_FALSE(got.pace.kept()) << got.pace.text();
}

TEST(StreamPlayer, AsksForParallelWindowsWhenTheyAreComplete) {
  CUDAQ_SKIP_WITHOUT_PYMATCHING();
  stream_rig r(3, 200, "sliding-window:inner=pymatching,commit=2,buffer=3,mode=parallel",
               {.decoder = "pymatching", .commit = 2, .buffer = 3, .mode = qec::stream_mode::parallel});
  EXPECT_EQ(r.plan.final_after(5), 2U);
  EXPECT_EQ(r.plan.final_after(8), 2U) << "the window between waits for the one after it";
  EXPECT_EQ(r.plan.final_after(9), 6U);
  const stream_play_result got = r.play();
  EXPECT_EQ(got.notes, std::vector<std::string>{});
  EXPECT_EQ(got.ended, 3U);
  EXPECT_EQ(got.mismatches, 0U);
  EXPECT_EQ(got.busy, 0U) << "a read that came before its window";
}

TEST(StreamPlayer, PutsAllRoundsThatAreDueIntoOneRequest) {
  stream_rig r(1, 10000);
  r.options.cycle_us = 0;
  const stream_play_result got = r.play();
  EXPECT_EQ(got.ended, 1U);
  EXPECT_EQ(got.mismatches, 0U);
  const std::uint64_t max_rounds = 8 * (256 - 24 - 32) / 2; // rounds of 2 detectors in a slot
  EXPECT_EQ(r.to.requests[qec::kEnqueueFunctionId], (9999 + max_rounds - 1) / max_rounds + 1) << "and the tail";
}

TEST(StreamPlayer, NoticesOneWrongBitOfOneFrame) {
  stream_rig r(3);
  std::uint64_t frame = 0;
  r.to.spoil = [&](std::uint32_t function, std::vector<std::uint8_t> &result) {
    if (function == qec::kGetCommittedFunctionId && ++frame == 120)
      result.back() ^= 1;
  };
  const stream_play_result got = r.play();
  EXPECT_EQ(got.mismatches, 1U);
  EXPECT_EQ(got.ended, 3U);
  ASSERT_EQ(got.notes.size(), 1U);
  EXPECT_NE(got.notes[0].find("experiment 2: 1 of "), std::string::npos) << got.notes[0];
}

TEST(StreamPlayer, NoticesAServerWithOtherWindows) {
  stream_rig r(1, 200, "sliding-window:inner=lookup,commit=3,buffer=2");
  const stream_play_result got = r.play();
  EXPECT_GT(got.mismatches, 0U);
  ASSERT_FALSE(got.notes.empty());
  EXPECT_NE(got.notes[0].find("give --decoder as the server has it"), std::string::npos) << got.notes[0];
}

TEST(StreamPlayer, GivesUpAnExperimentWithALostRequestAndPlaysTheNextOne) {
  stream_rig r(3);
  int enqueued = 0;
  r.to.judge = [&](std::uint32_t function) {
    return function == qec::kEnqueueFunctionId && ++enqueued == 50 ? server_link::fate::lost
                                                                   : server_link::fate::served;
  };
  const stream_play_result got = r.play();
  EXPECT_EQ(got.lost, 1U);
  EXPECT_EQ(got.unanswered(), 1U) << "an experiment without its last frame";
  EXPECT_GE(got.bad_status, 1U) << "of the request after it";
  EXPECT_EQ(got.ended, 2U);
  EXPECT_EQ(got.mismatches, 0U) << "no frame of a stream with a gap";
  ASSERT_FALSE(got.notes.empty());
  EXPECT_NE(got.notes[0].find("SYNDROMES_DROPPED"), std::string::npos) << got.notes[0];
}

TEST(StreamPlayer, CountsAnExperimentWithoutASolutionOnceAndPlaysTheNextOne) {
  stream_rig r(3);
  int enqueued = 0, until_reset = 0;
  r.to.judge = [&](std::uint32_t function) {
    enqueued += function == qec::kEnqueueFunctionId ? 1 : 0;
    until_reset = function == qec::kResetFunctionId ? 0 : until_reset + (enqueued == 50 || until_reset != 0 ? 1 : 0);
    return until_reset != 0 ? server_link::fate::no_solution : server_link::fate::served;
  };
  const stream_play_result got = r.play();
  EXPECT_EQ(got.undecided.not_converged, 1U);
  EXPECT_EQ(got.bad_status, 0U) << "a result of the decoder, and no failure of the run";
  EXPECT_EQ(got.missing, 1U) << "the decoder here has a solution for each window";
  EXPECT_EQ(got.mismatches, got.missing);
  EXPECT_EQ(got.unanswered(), 1U);
  EXPECT_EQ(got.ended, 2U);
}

TEST(StreamPlayer, SendsRefusedReadsAndRoundsAgain) {
  stream_rig r(2);
  int reads = 0, enqueued = 0, tails = 0;
  r.to.judge = [&](std::uint32_t function) {
    const bool busy = (function == qec::kGetCommittedFunctionId && ++reads <= 3) ||
                      (function == qec::kEnqueueFunctionId && ++enqueued > 97 && enqueued <= 102) ||
                      (function == qec::kBeginTailFunctionId && ++tails == 1);
    return busy ? server_link::fate::busy : server_link::fate::served;
  };
  const stream_play_result got = r.play();
  EXPECT_EQ(got.busy, 9U);
  EXPECT_EQ(got.bad_status, 0U);
  EXPECT_EQ(got.ended, 2U);
  EXPECT_EQ(got.mismatches, 0U);
}

TEST(StreamPlayer, AnExperimentWithoutASolutionThereAndHereIsAsExpected) {
  const std::string few = "relay-bp:pre_iter=1,num_sets=0";
  stream_rig r(3, 200, "sliding-window:inner=relay-bp,commit=2,buffer=3,pre_iter=1,num_sets=0",
               {.decoder = few, .commit = 2, .buffer = 3});
  const stream_play_result got = r.play();
  EXPECT_GT(got.undecided.not_converged, 0U);
  EXPECT_EQ(got.ended + got.undecided.not_converged, 3U);
  EXPECT_EQ(got.mismatches, 0U);
  EXPECT_EQ(got.bad_status, 0U);
}

TEST(StreamPlayer, AsksForNoRoundsThatWereRefused) {
  stream_rig r(1);
  int enqueued = 0, queries = 0;
  bool refuses = false;
  r.to.judge = [&](std::uint32_t function) {
    if (function == qec::kEnqueueFunctionId)
      refuses = ++enqueued > 50 && enqueued <= 55;
    queries += refuses && function == qec::kGetCommittedFunctionId ? 1 : 0;
    return refuses && function == qec::kEnqueueFunctionId ? server_link::fate::busy : server_link::fate::served;
  };
  const stream_play_result got = r.play();
  EXPECT_LE(queries, 1) << "before it knows that they were refused";
  EXPECT_EQ(got.ended, 1U);
  EXPECT_EQ(got.mismatches, 0U);
}

TEST(StreamPlayer, AsksAgainAtOnceAfterTheNextRoundsAreThere) {
  stream_rig r(1);
  int reads = 0;
  r.to.judge = [&](std::uint32_t function) {
    return function == qec::kGetCommittedFunctionId && ++reads <= 5 ? server_link::fate::busy
                                                                    : server_link::fate::served;
  };
  const stream_play_result got = r.play();
  EXPECT_EQ(got.busy, 5U);
  EXPECT_GE(got.frames, 85U) << "nearly one for each window: the waits of five BUSY have the time of all rounds";
  EXPECT_EQ(got.ended, 1U);
}

// The first of four refused requests is refused again: it still goes before the other three.
TEST(StreamPlayer, SendsRequestsThatAreRefusedTwiceInTheirOrder) {
  stream_rig r(2);
  r.options.cycle_us = 0;
  r.slot_bytes = 60;
  r.to.is_slow = true;
  int enqueued = 0;
  r.to.judge = [&](std::uint32_t function) {
    const bool busy = function == qec::kEnqueueFunctionId && ++enqueued >= 6 && enqueued <= 10;
    return busy ? server_link::fate::busy : server_link::fate::served;
  };
  const stream_play_result got = r.play();
  EXPECT_EQ(got.notes, std::vector<std::string>{});
  EXPECT_GE(got.busy, 5U) << "and reads that wait for their rounds";
  EXPECT_EQ(got.bad_status, 0U);
  EXPECT_EQ(got.ended, 2U);
  EXPECT_EQ(got.mismatches, 0U);
}

TEST(StreamPlayer, SaysThatARefusedRequestLeftAGap) {
  stream_rig r(2);
  r.options.cycle_us = 0;
  r.slot_bytes = 60; // many requests, and those after the refused one are accepted
  r.to.is_slow = true;
  int enqueued = 0;
  r.to.judge = [&](std::uint32_t function) {
    return function == qec::kEnqueueFunctionId && ++enqueued == 6 ? server_link::fate::busy : server_link::fate::served;
  };
  const stream_play_result got = r.play();
  EXPECT_EQ(got.busy, 1U);
  EXPECT_EQ(got.ended, 1U);
  ASSERT_FALSE(got.notes.empty());
  EXPECT_NE(got.notes[0].find("SYNDROMES_DROPPED: a request with rounds was BUSY"), std::string::npos) << got.notes[0];
}

TEST(StreamPlayer, EndsIfARoundFitsIntoNoRequest) {
  stream_rig r(1);
  r.slot_bytes = 56; // the heads of the frame and of an enqueue request, and no bit
  const stream_play_result got = r.play();
  EXPECT_TRUE(got.stalled);
  EXPECT_EQ(got.rounds, 0U);
  EXPECT_EQ(got.notes, std::vector<std::string>{"no progress within twice the timeout"});
}

TEST(StreamPlayer, EndsWhenTheServerIsSilentOrHasEnded) {
  stream_rig silent(1000);
  silent.to.judge = [](std::uint32_t) { return server_link::fate::lost; };
  const stream_play_result got = silent.play();
  EXPECT_TRUE(got.stalled);
  EXPECT_GT(got.lost, 0U);
  stream_rig full(1);
  full.to.room = 0;
  EXPECT_TRUE(full.play().stalled);
  stream_rig closed(1);
  closed.to.judge = [&](std::uint32_t function) {
    closed.to.lives = closed.to.lives && function != qec::kBeginTailFunctionId;
    return closed.to.lives ? server_link::fate::served : server_link::fate::lost;
  };
  const stream_play_result ended = closed.play();
  EXPECT_TRUE(ended.stalled);
  EXPECT_EQ(ended.ended, 0U);
}

// A server with a queue has places for 8 KiB of bits.
TEST(StreamPlayer, SendsNoLongerRequestThanAnyServerTakesAlsoInLargeSlots) {
  stream_rig r(1, 100'000);
  r.slot_bytes = 1 << 20;
  r.options.cycle_us = 0;
  r.options.window = 64;
  const stream_play_result got = r.play();
  EXPECT_EQ(got.ended, 1U);
  EXPECT_EQ(got.mismatches, 0U);
  EXPECT_LE(r.to.longest, 32U + 8192U);
  EXPECT_GT(r.to.longest, 8192U) << "it lags";
}

TEST(StreamPlayer, SendsTheValuesOfItsRoundsAlsoInSlotsThatDoNotHoldBoth) {
  const qec::test::stream_readout_case of(kStreamDem);
  const cudaq::realtime::test::scratch_folder folder;
  readout_files files;
  files.readout = (folder.path() / "readout.txt").string();
  files.leaked = 0.2;
  std::ofstream(files.readout) << of.table;
  const std::string decoder = "sliding-window:inner=bp-osd,commit=2,buffer=3";
  for (const std::size_t slot_bytes : {24U + 48U + 4U, 24U + 48U + 11U, 256U}) {
    stream_rig r(3, 60, decoder, {.decoder = "bp-osd", .commit = 2, .buffer = 3, .readout = of.table}, 0, files);
    r.slot_bytes = slot_bytes;
    r.options.cycle_us = 5;
    const stream_play_result got = r.play();
    EXPECT_EQ(got.notes, std::vector<std::string>{});
    EXPECT_EQ(got.ended, 3U);
    EXPECT_EQ(got.rounds, 180U);
    EXPECT_EQ(got.mismatches, 0U);
    EXPECT_EQ(r.to.requests[qec::kEnqueueFunctionId], 0U);
    EXPECT_GT(r.to.requests[qec::kEnqueueReadoutFunctionId], slot_bytes == 256 ? 100U : 180U);
  }
}

TEST(StreamPlayer, PlaysARecordOfFilesAsOftenAsWanted) {
  const qec::test::stream_readout_case of(kStreamDem);
  const cudaq::realtime::test::scratch_folder folder;
  const auto path = [&folder](const char *name) { return (folder.path() / name).string(); };
  const auto write = [&path](const char *name, const auto &bytes) {
    std::ofstream(path(name), std::ios::binary)
        .write(reinterpret_cast<const char *>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  };
  write("readout.txt", of.table);
  readout_files files;
  files.readout = path("readout.txt");
  files.leaked = 0.2;
  const std::string decoder = "sliding-window:inner=bp-osd,commit=2,buffer=3";
  const qec::stream_options served{.decoder = "bp-osd", .commit = 2, .buffer = 3, .readout = of.table};
  stream_rig drawn(1, 60, decoder, served, 0, files);
  experiment_rounds &experiment = drawn.plan.begin(0);
  std::string lines;
  for (std::uint64_t round = 0; round < drawn.plan.rounds(); ++round) {
    for (const std::uint8_t bit : experiment.next_round())
      lines += bit != 0 ? '1' : '0';
    lines += '\n';
  }
  const std::uint64_t repetitions = drawn.plan.rounds() - of.model.head().size() - of.model.tail().size();
  std::vector<std::uint8_t> soft, flags;
  experiment.append_soft(0, of.soft.total(repetitions), soft);
  experiment.append_flags(0, of.flags.total(repetitions), flags);
  write("rounds.01", lines);
  write("soft", soft);
  write("flags", flags);
  files.soft = path("soft");
  files.leakage = path("flags");
  own_data record;
  record.in.path = path("rounds.01");
  record.obs_in.path = path("truth.01");
  const bool flips = experiment.observables()[0] != 0;
  std::uint64_t logical_errors = 0;
  for (const bool is_right : {true, false}) {
    write("truth.01", std::string(flips == is_right ? "1\n" : "0\n"));
    stream_rig r(2, 1, decoder, served, 0, files, record);
    const stream_play_result got = r.play();
    EXPECT_EQ(got.notes, std::vector<std::string>{});
    EXPECT_EQ(got.ended, 2U);
    EXPECT_EQ(got.rounds, 2 * drawn.plan.rounds());
    EXPECT_EQ(got.mismatches, 0U);
    logical_errors += got.logical_errors;
  }
  EXPECT_EQ(logical_errors, 2U) << "of one of the two truths, in both experiments";
  record.obs_in.path.clear();
  EXPECT_FALSE(stream_rig(1, 1, decoder, served, 0, files, record).plan.knows_observables());
}

} // namespace
} // namespace cudaq::realtime::tools
