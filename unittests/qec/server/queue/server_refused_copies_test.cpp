// SPDX-License-Identifier: Apache-2.0
// A request that is refused, and copies of it that a requester has sent meanwhile. After BUSY the requester sends
// another request, so none of the copies may be executed.
#include "unittests/qec/server/server_stream_support.h"
#include "unittests/qec/server/server_threads_support.h"

#include "cudaq/realtime/daemon/dispatcher/rpc_wire_format.h"

namespace {

using namespace cudaq::qec::realtime;
using namespace cudaq::qec::realtime::test;

const full_answer kOk = answered(server_status::ok), kBusy = answered(server_status::busy);
const full_answer kNoRoom{CUDAQ_RPC_ERR_BUSY, {}};
const bytes kRead = committed_payload(1, 2, 2, true); // waits for round 2, and clears

/// A started server with one decoder of id 1, and its requests: those with equal ids are copies.
struct copies_rig : started_server {
  copies_rig(const decoder_limits &limits, std::unique_ptr<decoding_unit> unit,
             const answer_receiver &receiver = requester::receiver())
      : started_server(one_setup(limits, std::move(unit)), 0, receiver) {}
  std::uint32_t send(std::uint32_t function, const bytes &payload, std::uint32_t id) {
    return client.send(function, payload, id, 1000 + id);
  }
  full_answer call(std::uint32_t function, const bytes &payload, std::uint32_t id) {
    return client.answer(send(function, payload, id));
  }
};

TEST(RefusedCopies, OfAReadWhoseStreamWasResetClearNothing) {
  copies_rig rig({.id = 1, .queue_length = 16}, stream_unit_for(rotated_stream_model(2)));
  const std::uint32_t first = rig.send(kGetCommittedFunctionId, kRead, 1);
  EXPECT_EQ(rig.call(kGetCommittedFunctionId, kRead, 1), kNoRoom) << "the first one waits";
  EXPECT_EQ(rig.call(kResetFunctionId, reset_payload(1), 2), kOk);
  EXPECT_EQ(rig.client.answer(first), kBusy);
  EXPECT_EQ(rig.call(kEnqueueFunctionId, enqueue_payload(1, 1, "010000"), 3), kOk) << "the round is final";
  EXPECT_EQ(rig.call(kGetCommittedFunctionId, kRead, 1), kBusy) << "a late copy";
  EXPECT_EQ(rig.call(kGetCommittedFunctionId, kRead, 4), committed(2, 3, "01"));
}

TEST(RefusedCopies, OfAReadThatWaitsDoNotEndItsWait) {
  for (const bool clears : {true, false}) {
    const bytes read = committed_payload(1, 2, 2, clears);
    copies_rig rig({.id = 1, .queue_length = 1, .age_limit_ns = 600'000'000'000},
                   stream_unit_for(rotated_stream_model(2)));
    const std::uint32_t first = rig.send(kGetCommittedFunctionId, read, 1);
    ASSERT_TRUE(rig.all_served());
    for (int copy = 0; copy < 20; ++copy)
      EXPECT_EQ(rig.call(kGetCommittedFunctionId, read, 1), kNoRoom);
    EXPECT_EQ(rig.call(kGetCommittedFunctionId, read, 5), kBusy) << "another read, and one may wait";
    EXPECT_EQ(rig.client.answers_to(first), 0U);
    EXPECT_EQ(rig.call(kEnqueueFunctionId, enqueue_payload(1, 1, "010000"), 2), kOk);
    EXPECT_EQ(rig.client.answer(first), committed(2, 3, "01"));
    EXPECT_EQ(rig.call(kGetCommittedFunctionId, read, 1), committed(2, 3, "01")) << "a late copy";
    EXPECT_EQ(rig.call(kGetCommittedFunctionId, read, 5), clears ? kBusy : committed(2, 3, "01"));
  }
}

TEST(RefusedCopies, OfAReadWithoutAQueueClearNothing) {
  decoding_server server(one_setup({.id = 1}, stream_unit_for(rotated_stream_model(2))));
  EXPECT_EQ(call(server, kGetCommittedFunctionId, kRead, 1, 1001), kBusy);
  EXPECT_EQ(call(server, kEnqueueFunctionId, enqueue_payload(1, 1, "010000"), 2, 1002), kOk);
  EXPECT_EQ(call(server, kGetCommittedFunctionId, kRead, 1, 1001), kBusy);
  EXPECT_EQ(call(server, kGetCommittedFunctionId, kRead, 3, 1003), committed(2, 3, "01"));
}

TEST(RefusedCopies, AreRefusedAlsoIfTheyAreYoungerThanTheAgeLimit) {
  rt::shared_word<std::uint32_t> goes_on; // until then the decoder's thread is in the answer to the reset
  copies_rig rig({.id = 1, .queue_length = 8, .age_limit_ns = 100'000'000}, unit_for(rotated_model(1)),
                 waiting_receiver(goes_on));
  const std::uint32_t reset = rig.send(kResetFunctionId, reset_payload(1), 1);
  const std::uint32_t first = rig.send(kGetCorrectionsFunctionId, get_payload(1, 1, true), 2);
  std::this_thread::sleep_for(std::chrono::milliseconds(150));
  EXPECT_EQ(rig.call(kGetCorrectionsFunctionId, get_payload(1, 1, true), 2), kNoRoom) << "the first one is too old";
  goes_on.store(1);
  EXPECT_EQ(rig.client.answer(reset), kOk);
  EXPECT_EQ(rig.client.answer(first), kBusy);
  EXPECT_EQ(rig.call(kGetCorrectionsFunctionId, get_payload(1, 1, true), 2), kBusy);
}

/// Each would hold a slot of the transport until its decoder goes on.
TEST(RefusedCopies, OfARequestThatIsExecutedOrWaitsTakeNoPlace) {
  rt::shared_word<std::uint32_t> open;
  copies_rig rig({.id = 1, .queue_length = 64}, unit_with_gate(open));
  const struct {
    std::uint32_t function;
    bytes payload;
    full_answer answer;
  } kRequests[] = {{kEnqueueFunctionId, enqueue_payload(1, 1, "1"), kOk}, // is being decoded
                   {kGetCorrectionsFunctionId, get_payload(1, 1), answered(server_status::ok, "1")},
                   {kOneShotFunctionId, packed("1"), answered(server_status::ok, "1")},
                   {kGetCorrectionsFunctionId, get_payload(1, 1, true), answered(server_status::ok, "1")}};
  std::vector<std::uint32_t> first;
  for (std::uint32_t id = 1; const auto &r : kRequests)
    first.push_back(rig.send(r.function, r.payload, id++));
  for (int copy = 0; copy < 100; ++copy)
    for (std::uint32_t id = 1; const auto &r : kRequests)
      EXPECT_EQ(rig.call(r.function, r.payload, id++), kNoRoom);
  EXPECT_EQ(rig.server.decoders()[0]->waiting(), 4U);
  open.store(1);
  for (std::size_t k = 0; k < first.size(); ++k)
    EXPECT_EQ(rig.client.answer(first[k]), kRequests[k].answer) << k;
  for (std::uint32_t id : {1U, 4U}) // the others change nothing
    EXPECT_EQ(rig.call(kRequests[id - 1].function, kRequests[id - 1].payload, id), kRequests[id - 1].answer) << id;
  EXPECT_EQ(rig.server.decoders()[0]->counts().repeated, 2U);
}

TEST(RefusedCopies, OfARequestThatIsExecutedAreNotRefusedForTheEnd) {
  rt::shared_word<std::uint32_t> open;
  copies_rig rig({.id = 1, .queue_length = 64}, unit_with_gate(open));
  const bytes shot = enqueue_payload(1, 1, "1"), next = enqueue_payload(1, 2, "1");
  const std::uint32_t first = rig.send(kEnqueueFunctionId, shot, 1);
  rig.server.close();
  EXPECT_EQ(rig.call(kEnqueueFunctionId, shot, 1), kNoRoom);
  EXPECT_EQ(rig.call(kEnqueueFunctionId, next, 2), answered(server_status::not_ready));
  EXPECT_FALSE(rig.server.stop(std::chrono::steady_clock::now())) << "it is decoded";
  EXPECT_EQ(rig.call(kEnqueueFunctionId, shot, 1), kNoRoom);
  open.store(1);
  EXPECT_EQ(rig.client.answer(first), kOk);
}

TEST(RefusedCopies, AreFoundInALongQueueAtTheEnd) {
  constexpr std::uint32_t kMore = 2 * CUDAQ_QEC_REPEAT_REQUESTS;
  rt::shared_word<std::uint32_t> open;
  copies_rig rig({.id = 1, .queue_length = kMore + 2}, unit_with_gate(open));
  std::vector<std::uint32_t> sent;
  for (std::uint32_t id = 1; id <= kMore; ++id)
    sent.push_back(rig.send(kEnqueueFunctionId, enqueue_payload(1, id, "1"), id));
  rig.server.close();
  EXPECT_EQ(rig.call(kEnqueueFunctionId, enqueue_payload(1, 2, "1"), 2), kNoRoom) << "it is executed later";
  open.store(1);
  for (const std::uint32_t number : sent)
    EXPECT_EQ(rig.client.answer(number), kOk);
}

TEST(RefusedCopies, AreThoseOfARequestThatFoundTheQueueFull) {
  rt::shared_word<std::uint32_t> open;
  copies_rig rig({.id = 1, .queue_length = 1}, unit_with_gate(open));
  const std::uint32_t first = rig.send(kEnqueueFunctionId, enqueue_payload(1, 1, "1"), 1); // is being decoded
  for (int copy = 0; copy < 3; ++copy)
    EXPECT_EQ(rig.call(kEnqueueFunctionId, enqueue_payload(1, 1, "1"), 1), kNoRoom) << "nothing is refused for good";
  EXPECT_EQ(rig.call(kEnqueueFunctionId, enqueue_payload(1, 2, "1"), 2), kBusy);
  open.store(1);
  EXPECT_EQ(rig.client.answer(first), kOk);
  EXPECT_EQ(rig.call(kEnqueueFunctionId, enqueue_payload(1, 1, "1"), 1), kOk) << "executed once";
  EXPECT_EQ(rig.call(kEnqueueFunctionId, enqueue_payload(1, 2, "1"), 2), kBusy) << "a copy of the refused one";
  EXPECT_EQ(rig.call(kEnqueueFunctionId, enqueue_payload(1, 2, "1"), 3), kOk) << "another request";
  EXPECT_EQ(rig.call(kGetCorrectionsFunctionId, get_payload(1, 1), 4), answered(server_status::ok, "0"));
  const decoder_counts counts = rig.server.decoders()[0]->counts();
  EXPECT_EQ(counts.shots, 2u);
  EXPECT_EQ(counts.by_status[static_cast<std::size_t>(server_status::busy)], 5u);
}

TEST(RefusedCopies, AreNotSeenInEqualRequestsWithoutATime) {
  rt::shared_word<std::uint32_t> open;
  copies_rig rig({.id = 1, .queue_length = 1}, unit_with_gate(open));
  const std::uint32_t first = rig.client.send(kEnqueueFunctionId, enqueue_payload(1, 1, "1"), 7);
  EXPECT_EQ(rig.client.call(kEnqueueFunctionId, enqueue_payload(1, 2, "1"), 7), kBusy);
  open.store(1);
  EXPECT_EQ(rig.client.answer(first), kOk);
  EXPECT_EQ(rig.client.call(kEnqueueFunctionId, enqueue_payload(1, 2, "1"), 7), kOk);
}

} // namespace
