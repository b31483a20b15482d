// SPDX-License-Identifier: Apache-2.0
// Which requests of a recording are played, in which order, and what their answers are compared with.
#include "tools/replay/replay_player.h"
#include "unittests/qec/server/record/recorder_support.h"
#include "unittests/qec/server/server_test_support.h"

#include <chrono>
#include <deque>
#include <functional>
#include <optional>
#include <thread>

namespace cudaq::realtime::tools {
namespace {

using namespace cudaq::qec::realtime::test;
using cudaq::qec::realtime::record_reader;
using cudaq::qec::realtime::request_moments;

/// A server whose answers a function makes; nothing: no answer.
class scripted_link final : public link {
public:
  using script = std::function<std::optional<full_answer>(std::uint32_t function, const bytes &payload)>;
  explicit scripted_link(script answers) : answers_(std::move(answers)) {}

  bool send(std::uint32_t id, std::uint32_t function, std::span<const std::uint8_t> payload, std::uint64_t) override {
    sent_.push_back(function);
    EXPECT_EQ(id, next_id_++) << "ids are consecutive";
    if (auto answer = answers_(function, {payload.begin(), payload.end()}))
      ready_.emplace_back(id, std::move(*answer));
    return true;
  }
  std::optional<link_answer> receive() override {
    if (ready_.empty())
      return {};
    read_ = std::move(ready_.front());
    ready_.pop_front();
    link_answer answer;
    answer.header.request_id = read_.first;
    answer.header.status = read_.second.status;
    answer.result = read_.second.result;
    return answer;
  }
  void give_up(std::uint32_t) override { ++given_up_; }
  bool alive() override { return alive_; }
  link_counters counters() const override { return {}; }
  std::string describe() const override { return "a script"; }

  script answers_;
  std::vector<std::uint32_t> sent_;
  std::uint32_t next_id_ = 0, given_up_ = 0;
  bool alive_ = true;

private:
  std::deque<std::pair<std::uint32_t, full_answer>> ready_;
  std::pair<std::uint32_t, full_answer> read_;
};

class ReplayPlayer : public testing::Test {
protected:
  /// A request and, if there is one, its recorded answer.
  void add(std::uint32_t function, const bytes &payload, std::optional<full_answer> answer, std::uint32_t id = 0,
           std::uint64_t time = 0) {
    request_moments m{.arrived = recording_->ticks.now()};
    m.record = recording_->recorder->add_request(function, payload, id, time, m.arrived);
    if (answer && recording_->recorder->add_answer(m.record, answer->status, answer->result))
      recording_->recorder->end(m, recording_->ticks.now());
  }
  replay_result play(link &to, bool as_recorded = false, const char *file = "rec") {
    const auto reader = read_recording(folder_ / file);
    replay_plan plan(*reader);
    // Each look at the clock takes 10 us.
    replay_player player({as_recorded, 1'000'000'000, 0}, plan, to, [this] { return now_ns_ += 10'000; });
    for (int turn = 0; !player.done() && turn < 1'000'000; ++turn)
      player.turn();
    EXPECT_TRUE(player.done());
    left_ = plan.left_out();
    return player.result();
  }

