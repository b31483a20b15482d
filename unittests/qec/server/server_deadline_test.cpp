// SPDX-License-Identifier: Apache-2.0
// A decoder of the server whose shots have no answer: at their deadline, or within the limits of the decoder.
#include "lib/qec/server/server_config.h"
#include "unittests/qec/server/server_stream_support.h"
#include "unittests/qec/server/server_test_support.h"

namespace {

using namespace cudaq::qec::realtime;
using namespace cudaq::qec::realtime::test;

constexpr std::uint64_t kId = 5;

std::unique_ptr<decoding_unit> unit_with(const std::string &name) {
  decoder_result made = make_decoder(name, rotated_model(4));
  if (!made)
    throw std::runtime_error(made.error);
  return std::make_unique<decoding_unit>(std::move(made.instance), sparse_rows{}, 4);
}

full_answer enqueue(decoding_server &server, std::uint64_t counter, const std::string &bits) {
  return call(server, kEnqueueFunctionId, enqueue_payload(kId, counter, bits));
}

TEST(ServerDeadline, IsAnsweredAndTheStreamGoesOn) {
  decoding_server server(one_setup({.id = kId}, unit_with("relay-bp:deadline_us=0.001")));
  EXPECT_EQ(enqueue(server, 0, "1100").status, static_cast<std::int32_t>(server_status::deadline));
  EXPECT_EQ(enqueue(server, 1, "0110").status, static_cast<std::int32_t>(server_status::deadline));
  EXPECT_EQ(call(server, kGetCorrectionsFunctionId, get_payload(kId, 4)), answered(server_status::ok, "0000"))
      << "no solution: nothing was added";
  EXPECT_EQ(call(server, kOneShotFunctionId, packed("1000")).status,
            static_cast<std::int32_t>(decode_status::deadline));
  const decoder_counts counts = server.decoders()[0]->counts();
  EXPECT_EQ(counts.deadlines.missed, 3U);
  EXPECT_EQ(counts.deadlines.met + counts.deadlines.late, 0U);
  EXPECT_EQ(counts.by_status[static_cast<std::size_t>(server_status::deadline)], 3U);
}

TEST(ServerDeadline, ThatIsMetChangesNothing) {
  decoding_server server(one_setup({.id = kId}, unit_with("relay-bp:deadline_us=1000000000")));
  EXPECT_EQ(enqueue(server, 0, "1100"), answered(server_status::ok));
  EXPECT_EQ(call(server, kGetCorrectionsFunctionId, get_payload(kId, 4)), answered(server_status::ok, "1100"));
  EXPECT_EQ(server.decoders()[0]->counts().deadlines.met, 1U);
}

TEST(ServerDeadline, OfADecoderThatIgnoresItIsAnsweredAndCountedAsLate) {
  decoding_server server(one_setup({.id = kId}, unit_with("lookup:deadline_us=0.001")));
  EXPECT_EQ(enqueue(server, 0, "1100"), answered(server_status::deadline));
  EXPECT_EQ(call(server, kGetCorrectionsFunctionId, get_payload(kId, 4)), answered(server_status::ok, "1100"))
      << "a solution was added";
  const full_answer whole = call(server, kOneShotFunctionId, packed("1000"));
  EXPECT_EQ(whole.status, static_cast<std::int32_t>(decode_status::deadline));
  EXPECT_FALSE(whole.result.empty());
  EXPECT_EQ(server.decoders()[0]->counts().deadlines.late, 2U);
}

// A requester may ignore the answers of enqueue: then it sees the lost shot by get_corrections.
TEST(ServerNotConverged, IsAnsweredUntilAReset) {
  decoding_server server(one_setup({.id = kId}, unit_with("lookup:depth=1")));
  EXPECT_EQ(enqueue(server, 1, "1000"), answered(server_status::ok));
  for (int again = 0; again < 2; ++again)
    EXPECT_EQ(call(server, kEnqueueFunctionId, enqueue_payload(kId, 2, "0110"), 7, 70),
              answered(server_status::not_converged));
  EXPECT_EQ(enqueue(server, 3, "0001"), answered(server_status::not_converged)) << "it latches";
  EXPECT_EQ(call(server, kGetCorrectionsFunctionId, get_payload(kId, 4)), answered(server_status::not_converged));
  EXPECT_EQ(call(server, kResetFunctionId, reset_payload(kId)), answered(server_status::ok));
  EXPECT_EQ(enqueue(server, 1, "0001"), answered(server_status::ok));
  EXPECT_EQ(call(server, kOneShotFunctionId, packed("0110")).status,
            static_cast<std::int32_t>(decode_status::not_converged));
  EXPECT_EQ(call(server, kGetCorrectionsFunctionId, get_payload(kId, 4)), answered(server_status::ok, "0001"))
      << "qec_decode does not latch";
  const decoder_counts counts = server.decoders()[0]->counts();
  EXPECT_EQ(counts.shots, 2U) << "those that were decoded, of both functions";
  EXPECT_EQ(counts.by_status[static_cast<std::size_t>(server_status::not_converged)], 5U);
  EXPECT_EQ(counts.by_status[static_cast<std::size_t>(server_status::internal)], 0U);
  EXPECT_EQ(server.decoders()[0]->failures().last, decode_status_text(decode_status::not_converged));
}

TEST(ServerNotConverged, OfAWindowBreaksItsStream) {
  decoding_server server(one_setup(
      {.id = kId}, stream_unit_with(rotated_stream_model(4), {.decoder = "lookup:depth=1", .commit = 2, .buffer = 1})));
  EXPECT_EQ(enqueue(server, 1, "110011001100"), answered(server_status::not_converged));
  EXPECT_EQ(enqueue(server, 2, "0000"), answered(server_status::not_converged)) << "it latches";
  EXPECT_EQ(call(server, kGetCommittedFunctionId, committed_payload(kId, 4)), answered(server_status::not_converged));
  EXPECT_EQ(call(server, kResetFunctionId, reset_payload(kId)), answered(server_status::ok));
  EXPECT_EQ(enqueue(server, 1, "0000"), answered(server_status::ok));
}

#ifdef CUDAQ_QEC_SERVER_HAS_YAML
TEST(ServerDeadline, IsAFieldOfADecoder) {
  const auto config = read_server_config("decoders:\n  - id: 5\n    type: relay-bp\n    deadline_us: 1\n"
                                         "    decoder_custom_args: {num_sets: 3}\n    queue_length: 0\n"
                                         "    dem: \"error(0.1) D0 L0\"\n");
  ASSERT_TRUE(config.ok()) << config.text();
  auto setups = build_decoders(*config, ".");
  ASSERT_TRUE(setups.ok()) << setups.text();
  decoding_server server(std::move(*setups));
  for (std::uint64_t counter = 0; counter < 3; ++counter)
    static_cast<void>(enqueue(server, counter, "1"));
  const deadline_counts counts = server.decoders()[0]->counts().deadlines;
  EXPECT_EQ(counts.met + counts.missed, 3U) << "each decode had a deadline";
  EXPECT_FALSE(read_server_config("decoders: [{id: 1, type: lookup, dem: \"\", deadline_us: -1}]").ok());
}
#endif

} // namespace
