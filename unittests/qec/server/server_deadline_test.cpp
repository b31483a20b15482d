// SPDX-License-Identifier: Apache-2.0
// A decoder of the server whose decodes reach their deadline.
#include "lib/qec/server/server_config.h"
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
