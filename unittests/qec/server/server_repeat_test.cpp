// SPDX-License-Identifier: Apache-2.0
// Requests that come twice, because the first answer was lost or the network repeated them.
#include "unittests/qec/server/server_stream_support.h"

namespace {

using namespace cudaq::qec::realtime;
using namespace cudaq::qec::realtime::test;

constexpr std::uint64_t kId = 5;

/// A request as a requester sends it, any number of times.
struct sent_request {
  std::uint32_t function;
  bytes payload;
  std::uint32_t id;
  std::uint64_t time;
};
full_answer call(decoding_server &server, const sent_request &r) {
  return test::call(server, r.function, r.payload, r.id, r.time);
}
sent_request enqueue(std::uint64_t counter, const std::string &bits, std::uint32_t id, std::uint64_t time) {
  return {kEnqueueFunctionId, enqueue_payload(kId, counter, bits), id, time};
}
sent_request get(std::uint32_t id, std::uint64_t time, bool clear = true) {
  return {kGetCorrectionsFunctionId, get_payload(kId, 4, clear), id, time};
}
sent_request reset(std::uint32_t id, std::uint64_t time) { return {kResetFunctionId, reset_payload(kId), id, time}; }

struct served {
  explicit served(bool sequence = true, std::unique_ptr<decoding_unit> unit = unit_for(rotated_model(4)))
      : server(one_setup({.id = kId, .sequence = sequence}, std::move(unit))) {}
  full_answer operator()(const sent_request &r) { return call(server, r); }
  decoding_server server;
};

const full_answer kOk = answered(server_status::ok);

TEST(RepeatedRequest, OfARefusedReadOfCorrectionsGetsThemAgain) {
  for (const std::uint64_t time : {std::uint64_t{0}, std::uint64_t{900}}) { // a requester with and without timestamps
    served s;
    ASSERT_EQ(s(enqueue(0, "0110", 1, time)), kOk);
    const full_answer first = s(get(2, time == 0 ? 0 : time + 1));
    EXPECT_EQ(first, answered(server_status::ok, "0110"));
    for (int again = 0; again < 3; ++again)
      EXPECT_EQ(s(get(2, time == 0 ? 0 : time + 1)), first) << "its answer was lost";
    EXPECT_EQ(s(get(3, time == 0 ? 0 : time + 2)), answered(server_status::ok, "0000")) << "another one: all was read";
  }
}

TEST(RepeatedRequest, IsKnownAfterOtherRequestsByItsTime) {
  served s;
  ASSERT_EQ(s(enqueue(0, "0110", 1, 100)), kOk);
  ASSERT_EQ(s(get(2, 101)), answered(server_status::ok, "0110"));
  ASSERT_EQ(s(enqueue(1, "1000", 3, 102)), kOk);
  EXPECT_EQ(s(get(2, 101)), answered(server_status::ok, "0110"));
  EXPECT_EQ(s(get(4, 103)), answered(server_status::ok, "1000")) << "nothing was cleared twice";
}

TEST(RepeatedRequest, OfBitsIsAnsweredAndNotTakenTwice) {
  served s;
  ASSERT_EQ(s(enqueue(0, "01", 1, 100)), kOk);
  ASSERT_EQ(s(enqueue(1, "10", 2, 100)), kOk) << "sent together, completes the shot";
  EXPECT_EQ(s(enqueue(1, "10", 2, 100)), kOk) << "the last one";
  ASSERT_EQ(s(enqueue(2, "11", 3, 102)), kOk);
  EXPECT_EQ(s(enqueue(0, "01", 1, 100)), kOk) << "an older one";
  EXPECT_EQ(s(enqueue(3, "00", 4, 103)), kOk) << "and nothing has latched";
  EXPECT_EQ(s(get(5, 104)), answered(server_status::ok, "1010"));
  EXPECT_EQ(s.server.decoders()[0]->counts().shots, 2u);
  EXPECT_EQ(s.server.decoders()[0]->counts().repeated, 2u);
}

TEST(RepeatedRequest, OfBitsWithoutATimeIsKnownIfItIsTheLastOne) {
  served s;
  for (const std::uint32_t id : {42U, 43U}) {
    const std::uint64_t counter = id - 42;
    ASSERT_EQ(s(enqueue(counter, "01", id, 0)), kOk);
    EXPECT_EQ(s(enqueue(counter, "01", id, 0)), kOk);
  }
  EXPECT_EQ(s(get(44, 0)), answered(server_status::ok, "0101"));
}

/// Answers of the shot before would hide that its bits are missing.
TEST(RepeatedRequest, IsNotSeenAfterAGap) {
  for (const std::uint64_t time : {std::uint64_t{0}, std::uint64_t{900}}) // none, and the same one in all requests
    for (const std::uint32_t same_id : {42U, 0U}) {
      served s;
      std::uint32_t n = 0;
      const auto id = [&] { return same_id != 0 ? same_id : 1 + n++ % 5; };
      ASSERT_EQ(s(reset(id(), time)), kOk);
      for (const std::uint64_t counter : {1U, 2U, 3U})
        ASSERT_EQ(s(enqueue(counter, "0", id(), time)), kOk);
      ASSERT_EQ(s(enqueue(4, "1", id(), time)), kOk);
      ASSERT_EQ(s(get(id(), time)), answered(server_status::ok, "0001"));
      n = 0;
      ASSERT_EQ(s(reset(id(), time)), kOk);
      ASSERT_EQ(s(enqueue(1, "0", id(), time)), kOk);
      ++n; // counter 2 is lost
      EXPECT_EQ(s(enqueue(3, "0", id(), time)), answered(server_status::syndromes_dropped));
      EXPECT_EQ(s(get(id(), time)), answered(server_status::syndromes_dropped));
    }
}

TEST(RepeatedRequest, IsNotSeenIfARequesterStartsAgainWithItsCountersAndIds) {
  for (const std::uint64_t time : {std::uint64_t{0}, std::uint64_t{900}})
    for (const bool unique_ids : {false, true}) {
      served s;
      const auto run = [&] {
        std::uint32_t id = 42;
        const auto next = [&] { return unique_ids ? id++ : id; };
        full_answer worst = kOk;
        for (const std::uint64_t counter : {0U, 1U, 2U, 3U})
          if (const full_answer answer = s(enqueue(counter, "1", next(), time)); answer != kOk)
            worst = answer;
        return std::pair(worst, s(get(next(), time)));
      };
      EXPECT_EQ(run(), std::pair(kOk, answered(server_status::ok, "1111")));
      const auto [bits, corrections] = run();
      EXPECT_EQ(bits, answered(server_status::bad_request)) << "no reset: loud, as without a memory of requests";
      if (!unique_ids) {
        EXPECT_EQ(corrections, bits);
      }
    }
}

TEST(RepeatedRequest, WithOtherBitsOrAnotherIdIsRefusedAsBefore) {
  for (const sent_request &other : {enqueue(0, "11", 1, 0), enqueue(0, "01", 9, 0), enqueue(0, "01", 1, 7)}) {
    served s;
    ASSERT_EQ(s(enqueue(0, "01", 1, 0)), kOk);
    EXPECT_EQ(s(other), answered(server_status::bad_request));
    EXPECT_EQ(s(get(2, 0)), answered(server_status::bad_request)) << "latched";
  }
}

TEST(RepeatedRequest, OfAResetDoesNotEmptyTheNextShot) {
  served s;
  ASSERT_EQ(s(reset(1, 100)), kOk);
  ASSERT_EQ(s(enqueue(7, "01", 2, 101)), kOk);
  EXPECT_EQ(s(reset(1, 100)), kOk) << "it came late";
  ASSERT_EQ(s(enqueue(8, "10", 3, 102)), kOk);
  EXPECT_EQ(s(get(4, 103)), answered(server_status::ok, "0110"));
}

TEST(RepeatedRequest, OfBitsFromBeforeAResetDoesNotBeginAShot) {
  served s;
  ASSERT_EQ(s(enqueue(0, "01", 1, 100)), kOk);
  ASSERT_EQ(s(reset(2, 101)), kOk);
  EXPECT_EQ(s(enqueue(0, "01", 1, 100)), kOk);
  ASSERT_EQ(s(enqueue(0, "1001", 3, 102)), kOk) << "a whole shot has room";
  EXPECT_EQ(s(get(4, 103)), answered(server_status::ok, "1001"));
}

TEST(RepeatedRequest, HasItsAnswerAlsoAfterAnotherOneHasLatched) {
  served s;
  ASSERT_EQ(s(enqueue(0, "0110", 1, 100)), kOk);
  ASSERT_EQ(s(get(2, 101)), answered(server_status::ok, "0110"));
  ASSERT_EQ(s(enqueue(5, "0000", 3, 102)), answered(server_status::syndromes_dropped));
  EXPECT_EQ(s(get(2, 101)), answered(server_status::ok, "0110"));
  EXPECT_EQ(s(get(4, 103)), answered(server_status::syndromes_dropped));
}

TEST(RepeatedRequest, OfAStreamGetsRoundsAndTailOnce) {
  served s(true, stream_unit_for(rotated_stream_model(3)));
  const sent_request read{kGetCommittedFunctionId, committed_payload(kId, 3, 0, true), 3, 102};
  ASSERT_EQ(s(enqueue(0, "100010001", 1, 100)), kOk);
  EXPECT_EQ(s(enqueue(0, "100010001", 1, 100)), kOk);
  const full_answer first = s(read);
  ASSERT_EQ(first, committed(2, 3, "110"));
  const sent_request tail{kBeginTailFunctionId, begin_tail_payload(kId, 1), 4, 103};
  ASSERT_EQ(s(tail), kOk);
  EXPECT_EQ(s(tail), kOk);
  ASSERT_EQ(s(enqueue(2, "111", 5, 104)), kOk);
  EXPECT_EQ(s(read), first) << "with the rounds of its first answer";
  EXPECT_EQ(s({kGetCommittedFunctionId, committed_payload(kId, 3, 0, true), 6, 105}), committed(4, 4, "110"));
}

TEST(RepeatedRequest, OfWhatWasNotExecutedIsExecuted) {
  served s;
  ASSERT_EQ(s(reset(1, 100)), kOk);
  sent_request wrong = get(2, 101);
  wrong.payload = get_payload(kId, 5, true); // more observables than there are
  EXPECT_EQ(s(wrong), answered(server_status::bad_request));
  EXPECT_EQ(s(wrong), answered(server_status::bad_request));
  EXPECT_EQ(s(enqueue(0, "0110", 3, 102)), kOk);
  EXPECT_EQ(s(get(4, 103, false)), answered(server_status::ok, "0110"));
  EXPECT_EQ(s(get(4, 103, false)), answered(server_status::ok, "0110")) << "without clear it is executed again";
}

/// Requesters of the existing wire use ids as they like. Equal requests of them are all meant.
TEST(RepeatedRequest, IsNotSeenInEqualRequestsOfARequesterThatDoesNotCount) {
  const auto always = [](std::uint32_t) { return 0U; };
  const auto constant = [](std::uint32_t) { return 42U; };
  const auto slot_number = [](std::uint32_t n) { return n % 4; };
  const auto two_slots = [](std::uint32_t n) { return n % 2; };
  for (const auto &id_of :
       std::initializer_list<std::uint32_t (*)(std::uint32_t)>{always, constant, slot_number, two_slots}) {
    served s;
    std::uint32_t n = 0;
    for (int shot = 0; shot < 50; ++shot) {
      ASSERT_EQ(s(reset(id_of(n++), 0)), kOk);
      ASSERT_EQ(s(enqueue(0, "01", id_of(n++), 0)), kOk);
      ASSERT_EQ(s(enqueue(1, "10", id_of(n++), 0)), kOk);
      ASSERT_EQ(s(get(id_of(n++), 0)), answered(server_status::ok, "0110")) << "shot " << shot << ", id " << id_of(n);
    }
  }
}

TEST(RepeatedRequest, IsNotSeenInEqualRoundsWithoutCountersAndTimes) {
  for (const std::uint32_t id : {0U, 42U}) {
    served s(false);
    for (int round = 0; round < 4; ++round)
      ASSERT_EQ(s(enqueue(0, "1", id, 0)), kOk);
    EXPECT_EQ(s(get(id, 0)), answered(server_status::ok, "1111")) << "four equal rounds were all meant";
  }
  served timed(false);
  ASSERT_EQ(timed(enqueue(0, "1", 1, 100)), kOk);
  EXPECT_EQ(timed(enqueue(0, "1", 1, 100)), kOk) << "times tell";
  ASSERT_EQ(timed(enqueue(0, "111", 2, 101)), kOk);
  EXPECT_EQ(timed(get(3, 102)), answered(server_status::ok, "1111"));
}

} // namespace
