// SPDX-License-Identifier: Apache-2.0
// Slots, credits and answers of the cpu_roce provider, over the test double of an adapter. No thread, but in the
// last test: each step is a call.
#include "unittests/transport/cpu_roce/cpu_roce_rig.h"

namespace cudaq::realtime::test {
namespace {

using slot = std::optional<std::uint32_t>;

TEST(CpuRoceCredits, AWriteIsARequestOfTheSlotThatItsImmediateNames) {
  exchange_rig rig;
  ASSERT_NO_FATAL_FAILURE(rig.request(2, 11, {1, 2, 3}));
  EXPECT_EQ(rig.exchange.poll(), slot());
  EXPECT_EQ(rig.memory.rx_slot(2)[CUDAQ_RPC_HEADER_SIZE + 1], 2);
  rig.answer(2, 11, 3);
  const std::vector<std::uint8_t> frame = rig.adapter->take_frame();
  ASSERT_EQ(frame.size(), 256u) << "an answer has the size of a frame";
  EXPECT_EQ(response_of(frame).request_id, 11u);
  EXPECT_EQ(frame[CUDAQ_RPC_HEADER_SIZE + 2], 0xAB);
  EXPECT_EQ(rig.exchange.counters().accepted.value(), 1u);
  EXPECT_EQ(rig.exchange.counters().replied.value(), 1u);
}

TEST(CpuRoceCredits, AnAnswerHasNothingOfAnEarlierOne) {
  exchange_rig rig;
  for (const std::uint32_t length : {200u, 4u}) {
    ASSERT_NO_FATAL_FAILURE(rig.request(0, length));
    rig.answer(0, length, length);
  }
  rig.adapter->take_frame();
  const std::vector<std::uint8_t> frame = rig.adapter->take_frame();
  for (std::size_t i = CUDAQ_RPC_HEADER_SIZE + 4; i < frame.size(); ++i)
    ASSERT_EQ(frame[i], 0) << i;
}

TEST(CpuRoceCredits, ASlotThatTheLoopDoesNotHaveIsNeitherAnsweredNorDropped) {
  exchange_rig rig;
  EXPECT_EQ(rig.exchange.answer(9).text(), "slot 9: the loop does not have it");
  EXPECT_EQ(rig.exchange.drop(0).status(), CUDAQ_ERR_INVALID_ARG);
}

TEST(CpuRoceCredits, WithRcOneReceiveIsPostedForEachFreeSlot) {
  detail::cpu_roce_options options = rig_options();
  options.reliable = true;
  exchange_rig rig(options);
  EXPECT_EQ(rig.adapter->receives(), 4u);
  for (std::uint32_t i = 0; i < 4; ++i)
    ASSERT_TRUE(rig.write(i, request_frame(i)));
  EXPECT_FALSE(rig.write(0, request_frame(9))) << "a sender without a credit is held back";
  for (std::uint32_t i = 0; i < 4; ++i)
    EXPECT_EQ(rig.exchange.poll(), slot(i));
  EXPECT_EQ(rig.adapter->receives(), 0u);
  rig.answer(3, 3);
  EXPECT_EQ(rig.adapter->receives(), 1u);
  EXPECT_TRUE(rig.write(3, request_frame(10)));
  EXPECT_EQ(rig.exchange.poll(), slot(3));
}

TEST(CpuRoceCredits, WithUcAWriteToASlotInUseIsSeenAndAnsweredBusy) {
  exchange_rig rig;
  EXPECT_EQ(rig.adapter->receives(), 8u);
  ASSERT_NO_FATAL_FAILURE(rig.arrive(0, 4, 4));
  ASSERT_TRUE(rig.write(1, request_frame(21)));
  EXPECT_EQ(rig.exchange.poll(), slot());
  const cudaq_rpc_response_t busy = rig.next_answer();
  EXPECT_EQ(busy.status, CUDAQ_RPC_ERR_BUSY);
  EXPECT_EQ(busy.request_id, 21u);
  EXPECT_EQ(busy.ptp_timestamp, 1021u);
  EXPECT_EQ(rig.adapter->receives(), 4u) << "the receive of the refused write is posted again";
  rig.answer(1, 1);
  const cudaq_rpc_response_t lost = rig.next_answer();
  EXPECT_EQ(lost.status, CUDAQ_RPC_ERR_NO_RESPONSE) << "its request was overwritten while it was executed";
  EXPECT_EQ(lost.request_id, 1u);
  rig.answer(0, 0);
  EXPECT_EQ(rig.next_answer().status, 0) << "others are unharmed";
  EXPECT_EQ(rig.exchange.counters().answered_busy.value(), 1u);
  EXPECT_EQ(rig.exchange.counters().overwritten.value(), 1u);
}

TEST(CpuRoceCredits, AnOverwriteThatArrivesWithTheAnswerIsSeenBeforeItIsSent) {
  exchange_rig rig;
  ASSERT_NO_FATAL_FAILURE(rig.request(0, 1));
  ASSERT_TRUE(rig.write(0, request_frame(2)));
  rig.answer(0, 1);
  EXPECT_EQ(rig.next_answer().status, CUDAQ_RPC_ERR_BUSY);
  EXPECT_EQ(rig.next_answer().status, CUDAQ_RPC_ERR_NO_RESPONSE);
}

TEST(CpuRoceCredits, ARequestThatIsOverwrittenBeforeItIsTakenIsNotExecuted) {
  exchange_rig rig;
  ASSERT_TRUE(rig.write(0, request_frame(1)));
  ASSERT_TRUE(rig.write(0, request_frame(2)));
  EXPECT_EQ(rig.exchange.poll(), slot());
  for (int i = 0; i < 2; ++i) {
    const cudaq_rpc_response_t busy = rig.next_answer();
    EXPECT_EQ(busy.status, CUDAQ_RPC_ERR_BUSY);
    EXPECT_EQ(busy.request_id, 2u) << "that of the first one is overwritten, too";
  }
  ASSERT_NO_FATAL_FAILURE(rig.request(0, 3));
}

TEST(CpuRoceCredits, FramesThatAreNoRequestTakeNoSlot) {
  exchange_rig rig;
  const detail::cpu_roce_counters &c = rig.exchange.counters();
  rig.write(0, std::vector<std::uint8_t>(23));
  rig.write(0, std::vector<std::uint8_t>(257));
  rig.adapter->write(0, request_frame(1), 4);
  rig.adapter->write(0, request_frame(1), UINT32_MAX);
  std::vector<std::uint8_t> cut = request_frame(5, {1, 2, 3});
  cut.pop_back();
  rig.write(0, cut);
  EXPECT_EQ(rig.exchange.poll(), slot());
  EXPECT_EQ(c.dropped_short.value(), 1u);
  EXPECT_EQ(c.dropped_long.value(), 1u);
  EXPECT_EQ(c.dropped_immediate.value(), 2u);
  EXPECT_EQ(c.answered_truncated.value(), 1u);
  EXPECT_EQ(c.received.value(), 5u);
  const cudaq_rpc_response_t truncated = rig.next_answer();
  EXPECT_EQ(truncated.status, CUDAQ_RPC_ERR_BAD_ARG_LEN);
  EXPECT_EQ(truncated.request_id, 5u);
  EXPECT_EQ(rig.adapter->take_frame().size(), 0u);
  EXPECT_EQ(rig.adapter->receives(), 8u) << "all receives are posted again";
  ASSERT_NO_FATAL_FAILURE(rig.request(0, 6));
}

TEST(CpuRoceCredits, AFrameThatIsTooLongSpoilsTheRequestsOfTheSlotsAfterIt) {
  exchange_rig rig;
  ASSERT_NO_FATAL_FAILURE(rig.arrive(1, 4, 3));
  ASSERT_TRUE(rig.write(0, std::vector<std::uint8_t>(2 * 256 + 1))); // to slot 2
  for (const std::uint32_t i : {1u, 2u, 3u}) {
    rig.answer(i, i);
    EXPECT_EQ(rig.next_answer().status, i == 3 ? 0 : CUDAQ_RPC_ERR_NO_RESPONSE) << i;
  }
}

TEST(CpuRoceCredits, ASensorBridgeWritesAPageInPartsAndCountsInTheImmediate) {
  detail::cpu_roce_options options = rig_options();
  options.sensor_bridge = true;
  exchange_rig rig(options);
  const std::vector<std::uint8_t> frame = request_frame(8, {1, 2, 3});
  rig.adapter->write(3, frame, 0, false);
  EXPECT_EQ(rig.exchange.poll(), slot());
  rig.adapter->write(3, {frame.begin(), frame.begin() + 4}, 3 | 77u << 12); // the last part is shorter than a header
  EXPECT_EQ(rig.exchange.poll(), slot(3));
}

TEST(CpuRoceCredits, AResultThatIsLongerThanAFrameIsAStatusAndNotCut) {
  detail::cpu_roce_options options = rig_options();
  options.frame_size = 64;
  exchange_rig rig(options);
  for (const std::uint32_t length : {40u, 41u}) {
    ASSERT_NO_FATAL_FAILURE(rig.request(0, 1));
    rig.answer(0, 1, length);
    const std::vector<std::uint8_t> frame = rig.adapter->take_frame();
    EXPECT_EQ(frame.size(), 64u);
    EXPECT_EQ(response_of(frame).status, length == 40 ? 0 : CUDAQ_RPC_ERR_RESULT_TOO_LARGE);
  }
}

// The next request always arrives before the answer of the one before it, so the list is never empty.
TEST(CpuRoceCredits, TheListOfRequestsIsBoundedUnderSteadyLoad) {
  exchange_rig rig;
  ASSERT_TRUE(rig.write(0, request_frame(0)));
  for (std::uint32_t id = 0; id < 1000; ++id) {
    ASSERT_EQ(rig.exchange.poll(), slot(id % 4));
    ASSERT_TRUE(rig.write((id + 1) % 4, request_frame(id + 1)));
    rig.answer(id % 4, id);
    ASSERT_EQ(rig.next_answer().request_id, id);
    ASSERT_LE(rig.exchange.ready_entries(), 8u) << id;
    ASSERT_GT(rig.exchange.ready_entries(), 0u);
  }
}

TEST(CpuRoceCredits, AnswersWaitUntilTheAdapterHasRoom) {
  exchange_rig rig;
  rig.adapter->hold_sends = true;
  const std::uint32_t room = rig.exchange.max_sends();
  std::uint32_t id = 0;
  for (; id < room + 4; ++id) {
    ASSERT_NO_FATAL_FAILURE(rig.request(id % 4, id));
    rig.answer(id % 4, id);
  }
  EXPECT_EQ(rig.exchange.counters().replied.value(), room);
  rig.adapter->complete_sends();
  EXPECT_EQ(rig.exchange.poll(), slot());
  EXPECT_EQ(rig.exchange.poll(), slot());
  for (std::uint32_t i = 0; i < 3; ++i)
    rig.exchange.poll();
  EXPECT_EQ(rig.exchange.counters().replied.value(), id);
  for (std::uint32_t i = 0; i < id; ++i)
    ASSERT_EQ(rig.next_answer().request_id, i);
}

TEST(CpuRoceCredits, RefusalsThatFindNoRoomAreCounted) {
  exchange_rig rig;
  rig.adapter->hold_sends = true;
  ASSERT_NO_FATAL_FAILURE(rig.request(0, 0));
  for (std::uint32_t i = 0; i < 20; ++i) {
    ASSERT_TRUE(rig.write(0, request_frame(i + 1)));
    EXPECT_EQ(rig.exchange.poll(), slot());
  }
  EXPECT_EQ(rig.exchange.counters().answered_busy.value(), 20u);
  EXPECT_EQ(rig.exchange.counters().refusals_dropped.value(), 20u - detail::cpu_roce_exchange::kRefusals);
}

TEST(CpuRoceConnection, AnErrorOfTheAdapterEndsItAndFreesAllSlots) {
  exchange_rig rig;
  ASSERT_NO_FATAL_FAILURE(rig.arrive(0, 3, 1));
  rig.adapter->fail("retry exceeded");
  ASSERT_EQ(rig.exchange.poll(), slot(1)); // it had arrived before
  ASSERT_EQ(rig.exchange.poll(), slot(2));
  EXPECT_EQ(rig.exchange.poll(), slot());
  EXPECT_FALSE(rig.exchange.connected());
  EXPECT_EQ(rig.exchange.why_broken(), "retry exceeded");
  std::unique_ptr<detail::rdma_queue_pair> pair;
  EXPECT_FALSE(rig.exchange.take_back(
      detail::steady_clock::now(), [] { return false; }, pair))
      << "slots are taken";
  rig.answer(0, 0);
  rig.answer(1, 1);
  EXPECT_EQ(rig.exchange.drop(2).text(), "");
  EXPECT_EQ(rig.exchange.counters().orphaned.value(), 3u);
  EXPECT_TRUE(rig.exchange.take_back(
      detail::steady_clock::now(), [] { return false; }, pair));
  ASSERT_NE(pair, nullptr);
  rig.attach();
  EXPECT_EQ(rig.exchange.why_broken(), "");
  ASSERT_NO_FATAL_FAILURE(rig.request(0, 7));
  rig.answer(0, 7);
  EXPECT_EQ(rig.next_answer().request_id, 7u);
}

TEST(CpuRoceConnection, EachRefusalOfTheAdapterEndsItWithAText) {
  for (const bool sends : {true, false}) {
    exchange_rig rig;
    ASSERT_NO_FATAL_FAILURE(rig.request(0, 1));
    (sends ? rig.adapter->refuse_sends : rig.adapter->refuse_receives) = true;
    const detail::expected<> result = rig.exchange.answer(0);
    EXPECT_EQ(result.status(), CUDAQ_ERR_INTERNAL);
    EXPECT_NE(result.text().find(sends ? "accepts no send" : "accepts no receive"), std::string::npos) << result.text();
    EXPECT_FALSE(rig.exchange.connected());
  }
}

TEST(CpuRoceConnection, ANewPeerGetsNoAnswerOfTheOldOne) {
  exchange_rig rig;
  ASSERT_NO_FATAL_FAILURE(rig.arrive(0, 4, 1));
  std::unique_ptr<detail::rdma_queue_pair> pair;
  int calls = 0;
  EXPECT_FALSE(rig.exchange.take_back(
      detail::deadline_after(20'000'000'000u), [&] { return ++calls == 3; }, pair));
  EXPECT_EQ(rig.exchange.poll(), slot()) << "its other requests are forgotten";
  rig.answer(0, 0);
  ASSERT_TRUE(rig.exchange.take_back(
      detail::steady_clock::now(), [] { return false; }, pair));
  pair.reset();
  rig.attach();
  EXPECT_EQ(rig.adapter->take_frame().size(), 0u);
  EXPECT_EQ(rig.exchange.poll(), slot());
  EXPECT_EQ(rig.exchange.counters().orphaned.value(), 4u);
  EXPECT_EQ(rig.exchange.counters().peers.value(), 2u);
}

TEST(CpuRoceConnection, ADisconnectSendsWhatIsAnsweredAndEndsTheQueuePair) {
  exchange_rig rig;
  ASSERT_NO_FATAL_FAILURE(rig.arrive(0, 3, 2));
  rig.answer(0, 0);
  rig.exchange.disconnect();
  EXPECT_EQ(rig.next_answer().request_id, 0u);
  EXPECT_FALSE(rig.adapter->connected());
  EXPECT_FALSE(rig.write(3, request_frame(3))) << "no word of the ring changes any more";
  EXPECT_EQ(rig.exchange.poll(), slot());
  EXPECT_EQ(rig.exchange.answer(1).text(), "") << "a late answer goes nowhere";
  rig.exchange.disconnect();
}

// The thread of the ring shape at its end: the test plays the dispatcher.

/// Ends the thread while a dispatcher is between the two stores of its answer: tx is set, rx is cleared 5 ms later.
/// True: the peer gets the answer.
bool answer_arrives_at_the_end() {
  exchange_rig rig;
  detail::cpu_roce_ring ring(rig.exchange);
  EXPECT_TRUE(ring.launch().ok());
  EXPECT_TRUE(rig.write(0, request_frame(7)));
  EXPECT_TRUE(eventually([&] { return detail::load_acquire(rig.exchange.rx_flag(0)) != 0; }));
  const cudaq_rpc_response_t header = {CUDAQ_RPC_MAGIC_RESPONSE, 0, 0, 7, 1007};
  std::memcpy(rig.memory.tx_slot(0), &header, sizeof(header));
  detail::store_release(rig.exchange.tx_flag(0), reinterpret_cast<std::uint64_t>(rig.memory.tx_slot(0)));
  std::thread control([&] { EXPECT_TRUE(ring.disconnect().ok()); });
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  detail::store_release<std::uint64_t>(rig.exchange.rx_flag(0), 0);
  control.join();
  return rig.next_answer().request_id == 7;
}

TEST(CpuRoceRing, SendsAnAnswerAtItsEndWhoseRequestFlagIsStillSet) {
  bool arrived = false;
  for (int attempt = 0; attempt < 10 && !arrived; ++attempt) // the end takes 100 ms at most: a busy machine may be late
    arrived = answer_arrives_at_the_end();
  EXPECT_TRUE(arrived);
}

} // namespace
} // namespace cudaq::realtime::test
