// SPDX-License-Identifier: Apache-2.0
// The streams of `emulate`, against a server that is a function.
#include "cudaq/qec/decoding/decoder.h"
#include "cudaq/realtime/daemon/dispatcher/cudaq_realtime.h"
#include "lib/qec/server/session/wire_requests.h"
#include "tools/emulate/player.h"

#include <deque>
#include <gtest/gtest.h>
#include <map>

namespace cudaq::realtime::tools {
namespace {

/// 4 shots of 12 detection events and 3 observables. The prediction of shot n is n + 1.
qec::shot_set made_up_shots() {
  qec::shot_set s;
  s.name = "made up";
  s.shots = 4;
  s.num_detectors = 12;
  s.num_observables = 3;
  for (std::uint8_t shot = 0; shot < 4; ++shot) {
    s.detections.insert(s.detections.end(), {shot, 0});
    s.predictions.push_back(static_cast<std::uint8_t>(shot + 1));
  }
  return s;
}

/// Answers right, except where the test says otherwise. Answers wait in a queue, and leave it last in, first out.
class function_link final : public link {
public:
  struct request {
    std::uint32_t id = 0, function = 0;
    std::vector<std::uint8_t> payload;
    std::uint64_t timestamp = 0;
  };

  bool send(std::uint32_t id, std::uint32_t function, std::span<const std::uint8_t> payload,
            std::uint64_t timestamp) override {
    if (room == 0)
      return false;
    EXPECT_TRUE(open.emplace(id, function).second) << "id " << id << " is open twice";
    sent.push_back({id, function, {payload.begin(), payload.end()}, timestamp});
    if (loses != 0) {
      --loses;
      return true;
    }
    answer_to(sent.back());
    return true;
  }
  std::optional<link_answer> receive() override {
    if (flood != 0) {
      --flood;
      return link_answer{};
    }
    if (waiting.empty())
      return std::nullopt;
    now = std::move(waiting.back());
    waiting.pop_back();
    open.erase(now.header.request_id);
    return link_answer{now.header, now.result};
  }
  void give_up(std::uint32_t id) override { open.erase(id); }
  bool alive() override { return lives; }
  link_counters counters() const override { return {}; }
  std::string describe() const override { return "a function"; }

  std::vector<request> sent;
  std::map<std::uint32_t, std::uint32_t> open; ///< id: function
  int room = 1, loses = 0, busy = 0;
  int flood = 0; ///< answers to no request
  std::int32_t status = 0, busy_status = CUDAQ_RPC_ERR_BUSY;
  std::uint64_t echo_error = 0;
  bool wrong = false, lives = true;

private:
  struct reply {
    cudaq_rpc_response_t header{};
    std::vector<std::uint8_t> result;
  };

  void answer_to(const request &r) {
    reply out;
    out.header.request_id = r.id;
    out.header.ptp_timestamp = r.timestamp + echo_error;
    out.header.status = busy != 0 ? busy_status : status;
    if (busy != 0)
      --busy;
    else if (r.function == qec::kEnqueueFunctionId)
      enqueued_[r.payload[0]] = r.payload[qec::kEnqueueHeadBytes];
    else
      out.result = {static_cast<std::uint8_t>(
          (r.function == qec::kOneShotFunctionId ? r.payload[0] : enqueued_[r.payload[0]]) + (wrong ? 2 : 1))};
    waiting.push_back(std::move(out));
  }

  std::map<std::uint8_t, std::uint8_t> enqueued_; ///< by decoder: first byte of the events
  std::deque<reply> waiting;
  reply now;
};

struct play_bench {
  explicit play_bench(std::uint64_t number = 40) { options.shots = number; }

  /// The clock is 100 ns later at each look.
  player begin() {
    return player(options, plan, true, to, [this] { return now_ns += 100; });
  }

  play_result run(std::uint64_t turns = 100000) {
    player play = begin();
    for (std::uint64_t turn = 1; turn <= turns && !play.done(); ++turn)
      play.turn();
    EXPECT_TRUE(play.done());
    return play.result();
  }

