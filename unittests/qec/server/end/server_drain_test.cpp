// SPDX-License-Identifier: Apache-2.0
// The end of a server without a loss, as a program that embeds it ends it.
#include "unittests/qec/server/server_threads_support.h"

#include <thread>

namespace {

using namespace cudaq::qec::realtime;
using namespace cudaq::qec::realtime::test;

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

} // namespace
