// SPDX-License-Identifier: Apache-2.0
// The measuring clients that send from one thread, with a host dispatcher.
#include "unittests/tools/ring/ring_exchange_fixture.h"

namespace cudaq::realtime::tools {
namespace {

using RingExchange = ring_exchange_test;

TEST_F(RingExchange, AcceptsRightRepliesOfEveryKindAndSize) {
  for (const reply_rule rule :
       {reply_rule::echo, reply_rule::transform, reply_rule::add_words, reply_rule::add_bytes, reply_rule::last_word})
    for (const std::size_t bytes : {8u, 40u, 4096u}) {
      behaviour_->rule = rule;
      const loop_result r = exchange_one_by_one(start(7, bytes).ring(), 7, client(200, bytes, rule), scale_);
      EXPECT_EQ(r.wrong, 0u) << static_cast<int>(rule) << " " << bytes;
      EXPECT_EQ(r.exchanges, 200u);
      EXPECT_EQ(r.per_exchange.count(), 200u) << "warm-up is not measured";
      EXPECT_GT(r.wall_ns, 0u);
    }
}

TEST_F(RingExchange, CountsEveryWrongReply) {
  behaviour_->spoil_every = 10;
  EXPECT_EQ(exchange_one_by_one(start(4, 8).ring(), 4, client(168, 8, reply_rule::echo), scale_).wrong, 20u);
  behaviour_->spoil_every = 0;
  behaviour_->rule = reply_rule::echo;
  EXPECT_EQ(exchange_one_by_one(start(4, 8).ring(), 4, client(168, 8, reply_rule::add_bytes), scale_).wrong, 200u);
}

TEST_F(RingExchange, KeepsARingFullFromOneThread) {
  exchange_config c = client(4000, 8, reply_rule::echo);
  c.timed = timed_part::frames;
  const loop_result r = exchange_pipelined(start(8, 8).ring(), 8, c, scale_);
  EXPECT_EQ(r.wrong, 0u);
  EXPECT_EQ(r.per_exchange.count(), 4000u / 16) << "every 16th is timed";
  EXPECT_EQ(r.laps.count(), 4000u / kLap);
  behaviour_->spoil_every = 10;
  EXPECT_EQ(exchange_pipelined(start(8, 8).ring(), 8, c, scale_).wrong, 400u);
}

TEST_F(RingExchange, SendsEmptyRequests) {
  exchange_config c = client(64, 0, reply_rule::transform);
  c.warm_up = 0;
  c.timed = timed_part::frames;
  const loop_result r = exchange_one_by_one(start(4, 8).ring(), 4, c, scale_);
  EXPECT_EQ(r.wrong, 0u);
  EXPECT_EQ(r.laps.count(), 1u);
}

TEST_F(RingExchange, SendsThroughTheHandleOfTheRing) {
  host_service &service = start(4, 8);
  cudaq_ringbuffer_producer_t *producer = nullptr;
  ASSERT_EQ(cudaq_ringbuffer_producer_open_ring(&service.ring(), 4, CUDAQ_MEMORY_HOST, &producer), CUDAQ_OK);
  const loop_result r = exchange_one_by_one({service.ring(), producer}, 4, client(200, 8, reply_rule::echo), scale_);
  EXPECT_EQ(r.wrong, 0u);
  EXPECT_EQ(cudaq_ringbuffer_producer_close(producer), CUDAQ_OK);
}

TEST_F(RingExchange, SaysWhenNoAnswerComes) {
  exchange_config c = client(100, 8, reply_rule::echo);
  c.timeout_ns = 50'000'000;
  EXPECT_THROW(exchange_one_by_one(unserved(64), 64, c, scale_), exchange_stalled);
  EXPECT_THROW(exchange_pipelined(unserved(64), 64, c, scale_), exchange_stalled);
}

} // namespace
} // namespace cudaq::realtime::tools