  std::uint64_t now_ns = 0;
  emulate_options options;
  const qec::shot_set shots = made_up_shots();
  const shot_plan plan{shots, 0};
  function_link to;
};

TEST(Player, PlaysEachShotOnceAndChecksEachAnswer) {
  play_bench b;
  const play_result r = b.run();
  EXPECT_EQ(r.shots, 40u);
  EXPECT_EQ(r.answered, 40u);
  EXPECT_EQ(r.requests, 40u);
  EXPECT_EQ(r.mismatches + r.lost + r.bad_status + r.wrong_echo + r.busy, 0u);
  for (std::size_t n = 0; n < 40; ++n)
    EXPECT_EQ(b.to.sent[n].payload, (std::vector<std::uint8_t>{static_cast<std::uint8_t>(n % 4), 0}));
}

TEST(Player, SpeaksTheProtocolOfTheDecodingServer) {
  play_bench b(8);
  b.options.protocol = "server";
  b.options.decoder_ids = {5, 7, 9};
  const play_result r = b.run();
  EXPECT_EQ(r.answered, 8u);
  EXPECT_EQ(r.requests, 19u) << "3 resets, and two requests a shot";
  EXPECT_EQ(r.mismatches, 0u);
  for (std::size_t n = 0; n < 3; ++n)
    EXPECT_EQ(b.to.sent[n].function, qec::kResetFunctionId);
  const function_link::request &first = b.to.sent[3];
  EXPECT_EQ(first.function, qec::kEnqueueFunctionId);
  std::vector<std::uint8_t> expected(34, 0); // decoder, counter, mapping id, bits: u64 each; then the events
  expected[0] = first.payload[0];
  expected[8] = 1; // the first counter
  expected[24] = 12;
  expected[32] = first.payload[32];
  EXPECT_EQ(first.payload, expected);
  const auto second = std::find_if(b.to.sent.begin(), b.to.sent.end(),
                                   [](const auto &sent) { return sent.function == qec::kGetCorrectionsFunctionId; });
  ASSERT_NE(second, b.to.sent.end());
  expected.assign(17, 0);
  expected[0] = second->payload[0];
  expected[8] = 3;
  expected[16] = 1;
  EXPECT_EQ(second->payload, expected);
}

TEST(Player, CountsTheEnqueuedShotsOfADecoderAndResetsItAfterAnError) {
  play_bench b(3);
  b.options.protocol = "server";
  b.to.busy = 1;
  std::vector<std::uint8_t> counters;
  EXPECT_EQ(b.run().answered, 3u);
  for (const function_link::request &r : b.to.sent)
    if (r.function == qec::kEnqueueFunctionId)
      counters.push_back(r.payload[8]);
  EXPECT_EQ(counters, (std::vector<std::uint8_t>{1, 2, 3}));
  play_bench failing(1);
  failing.options.protocol = "server";
  failing.to.status = 6;
  EXPECT_EQ(failing.run().bad_status, 3u) << "reset, enqueue, and reset again";
  EXPECT_EQ(failing.to.sent.back().function, qec::kResetFunctionId);
  EXPECT_EQ(failing.to.sent.back().payload, std::vector<std::uint8_t>(8, 0));
}

// Else the shot would be added to what the decoder still has of the one before.
TEST(Player, BeginsAShotWithAResetIfTheOneBeforeItWasLost) {
  play_bench b(2);
  b.options.protocol = "server";
  b.options.timeout_s = 0.002;
  b.to.loses = 1;
  const play_result r = b.run();
  EXPECT_EQ(r.lost, 1u);
  EXPECT_EQ(r.answered, 2u);
  std::vector<std::uint32_t> functions;
  for (const function_link::request &sent : b.to.sent)
    functions.push_back(sent.function);
  EXPECT_EQ(functions, (std::vector<std::uint32_t>{qec::kResetFunctionId, qec::kResetFunctionId,
                                                   qec::kEnqueueFunctionId, qec::kGetCorrectionsFunctionId,
                                                   qec::kEnqueueFunctionId, qec::kGetCorrectionsFunctionId}));
}

TEST(Player, SendsABusyRequestAgain) {
  play_bench b;
  b.to.busy = 17;
  const play_result r = b.run();
  EXPECT_EQ(r.busy, 17u);
  EXPECT_EQ(r.requests, 57u);
  EXPECT_EQ(r.answered, 40u);
  EXPECT_EQ(r.mismatches, 0u);
}

TEST(Player, SendsAShotThatTheServerRefusesAsBusyAgainLaterAndLater) {
  play_bench b(1);
  b.options.window = 1;
  b.to.busy = 3;
  b.to.busy_status = -5; // of qec_decode
  const play_result r = b.run();
  EXPECT_EQ(r.busy, 3u);
  EXPECT_EQ(r.answered, 1u);
  EXPECT_EQ(r.bad_status, 0u);
  ASSERT_EQ(b.to.sent.size(), 4u);
  const auto gap = [&](std::size_t n) { return b.to.sent[n + 1].timestamp - b.to.sent[n].timestamp; };
  EXPECT_GE(gap(0), 20'000u);
  EXPECT_GE(gap(1), 40'000u);
  EXPECT_GE(gap(2), 80'000u);
  EXPECT_LE(gap(2), 100'000u);
}

TEST(Player, GivesUpARequestThatIsBusyForTheWholeTimeout) {
  play_bench b(1);
  b.options.window = 1;
  b.options.timeout_s = 0.001;
  b.to.busy = 6; // at 0, 20, 60, 140, 300, 620 and 1260 us
  b.to.busy_status = -5;
  EXPECT_EQ(b.run().answered, 1u);
  play_bench longer(1);
  longer.options = b.options;
  longer.to.busy = 7;
  longer.to.busy_status = -5;
  const play_result r = longer.run();
  EXPECT_EQ(r.busy, 7u);
  EXPECT_EQ(r.busy_given_up, 1u);
  EXPECT_EQ(r.bad_status, 1u);
  EXPECT_EQ(r.answered, 0u);
  EXPECT_FALSE(r.stalled);
  ASSERT_FALSE(r.notes.empty());
  EXPECT_NE(r.notes.front().find("status -5: BUSY"), std::string::npos) << r.notes.front();
}

TEST(Player, CountsWhatIsWrong) {
  play_bench wrong;
  wrong.to.wrong = true;
  EXPECT_EQ(wrong.run().mismatches, 40u);
  play_bench echo;
  echo.to.echo_error = 1;
  EXPECT_EQ(echo.run().wrong_echo, 40u);
  play_bench status;
  status.to.status = CUDAQ_RPC_ERR_NO_SUCH_FUNCTION;
  const play_result r = status.run();
  EXPECT_EQ(r.bad_status, 40u);
  EXPECT_EQ(r.answered, 0u);
  EXPECT_FALSE(r.notes.empty());
  for (const auto &[protocol, deadline, not_converged] : {std::tuple("decode", 9, 7), std::tuple("server", 8, 9)}) {
    const auto played = [protocol = protocol](std::int32_t answers) {
      play_bench bench(5);
      bench.options.protocol = protocol;
      bench.to.status = answers;
      return bench.run();
    };
    const play_result missed = played(deadline), given_up = played(not_converged);
    EXPECT_EQ(missed.undecided.at_deadline, 5u) << protocol;
    EXPECT_EQ(missed.undecided.not_converged, 0u) << protocol;
    EXPECT_EQ(missed.mismatches, 0u) << protocol << ": the time decides";
    EXPECT_EQ(given_up.undecided.not_converged, 5u) << protocol;
    EXPECT_EQ(given_up.undecided.at_deadline, 0u) << protocol;
    EXPECT_EQ(given_up.mismatches, 5u) << protocol << ": answers were expected";
    EXPECT_EQ(given_up.missing, 5u) << protocol;
    EXPECT_EQ(given_up.unanswered(), 5u) << protocol;
  }
}

TEST(Player, SaysWhatAStatusOfTheServerMeans) {
  const auto note = [](const char *protocol, std::int32_t status) {
    play_bench b(1);
    b.options.protocol = protocol;
    b.to.status = status;
    const play_result r = b.run();
    return r.notes.empty() ? "" : r.notes.front().substr(r.notes.front().find("status"));
  };
  EXPECT_EQ(note("decode", -4), "status -4: NOT_READY: the server ends, or no node is there");
  EXPECT_EQ(note("decode", -6), "status -6: SYNDROMES_DROPPED");
  EXPECT_EQ(note("decode", -10), std::string("status -10: ") + cudaq_rpc_status_string(-10));
  EXPECT_EQ(note("decode", 3), std::string("status 3: ") + qec::decode_status_text(qec::decode_status::no_solution));
  EXPECT_EQ(note("decode", CUDAQ_RPC_ERR_NO_SUCH_FUNCTION),
            std::string("status -1001: ") + cudaq_rpc_status_string(CUDAQ_RPC_ERR_NO_SUCH_FUNCTION));
  EXPECT_EQ(note("server", 1), "status 1: INVALID_DECODER");
  EXPECT_EQ(note("server", 2), "status 2: BAD_REQUEST: it does not fit those before it; if another requester uses the "
                               "decoder, give each its own");
  EXPECT_EQ(note("server", 3),
            "status 3: INTERNAL: the decoder failed, or nothing explains the shot; the server logs it");
  EXPECT_EQ(note("server", 4), "status 4: NOT_READY: the server ends, or no node is there");
  EXPECT_EQ(note("server", 6), "status 6: SYNDROMES_DROPPED: requests before it are missing, or another requester uses "
                               "the decoder: give each its own");
  EXPECT_EQ(note("server", 7), "status 7: STREAM_MISALIGNED");
  EXPECT_EQ(note("server", 8), "status 8: DEADLINE");
  EXPECT_EQ(note("server", 9), "status 9: NOT_CONVERGED: the decoder found no solution within its limits");
  EXPECT_EQ(note("server", 10), std::string("status 10: ") + cudaq_rpc_status_string(10)) << "of a later server";
}

TEST(Player, GivesUpLostRequestsAndGoesOn) {
  play_bench b;
  b.options.timeout_s = 0.002;
  b.options.window = 4;
  b.to.loses = 2;
  const play_result r = b.run();
  EXPECT_EQ(r.lost, 2u);
  EXPECT_EQ(r.answered, 38u);
}

TEST(Player, GivesRequestsConsecutiveIdsAlsoWhileOneIsLost) {
  play_bench b;
  b.options.timeout_s = 0.002;
  b.options.window = 4;
  b.to.loses = 1;
  b.run();
  for (std::size_t n = 0; n < b.to.sent.size(); ++n)
    EXPECT_EQ(b.to.sent[n].id, n);
  EXPECT_EQ(player::id_window(b.options), 16u);
}

TEST(Player, IsPatientWithARateThatIsSlowerThanTheTimeout) {
  play_bench b(10);
  b.options.rate = 100;
  b.options.timeout_s = 0.001;
  const play_result r = b.run(10'000'000);
  EXPECT_EQ(r.answered, 10u);
  EXPECT_FALSE(r.stalled);
}

TEST(Player, GoesOnAfterALossIfThePauseBetweenShotsIsLongerThanTheTimeout) {
  play_bench b(10);
  b.options.rate = 100;
  b.options.timeout_s = 0.001;
  b.to.loses = 1;
  const play_result r = b.run(10'000'000);
  EXPECT_EQ(r.lost, 1u);
  EXPECT_EQ(r.answered, 9u);
  EXPECT_FALSE(r.stalled);
  play_bench dead(10);
  dead.options = b.options;
  dead.to.loses = 1 << 20;
  const play_result ended = dead.run(10'000'000);
  EXPECT_TRUE(ended.stalled && ended.lost == 2) << ended.lost;
}

TEST(Player, StopsIfNothingIsAnswered) {
  play_bench silent;
  silent.options.timeout_s = 0.002;
  silent.to.loses = 1 << 20;
  EXPECT_TRUE(silent.run().stalled);
  play_bench dead;
  dead.to.loses = 1 << 20;
  dead.to.lives = false;
  EXPECT_TRUE(dead.run().stalled);
}

TEST(Player, StopsIfNoSlotBecomesFree) {
  for (const char *protocol : {"decode", "server"}) {
    play_bench full;
    full.options.protocol = protocol;
    full.options.timeout_s = 0.002;
    full.to.room = 0;
    const play_result r = full.run();
    EXPECT_TRUE(r.stalled);
    ASSERT_FALSE(r.notes.empty());
    EXPECT_EQ(r.notes.back(), "no slot has become free within twice the timeout");
  }
}

TEST(Player, StopsIfTheServerAnswersNothingButBusy) {
  play_bench b;
  b.options.timeout_s = 0.002;
  b.to.busy = 1 << 30;
  const play_result r = b.run();
  EXPECT_TRUE(r.stalled);
  ASSERT_FALSE(r.notes.empty());
  EXPECT_EQ(r.notes.back(), "the server has answered nothing but BUSY for twice the timeout");
}

// Each shot is given up, and the next one begins: that is no progress.
TEST(Player, StopsIfEachShotOfItsOnlyStreamIsBusyUntilItIsGivenUp) {
  for (const char *protocol : {"decode", "server"}) {
    play_bench b(1000);
    b.options.protocol = protocol;
    b.options.window = 1;
    b.options.timeout_s = 0.00005;
    b.to.busy = 1 << 30;
    const play_result r = b.run(10'000'000);
    EXPECT_TRUE(r.stalled) << protocol;
    EXPECT_LT(r.shots, 20u) << protocol;
  }
}

TEST(Player, IsNotKeptInATurnByAServerThatFloods) {
  play_bench b;
  b.to.flood = 1 << 20;
  player play = b.begin();
  play.turn();
  EXPECT_GT(b.to.flood, 0);
}

TEST(Player, DoesNotWaitForAFreeSlotAfterAnInterrupt) {
  for (const char *protocol : {"decode", "server"}) {
    play_bench b;
    b.options.protocol = protocol;
    b.to.room = 0;
    player play = b.begin();
    play.turn();
    play.interrupt();
    EXPECT_TRUE(play.done()) << protocol;
    EXPECT_EQ(play.result().shots, 0u) << "none was sent";
  }
}

TEST(Player, BeginsShotsAtTheirTimes) {
  play_bench b(10);
  b.options.rate = 1e4; // 100 us apart
  EXPECT_EQ(b.run().shots, 10u);
  EXPECT_GE(b.now_ns, 900'000u);
  EXPECT_LE(b.now_ns, 910'000u);
}

TEST(Player, AShotOfASearchIsLateIfItBeginsLaterThanTheBound) {
  struct pause {
    bool search;
    double bound_us;
    std::uint64_t late;
  };
  // Five shots are due in a pause of 450 us: 450, 350, 250, 150 and 50 us before its end.
  for (const pause &p : {pause{false, 1000, 4}, pause{true, 1000, 0}, pause{true, 300, 2}, pause{true, 20, 4}}) {
    play_bench b(20);
    b.options.rate = 1e4;
    b.options.search_rate = p.search;
    b.options.search_p999_us = p.bound_us;
    player play = b.begin();
    while (play.turn(), b.now_ns < 500'000) {
    }
    b.now_ns += 450'000;
    while (!play.done())
      play.turn();
    EXPECT_EQ(play.result().late, p.late) << p.search << ", " << p.bound_us;
  }
}

TEST(Player, SendsNoMoreAfterAnInterrupt) {
  play_bench b;
  player play = b.begin();
  play.turn();
  play.stop_sending();
  play.turn();
  EXPECT_TRUE(play.done());
  EXPECT_EQ(play.result().answered, 8u) << "the requests of the first turn";
}

} // namespace
} // namespace cudaq::realtime::tools