  test_folder folder_;
  std::optional<recording> recording_{std::in_place, folder_ / "rec", 16, 256};
  std::uint64_t now_ns_ = 0;
  left_out_requests left_;
};

using cudaq::qec::realtime::kEnqueueFunctionId, cudaq::qec::realtime::kOneShotFunctionId,
    cudaq::qec::realtime::kResetFunctionId, cudaq::qec::realtime::kGetCommittedFunctionId;

const full_answer kOk{0, {}};
std::optional<full_answer> ok(std::uint32_t, const bytes &) { return kOk; }

TEST_F(ReplayPlayer, ComparesEachAnswerWithTheRecordedOne) {
  add(kOneShotFunctionId, {1}, full_answer{0, {1}});
  add(kOneShotFunctionId, {2}, full_answer{0, {2}});
  add(kOneShotFunctionId, {3}, full_answer{7, {}});
  add(kOneShotFunctionId, {4}, {});
  scripted_link to([](std::uint32_t, const bytes &payload) {
    return full_answer{0, payload[0] == 2 ? bytes{9} : payload};
  });
  const replay_result r = play(to);
  EXPECT_EQ(r.played, 4U);
  EXPECT_EQ(r.equal, 1U);
  EXPECT_EQ(r.differences, 2U);
  EXPECT_EQ(r.not_compared, 1U);
  ASSERT_EQ(r.first.size(), 2U);
  EXPECT_EQ(r.first[0].recorded.number, 1U);
  EXPECT_EQ(r.first[0].replayed.result, bytes{9});
  EXPECT_EQ(r.first[1].verdict, cudaq::qec::realtime::answer_verdict::other_status);
}

TEST_F(ReplayPlayer, LeavesOutCopiesAndWhatWasNotExecuted) {
  add(kResetFunctionId, reset_payload(1), kOk, 1, 100);
  add(kEnqueueFunctionId, enqueue_payload(1, 0, "1"), kOk, 2, 101);
  add(kEnqueueFunctionId, enqueue_payload(1, 0, "1"), kOk, 2, 101);
  add(kEnqueueFunctionId, enqueue_payload(1, 1, "1"), full_answer{5, {}}, 3, 102);
  add(kEnqueueFunctionId, enqueue_payload(1, 1, "1"), full_answer{CUDAQ_RPC_ERR_BUSY, {}}, 3, 102);
  add(kOneShotFunctionId, {1}, full_answer{-4, {}});
  scripted_link to(ok);
  EXPECT_EQ(play(to).equal, 2U);
  EXPECT_EQ(left_.copies, 1U);
  EXPECT_EQ(left_.not_executed, 3U);
}

TEST_F(ReplayPlayer, KnowsACopyAmongAsManyRequestsOfADecoderAsTheServerDid) {
  const auto enqueue = [this](std::uint64_t decoder, std::uint64_t counter) {
    add(kEnqueueFunctionId, enqueue_payload(decoder, counter, "1"), kOk, 1, 100 + counter);
  };
  recording_.emplace(folder_ / "long", 4 * CUDAQ_QEC_REPEAT_REQUESTS, 256);
  for (std::uint64_t k = 0; k < CUDAQ_QEC_REPEAT_REQUESTS; ++k)
    enqueue(1, k);
  enqueue(1, 0); // the oldest one that the server knew
  enqueue(2, 0); // another decoder's
  enqueue(1, CUDAQ_QEC_REPEAT_REQUESTS);
  enqueue(1, 0); // the server has executed it
  enqueue(1, 2);
  scripted_link to(ok);
  EXPECT_EQ(play(to, false, "long").played, CUDAQ_QEC_REPEAT_REQUESTS + 3);
  EXPECT_EQ(left_.copies, 2U);
}

TEST_F(ReplayPlayer, BeginsADecoderAtItsResetIfTheRecordingDoesNot) {
  for (int k = 0; k < 16; ++k)
    add(kOneShotFunctionId, {1}, kOk); // their places are taken below, but one
  for (int k = 0; k < 3; ++k)
    add(kEnqueueFunctionId, enqueue_payload(1, 7, "1"), kOk);
  for (int k = 0; k < 8; ++k)
    add(kResetFunctionId, reset_payload(2), kOk);
  add(kEnqueueFunctionId, enqueue_payload(1, 8, "1"), kOk);
  add(kResetFunctionId, reset_payload(1), kOk);
  add(kEnqueueFunctionId, enqueue_payload(1, 9, "1"), kOk);
  add(kEnqueueFunctionId, enqueue_payload(2, 9, "1"), kOk);
  add(kOneShotFunctionId, {1}, kOk);
  scripted_link to(ok);
  EXPECT_EQ(play(to).equal, 12U);
  EXPECT_EQ(left_.without_begin, 4U);
}

TEST_F(ReplayPlayer, SendsAgainWhatTheServerHasNoPlaceFor) {
  add(kOneShotFunctionId, {1}, full_answer{0, {1}});
  add(kOneShotFunctionId, {2}, full_answer{0, {2}});
  int busy = 3;
  scripted_link to([&](std::uint32_t, const bytes &payload) {
    return payload[0] == 1 && busy-- > 0 ? full_answer{-5, {}} : full_answer{0, payload};
  });
  const replay_result r = play(to);
  EXPECT_EQ(r.equal, 2U);
  EXPECT_EQ(r.played, 2U);
  EXPECT_EQ(r.busy, 3U);
}

TEST_F(ReplayPlayer, EndsWhenNoAnswerComes) {
  add(kOneShotFunctionId, {1}, kOk);
  scripted_link silent([](std::uint32_t, const bytes &) { return std::optional<full_answer>(); });
  EXPECT_TRUE(play(silent).stalled);
  EXPECT_EQ(silent.given_up_, 1U);
  scripted_link busy([](std::uint32_t, const bytes &) { return full_answer{-5, {}}; });
  EXPECT_TRUE(play(busy).stalled);
  scripted_link ended([](std::uint32_t, const bytes &) { return std::optional<full_answer>(); });
  ended.alive_ = false;
  EXPECT_TRUE(play(ended).stalled);
}

bytes committed_payload(std::uint64_t wait_for) {
  bytes payload = get_payload(1, 1);
  payload.resize(24);
  append_number(payload, wait_for);
  return payload;
}

TEST_F(ReplayPlayer, GoesOnWhileAReadWaitsForItsRound) {
  add(kGetCommittedFunctionId, committed_payload(5), full_answer{0, bytes(17, 1)});
  add(kEnqueueFunctionId, enqueue_payload(1, 0, "1"), kOk);
  scripted_link to([&, sent = 0](std::uint32_t, const bytes &) mutable -> std::optional<full_answer> {
    if (sent++ == 0)
      return {};
    return kOk;
  });
  const replay_result r = play(to);
  EXPECT_EQ(to.sent_, (std::vector<std::uint32_t>{kGetCommittedFunctionId, kEnqueueFunctionId}));
  EXPECT_EQ(r.equal, 1U);
  EXPECT_TRUE(r.stalled) << "the read has no answer in this script";
}

TEST_F(ReplayPlayer, KeepsTheTimesOfTheRecordingIfItMust) {
  add(kOneShotFunctionId, {1}, kOk);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  add(kOneShotFunctionId, {2}, kOk);
  scripted_link first(ok), second(ok);
  const replay_result at_once = play(first);
  EXPECT_LT(at_once.end_ns - at_once.begin_ns, 10'000'000U);
  const replay_result slow = play(second, true);
  EXPECT_GE(slow.end_ns - slow.begin_ns, 19'000'000U);
  EXPECT_EQ(slow.equal, 2U);
}

} // namespace
} // namespace cudaq::realtime::tools
