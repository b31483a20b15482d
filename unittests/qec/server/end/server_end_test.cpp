// SPDX-License-Identifier: Apache-2.0
// The end of a server without a loss, as a program that embeds it ends it.
#include "unittests/qec/server/server_threads_support.h"

#include <thread>

namespace cudaq::qec::realtime::test {
namespace {

const full_answer kOk = answered(server_status::ok), kNotReady = answered(server_status::not_ready);

/// A started server with one decoder of id 1.
struct drain_rig : started_server {
  explicit drain_rig(std::unique_ptr<decoding_unit> unit)
      : started_server(one_setup({.id = 1, .queue_length = 4}, std::move(unit))) {}
};

TEST(ServerDrain, WaitsUntilTheCorrectionsOfAShotWereRead) {
  drain_rig rig(unit_for(rotated_model(2)));
  EXPECT_EQ(rig.client.call(kEnqueueFunctionId, enqueue_payload(1, 0, "10")), kOk);
  bool drained = false;
  rt::shared_word<std::uint32_t> ended;
  std::thread control([&] {
    drained = rig.server.drain(soon(), soon());
    ended.store(1);
  });
  // The end has begun when the next shot is refused.
  std::uint64_t counter = 1;
  EXPECT_TRUE(rt::wait_until(
      soon(), [&] { return rig.client.call(kEnqueueFunctionId, enqueue_payload(1, counter++, "00")) == kNotReady; }));
  EXPECT_EQ(ended.load(), 0U) << "corrections are not read";
  EXPECT_EQ(rig.client.call(kGetCorrectionsFunctionId, get_payload(1, 2)), (full_answer{0, packed("10")}));
  control.join();
  EXPECT_TRUE(drained);
}

TEST(ServerDrain, RefusesEachRequestAfterIt) {
  drain_rig rig(unit_for(rotated_model(2)));
  EXPECT_TRUE(rig.server.drain(soon(), soon())) << "nothing is to be read";
  EXPECT_EQ(rig.client.call(kEnqueueFunctionId, enqueue_payload(1, 0, "10")), kNotReady);
  EXPECT_EQ(rig.client.call(kGetCorrectionsFunctionId, get_payload(1, 2)), kNotReady);
  EXPECT_EQ(rig.client.call(kResetFunctionId, reset_payload(1)), kNotReady);
}

TEST(ServerDrain, DoesNotWaitForReadersAfterTheirDeadline) {
  drain_rig rig(unit_for(rotated_model(2)));
  EXPECT_EQ(rig.client.call(kEnqueueFunctionId, enqueue_payload(1, 0, "10")), kOk);
  EXPECT_TRUE(rig.server.drain(rt::steady_clock::now(), soon())) << "all requests are answered";
  EXPECT_TRUE(rig.server.has_unfinished());
  EXPECT_EQ(rig.client.call(kGetCorrectionsFunctionId, get_payload(1, 2)), kNotReady);
}

TEST(ServerDrain, IsFalseIfADecoderWorksAtItsDeadline) {
  rt::shared_word<std::uint32_t> open;
  drain_rig rig(unit_with_gate(open));
  const std::uint32_t shot = rig.client.send(kEnqueueFunctionId, enqueue_payload(1, 0, "1"));
  EXPECT_TRUE(rt::wait_until(soon(), [&] { return rig.server.decoders()[0]->begun() == 1; }));
  const auto now = rt::steady_clock::now();
  EXPECT_FALSE(rig.server.drain(now, now));
  open.store(1);
  EXPECT_EQ(rig.client.answer(shot), kOk) << "it was taken, so it is answered";
}

// The end of a server while requests come, and repeated requests in its queue.

constexpr std::uint64_t kId = 3;

TEST(ServerEndQueue, EachShotIsInTheCorrectionsOrRefused) {
  for (int round = 0; round < 20; ++round) {
    started_server running(one_setup({.id = kId, .queue_length = 8}, unit_for(rotated_model(4))));
    decoding_server &server = running.server;
    requester &client = running.client;
    ASSERT_EQ(client.call(kResetFunctionId, reset_payload(kId)), kOk);
    std::thread ending([&] {
      std::this_thread::sleep_for(std::chrono::microseconds(100 * round));
      server.begin_end();
    });
    std::uint64_t taken = 0;
    for (full_answer answer = kOk; answer == kOk; taken += answer == kOk ? 1 : 0) {
      answer = client.call(kEnqueueFunctionId, enqueue_payload(kId, taken + 1, "1000"));
      ASSERT_TRUE(answer == kOk || answer == kNotReady) << answer.status;
    }
    ending.join();
    EXPECT_EQ(server.has_unfinished(), taken != 0);
    EXPECT_EQ(client.call(kGetCorrectionsFunctionId, get_payload(kId, 4, true)),
              answered(server_status::ok, taken % 2 != 0 ? "1000" : "0000"));
    EXPECT_FALSE(server.has_unfinished());
  }
}

TEST(ServerEndQueue, ShotsThatWereTakenBeforeTheEndAreDecoded) {
  rt::shared_word<std::uint32_t> gate;
  started_server running(one_setup({.id = kId, .queue_length = 8}, unit_with_gate(gate)));
  decoding_server &server = running.server;
  requester &client = running.client;
  const auto first = client.send(kEnqueueFunctionId, enqueue_payload(kId, 1, "1"));
  const auto second = client.send(kEnqueueFunctionId, enqueue_payload(kId, 2, "0")); // waits
  server.begin_end();
  const auto third = client.send(kEnqueueFunctionId, enqueue_payload(kId, 3, "1"));
  gate.store(1);
  EXPECT_EQ(client.answer(first), kOk);
  EXPECT_EQ(client.answer(second), kOk);
  EXPECT_EQ(client.answer(third), kNotReady);
  EXPECT_EQ(client.call(kGetCorrectionsFunctionId, get_payload(kId, 1, true)), answered(server_status::ok, "1"));
}

TEST(ServerEndQueue, AServerIsNotIdleWhileADecoderWithoutAQueueDecodes) {
  rt::shared_word<std::uint32_t> gate;
  decoding_server server(one_setup({.id = kId}, unit_with_gate(gate)));
  requester client(server);
  EXPECT_TRUE(server.idle());
  std::thread dispatcher([&] { EXPECT_EQ(client.call(kEnqueueFunctionId, enqueue_payload(kId, 1, "1")), kOk); });
  EXPECT_TRUE(rt::wait_until(soon(), [&] { return server.decoders()[0]->counts().requests == 1; }));
  server.begin_end();
  EXPECT_FALSE(server.idle()) << "its corrections can be read later";
  gate.store(1);
  dispatcher.join();
  EXPECT_TRUE(server.idle());
  EXPECT_TRUE(server.has_unfinished());
  EXPECT_EQ(client.call(kGetCorrectionsFunctionId, get_payload(kId, 1, true)), answered(server_status::ok, "1"));
  EXPECT_FALSE(server.has_unfinished());
}

} // namespace
} // namespace cudaq::qec::realtime::test
