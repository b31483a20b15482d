// SPDX-License-Identifier: Apache-2.0
// A server that takes the place of one that has ended, and one that ends.
#include "unittests/qec/server/server_stream_support.h"

namespace {

using namespace cudaq::qec::realtime;
using namespace cudaq::qec::realtime::test;

constexpr std::uint64_t kId = 5;

struct served {
  explicit served(bool sequence = true, std::unique_ptr<decoding_unit> unit = unit_for(rotated_model(4)))
      : server(one_setup({.id = kId, .sequence = sequence}, std::move(unit))) {}
  full_answer enqueue(std::uint64_t counter, const std::string &bits) {
    return call(server, kEnqueueFunctionId, enqueue_payload(kId, counter, bits));
  }
  full_answer corrections() { return call(server, kGetCorrectionsFunctionId, get_payload(kId, 4, true)); }
  full_answer reset() { return call(server, kResetFunctionId, reset_payload(kId)); }
  std::optional<server_facts> facts() {
    bytes payload = reset_payload(kId);
    append_number(payload, 1);
    return read_server_facts(call(server, kDescribeFunctionId, payload).result);
  }
  decoding_server server;
};

const full_answer kOk = answered(server_status::ok), kDropped = answered(server_status::syndromes_dropped);

TEST(ServerRestart, DoesNotJoinTheHalvesOfTwoShots) {
  auto before = std::make_unique<served>();
  ASSERT_EQ(before->reset(), kOk);
  ASSERT_EQ(before->enqueue(6, "01"), kOk);
  before.reset();
  served after;
  EXPECT_EQ(after.enqueue(7, "10"), kDropped) << "its first half is missing";
  EXPECT_EQ(after.enqueue(8, "01"), kDropped) << "latched";
  EXPECT_EQ(after.corrections(), kDropped);
  EXPECT_EQ(after.reset(), kOk);
  EXPECT_EQ(after.enqueue(9, "0110"), kOk) << "after a reset any number begins";
  EXPECT_EQ(after.corrections(), answered(server_status::ok, "0110"));
}

TEST(ServerRestart, DoesNotLoseAWholeShotSilently) {
  served after; // the requester has sent a shot to the server before, and reads its correction here
  EXPECT_EQ(after.corrections(), kDropped);
  EXPECT_EQ(after.enqueue(2, "0110"), kDropped);
}

TEST(ServerRestart, LetsARequesterBeginWithoutAReset) {
  for (const std::uint64_t first : {0U, 1U}) {
    served s;
    EXPECT_EQ(s.enqueue(first, "01"), kOk);
    EXPECT_EQ(s.enqueue(first + 1, "10"), kOk);
    EXPECT_EQ(s.corrections(), answered(server_status::ok, "0110"));
  }
  served any(false);
  EXPECT_EQ(any.enqueue(17, "0110"), kOk) << "counters are ignored";
}

TEST(ServerRestart, RefusesRoundsOfAStreamThatBeganBefore) {
  served s(true, stream_unit_for(rotated_stream_model(4)));
  EXPECT_EQ(s.enqueue(12, "0110"), kDropped);
  EXPECT_EQ(call(s.server, kGetCommittedFunctionId, committed_payload(kId, 4)), kDropped);
}

TEST(ServerRestart, IsSeenInTheBootId) {
  served first, second;
  ASSERT_TRUE(first.facts() && second.facts());
  EXPECT_NE(first.facts()->boot_id, 0u);
  EXPECT_EQ(first.facts()->boot_id, first.facts()->boot_id);
  EXPECT_NE(first.facts()->boot_id, second.facts()->boot_id);
  bytes payload = reset_payload(kId);
  append_number(payload, 1);
  const bytes longer = call(first.server, kDescribeFunctionId, payload).result;
  const bytes shorter = call(first.server, kDescribeFunctionId, reset_payload(kId)).result;
  EXPECT_EQ(shorter.size(), 32u) << "as before";
  EXPECT_EQ(bytes(longer.begin(), longer.begin() + 32), shorter);
  payload[8] = 5; // no form of the answer
  EXPECT_EQ(call(first.server, kDescribeFunctionId, payload), answered(server_status::bad_request));
  payload[8] = 1;
  payload[0] = kId + 1;
  EXPECT_EQ(call(first.server, kDescribeFunctionId, payload), answered(server_status::invalid_decoder));
}

TEST(ServerEnd, GivesOutCorrectionsAndLetsShotsEndButBeginsNone) {
  served s;
  ASSERT_EQ(s.enqueue(0, "0110"), kOk);
  ASSERT_EQ(s.enqueue(1, "10"), kOk);
  EXPECT_TRUE(s.server.has_unfinished());
  EXPECT_FALSE(s.facts()->ends);
  s.server.begin_end();
  EXPECT_TRUE(s.facts()->ends);
  EXPECT_EQ(s.corrections(), answered(server_status::ok, "0110"));
  EXPECT_TRUE(s.server.has_unfinished()) << "half a shot";
  EXPECT_EQ(s.enqueue(2, "00"), kOk);
  EXPECT_EQ(s.enqueue(3, "1111"), answered(server_status::not_ready)) << "a new shot";
  EXPECT_EQ(s.corrections(), answered(server_status::ok, "1000")) << "the refusal has not latched";
  EXPECT_FALSE(s.server.has_unfinished());
  EXPECT_EQ(call(s.server, kOneShotFunctionId, packed("0110")).status, -4);
  s.server.close();
  EXPECT_EQ(s.corrections(), answered(server_status::not_ready));
  EXPECT_TRUE(s.facts()->ends);
  EXPECT_EQ(s.server.strays(), 0U) << "each request has named a decoder";
}

TEST(ServerEnd, GivesOutTheFinalRoundsOfAStreamButTakesNone) {
  served s(true, stream_unit_for(rotated_stream_model(4)));
  ASSERT_EQ(s.enqueue(0, "100001000010"), kOk);
  EXPECT_TRUE(s.server.has_unfinished());
  s.server.begin_end();
  EXPECT_EQ(s.enqueue(1, "0001"), answered(server_status::not_ready));
  EXPECT_EQ(call(s.server, kGetCommittedFunctionId, committed_payload(kId, 4)), committed(2, 3, "1100"));
  EXPECT_FALSE(s.server.has_unfinished());
}

TEST(ServerEnd, WaitsForNoDecoderWithoutCorrections) {
  served s;
  EXPECT_FALSE(s.server.has_unfinished());
  ASSERT_EQ(s.enqueue(0, "01"), kOk);
  EXPECT_TRUE(s.server.has_unfinished());
  ASSERT_EQ(s.enqueue(5, "01"), kDropped);
  EXPECT_FALSE(s.server.has_unfinished()) << "nothing can be read any more";
}

} // namespace
