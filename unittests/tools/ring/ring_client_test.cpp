// SPDX-License-Identifier: Apache-2.0
// The client with a dispatcher whose handler defers, so that the test chooses the order of the answers.
#include "cudaq/realtime/daemon/dispatcher/rpc_types.h"
#include "tools/common/clock.h"
#include "tools/ring/ring_client.h"
#include "tools/services/host_service.h"
#include "unittests/tools/ring/ring_exchange_fixture.h"

#include <cstring>
#include <gtest/gtest.h>
#include <mutex>

namespace cudaq::realtime::tools {
namespace {

constexpr std::uint32_t kEcho = fnv1a_hash("deferred_echo");
constexpr std::uint32_t kSlots = 4;

/// The handler keeps each request; the test completes them one by one.
class RingClient : public ::testing::Test {
protected:
  RingClient() : service_(config(), kEcho, &keep, std::shared_ptr<void>(this, [](void *) {}), nullptr) {
    service_.start();
  }
  ~RingClient() override { service_.stop(); }

  static ring_service_config config() {
    ring_service_config c;
    c.num_slots = kSlots;
    c.slot_bytes = 64;
    c.options = default_options();
    c.options.wait_policy = CUDAQ_WAIT_SPIN_YIELD;
    c.options.ordering = CUDAQ_ORDERING_ANY;
    return c;
  }

  static std::int32_t keep(cudaq_host_call_t *call, void *user) {
    auto &self = *static_cast<RingClient *>(user);
    std::memcpy(call->result, call->payload, call->payload_len);
    const std::lock_guard lock(self.mutex_);
    self.kept_.push_back(call->job);
    return CUDAQ_HOST_CALL_DEFERRED;
  }

  bool send(std::uint8_t value) { return producer_.try_send(kEcho, {&value, 1}, value, now_ns()); }

  /// Completes request `id` once the handler has it.
  void answer(std::uint32_t id) {
    for (const std::uint64_t begin = now_ns(); now_ns() - begin < kDeadlineNs; std::this_thread::yield()) {
      const std::lock_guard lock(mutex_);
      for (const cudaq_host_job_t &job : kept_)
        if (job.request_id == id) {
          require_ok(service_.complete(job, CUDAQ_RPC_OK, 1), "cudaq_host_complete_deferred");
          return;
        }
    }
    FAIL() << "request " << id << " did not reach the handler";
  }

  /// Collects until there was an answer. Returns the values of the answers in the order of collection.
  std::vector<int> collect() {
    std::vector<int> values;
    for (const std::uint64_t begin = now_ns(); values.empty() && now_ns() - begin < kDeadlineNs;)
      consumer_.collect([&](const tools::answer &a) {
        EXPECT_EQ(a.fault, answer_fault::none) << answer_fault_text(a.fault);
        EXPECT_EQ(a.result.size(), 1u);
        EXPECT_EQ(a.result[0], a.tag);
        values.push_back(a.result[0]);
      });
    return values;
  }

  std::mutex mutex_;
  std::vector<cudaq_host_job_t> kept_;
  host_service service_;
  sent_requests sent_{kSlots};
  ring_producer producer_{service_.ring(), sent_};
  ring_consumer consumer_{service_.ring(), sent_};
};

TEST_F(RingClient, CollectsAnswersInTheOrderTheyCome) {
  for (std::uint8_t i = 0; i < kSlots; ++i)
    ASSERT_TRUE(send(i));
  EXPECT_FALSE(send(kSlots)) << "a full ring must refuse";
  for (const int id : {2, 0, 3, 1}) {
    answer(static_cast<std::uint32_t>(id));
    EXPECT_EQ(collect(), std::vector<int>{id});
  }
  EXPECT_EQ(consumer_.collected(), kSlots);
  EXPECT_EQ(consumer_.out_of_order(), 2u);
  EXPECT_EQ(consumer_.oldest(), kSlots);
  EXPECT_EQ(consumer_.count_leftover_answers(), 0u);
}

TEST_F(RingClient, KeepsRingOrderAfterALateAnswer) {
  for (std::uint8_t i = 0; i < kSlots; ++i)
    ASSERT_TRUE(send(i));
  for (const std::uint32_t id : {1u, 2u, 3u}) {
    answer(id);
    EXPECT_EQ(collect().size(), 1u);
  }
  EXPECT_FALSE(send(4)) << "slot 0 is still taken, although three others are free";
  EXPECT_NE(consumer_.describe_outstanding(now_ns()).find("request 0 in slot 0"), std::string::npos);
  answer(0);
  EXPECT_EQ(collect(), std::vector<int>{0});
  for (std::uint8_t i = 4; i < 8; ++i)
    ASSERT_TRUE(send(i));
  for (const std::uint32_t id : {7u, 6u, 5u, 4u}) {
    answer(id);
    EXPECT_EQ(collect(), std::vector<int>{static_cast<int>(id)});
  }
  EXPECT_EQ(consumer_.collected(), 8u);
}

TEST_F(RingClient, WaitsForTheOldestAnswerIfItCollectsInTheOrderOfRequests) {
  ring_consumer in_order(service_.ring(), sent_, collect_order::of_requests);
  const auto collect_all = [&in_order] {
    std::vector<std::uint64_t> sequences;
    in_order.collect([&](const tools::answer &a) { sequences.push_back(a.sequence); });
    return sequences;
  };
  for (std::uint8_t i = 0; i < kSlots; ++i)
    ASSERT_TRUE(send(i));
  for (const std::uint32_t id : {1u, 2u})
    answer(id);
  EXPECT_TRUE(collect_all().empty());
  for (const std::uint32_t id : {0u, 3u})
    answer(id);
  std::vector<std::uint64_t> sequences;
  for (const std::uint64_t begin = now_ns(); sequences.size() < kSlots && now_ns() - begin < kDeadlineNs;)
    for (const std::uint64_t sequence : collect_all())
      sequences.push_back(sequence);
  EXPECT_EQ(sequences, (std::vector<std::uint64_t>{0, 1, 2, 3}));
  EXPECT_EQ(in_order.out_of_order(), 0u);
}

// The measuring clients that send from one thread, with a host dispatcher.

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
