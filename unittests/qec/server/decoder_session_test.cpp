// SPDX-License-Identifier: Apache-2.0
// One decoder of a server: its requests, and shots that have no answer.
#include "lib/qec/server/server_config.h"
#include "unittests/qec/server/readout/server_readout_support.h"
#include "unittests/qec/server/server_stream_support.h"
#include "unittests/qec/server/server_test_support.h"

#include <random>

namespace cudaq::qec::realtime::test {
namespace {

constexpr std::uint64_t kId = 5;

std::vector<decoder_setup> setups(std::unique_ptr<decoding_unit> unit, bool sequence = true) {
  return one_setup({.id = kId, .sequence = sequence}, std::move(unit));
}

full_answer enqueue(decoding_server &server, std::uint64_t counter, const std::string &bits) {
  return call(server, kEnqueueFunctionId, enqueue_payload(kId, counter, bits));
}
full_answer corrections(decoding_server &server, std::uint64_t wanted, bool clear = false) {
  return call(server, kGetCorrectionsFunctionId, get_payload(kId, wanted, clear));
}
full_answer reset(decoding_server &server) { return call(server, kResetFunctionId, reset_payload(kId)); }

TEST(DecoderSession, AppendsBitsAtEveryOffset) {
  std::mt19937 random(1);
  decoding_server server(setups(unit_for(rotated_model(16)), false));
  for (int repeat = 0; repeat < 200; ++repeat) {
    std::string shot;
    for (int k = 0; k < 16; ++k)
      shot += random() % 2 != 0 ? '1' : '0';
    for (std::size_t at = 0; at < shot.size();) {
      const std::size_t n = std::min<std::size_t>(random() % 12, shot.size() - at);
      ASSERT_EQ(enqueue(server, 0, shot.substr(at, n)), answered(server_status::ok));
      at += n;
    }
    ASSERT_EQ(corrections(server, 16, true), answered(server_status::ok, shot));
  }
}

TEST(DecoderSession, IgnoresUnusedBitsOfTheLastByte) {
  decoding_server server(setups(unit_for(rotated_model(4))));
  bytes payload = enqueue_payload(kId, 0, "0100");
  payload.back() |= 0xF0;
  EXPECT_EQ(call(server, kEnqueueFunctionId, payload), answered(server_status::ok));
  EXPECT_EQ(corrections(server, 4), answered(server_status::ok, "0100"));
}

// A controller whose frames are whole words of 8 bytes sends 40 bytes for 33, and 24 for 17.
TEST(DecoderSession, IgnoresBytesAfterTheFieldsOfARequest) {
  decoding_server server(setups(unit_for(rotated_model(4))));
  const auto padded = [](bytes payload) {
    payload.resize((payload.size() + 7) / 8 * 8 + 8, 0xA5);
    return payload;
  };
  ASSERT_EQ(call(server, kEnqueueFunctionId, padded(enqueue_payload(kId, 0, "0100"))), answered(server_status::ok));
  EXPECT_EQ(call(server, kGetCorrectionsFunctionId, padded(get_payload(kId, 4, false))),
            answered(server_status::ok, "0100"));
  EXPECT_EQ(call(server, kResetFunctionId, padded(reset_payload(kId))), answered(server_status::ok));
  EXPECT_EQ(server.decoders()[0]->counts().padded, 3u);
  EXPECT_EQ(corrections(server, 4), answered(server_status::ok, "0000"));
  bytes refused = padded(get_payload(kId, 4, false));
  refused[sizeof(cudaq_qec_get_corrections_t) - 1] = 2; // clear
  EXPECT_EQ(call(server, kGetCorrectionsFunctionId, refused), answered(server_status::bad_request));
  EXPECT_EQ(server.decoders()[0]->counts().padded, 3u) << "only requests with further bytes, and none that is refused";
}

TEST(DecoderSession, AddsTheCorrectionsOfAllShots) {
  decoding_server server(setups(unit_for(rotated_model(4))));
  for (std::uint64_t counter = 0; counter < 3; ++counter)
    ASSERT_EQ(enqueue(server, counter, counter == 1 ? "1100" : "0110"), answered(server_status::ok));
  EXPECT_EQ(corrections(server, 4), answered(server_status::ok, "1100"));
  EXPECT_EQ(corrections(server, 1), answered(server_status::ok, "1"));
  EXPECT_EQ(reset(server), answered(server_status::ok));
  EXPECT_EQ(corrections(server, 4), answered(server_status::ok, "0000"));
  EXPECT_EQ(server.decoders()[0]->counts().shots, 3u);
}

TEST(DecoderSession, MakesDetectionEventsFromMeasurements) {
  // Detector 0 = m0 ^ m2, detector 1 = m1, detector 2 = m0 ^ m1 ^ m3; measurement 4 is in none.
  sparse_rows rows;
  rows.columns = {0, 2, 1, 0, 1, 3};
  rows.first = {0, 2, 3, 6};
  decoding_server server(setups(unit_for(rotated_model(3), rows, 5)));
  ASSERT_EQ(enqueue(server, 0, "10011"), answered(server_status::ok));
  EXPECT_EQ(corrections(server, 3, true), answered(server_status::ok, "100"));
  ASSERT_EQ(enqueue(server, 1, "01000"), answered(server_status::ok));
  EXPECT_EQ(corrections(server, 3, true), answered(server_status::ok, "011"));
}

TEST(DecoderSession, DetectsLostAndRepeatedRequests) {
  for (const auto &[counter, status] : {std::pair<std::uint64_t, server_status>{3, server_status::syndromes_dropped},
                                        {1, server_status::bad_request},
                                        {0, server_status::bad_request}}) {
    decoding_server server(setups(unit_for(rotated_model(4))));
    ASSERT_EQ(enqueue(server, 1, "01"), answered(server_status::ok));
    EXPECT_EQ(enqueue(server, counter, "01"), answered(status)) << counter;
    EXPECT_EQ(enqueue(server, 2, "01"), answered(status)) << "latched";
    EXPECT_EQ(corrections(server, 4), answered(status)) << "latched";
    EXPECT_EQ(reset(server), answered(server_status::ok));
    EXPECT_EQ(enqueue(server, 70, "0100"), answered(server_status::ok)) << "begins anew";
    EXPECT_EQ(corrections(server, 4), answered(server_status::ok, "0100"));
  }
}

TEST(DecoderSession, CountsAcrossTheEndOfTheCounter) {
  decoding_server server(setups(unit_for(rotated_model(2))));
  ASSERT_EQ(reset(server), answered(server_status::ok));
  EXPECT_EQ(enqueue(server, ~std::uint64_t{0}, "01"), answered(server_status::ok));
  EXPECT_EQ(enqueue(server, 0, "01"), answered(server_status::ok));
}

TEST(DecoderSession, IgnoresCountersOnRequest) {
  decoding_server server(setups(unit_for(rotated_model(2)), false));
  for (const std::uint64_t counter : {7U, 7U, 3U, 100U})
    EXPECT_EQ(enqueue(server, counter, "01"), answered(server_status::ok));
}

TEST(DecoderSession, RefusesBitsAfterTheEndOfAShot) {
  decoding_server server(setups(unit_for(rotated_model(4))));
  ASSERT_EQ(enqueue(server, 0, "011"), answered(server_status::ok));
  EXPECT_EQ(enqueue(server, 1, "01"), answered(server_status::bad_request));
  EXPECT_EQ(corrections(server, 4), answered(server_status::bad_request)) << "latched: these bits are lost";
}

TEST(DecoderSession, LatchesARequestThatCannotBeRead) {
  decoding_server server(setups(unit_for(rotated_model(4))));
  bytes short_payload = enqueue_payload(kId, 0, "0110");
  short_payload.pop_back();
  EXPECT_EQ(call(server, kEnqueueFunctionId, short_payload), answered(server_status::bad_request));
  EXPECT_EQ(enqueue(server, 0, "0110"), answered(server_status::bad_request));
}

TEST(DecoderSession, KeepsTheFirstReasonUntilAReset) {
  decoding_server server(setups(unit_for(rotated_model(4))));
  ASSERT_EQ(enqueue(server, 0, "01"), answered(server_status::ok));
  EXPECT_EQ(enqueue(server, 2, "10"), answered(server_status::syndromes_dropped)) << "counter 1 is lost";
  bytes short_payload = enqueue_payload(kId, 3, "0110");
  short_payload.pop_back();
  EXPECT_EQ(call(server, kEnqueueFunctionId, short_payload), answered(server_status::bad_request));
  EXPECT_EQ(corrections(server, 4), answered(server_status::syndromes_dropped));
}

TEST(DecoderSession, GoesOnAfterABadQuestion) {
  decoding_server server(setups(unit_for(rotated_model(4))));
  ASSERT_EQ(enqueue(server, 0, "0110"), answered(server_status::ok));
  EXPECT_EQ(corrections(server, 5), answered(server_status::bad_request));
  EXPECT_EQ(corrections(server, 0), answered(server_status::bad_request));
  EXPECT_EQ(corrections(server, ~std::uint64_t{0}), answered(server_status::bad_request));
  EXPECT_EQ(corrections(server, 4), answered(server_status::ok, "0110")) << "no syndrome was lost";
}

TEST(DecoderSession, AnswersInternalWhenAShotHasNoSolution) {
  // Detector 1 is flipped by no error.
  decoding_server server(setups(unit_for("error(0.1) D0 L0\ndetector D1\n")));
  EXPECT_EQ(enqueue(server, 0, "01"), answered(server_status::internal));
  EXPECT_EQ(enqueue(server, 1, "10"), answered(server_status::internal)) << "latched";
  EXPECT_EQ(reset(server), answered(server_status::ok));
  EXPECT_EQ(enqueue(server, 2, "10"), answered(server_status::ok));
  EXPECT_EQ(corrections(server, 1), answered(server_status::ok, "1"));
}

TEST(DecoderSession, DecodesSingleShotsBesideTheStream) {
  decoding_server server(setups(unit_for(rotated_model(4))));
  ASSERT_EQ(enqueue(server, 0, "11"), answered(server_status::ok));
  EXPECT_EQ(call(server, kOneShotFunctionId, packed("0011")), answered(server_status::ok, "0011"));
  EXPECT_EQ(call(server, kOneShotFunctionId, bytes{0x10}).status, 1) << "decode_status::bad_detector_index";
  ASSERT_EQ(enqueue(server, 1, "00"), answered(server_status::ok));
  EXPECT_EQ(corrections(server, 4), answered(server_status::ok, "1100"));
}

TEST(DecoderSession, SaysWhichSizeASingleShotShouldHave) {
  decoding_server server(setups(unit_for(rotated_model(9))));
  const auto last = [&] { return server.decoders()[0]->failures().last; };
  EXPECT_EQ(call(server, kOneShotFunctionId, bytes{0}).status, 4) << "decode_status::buffer_too_small";
  EXPECT_EQ(last(), "the shot has 1 byte, the model needs 2");
  EXPECT_EQ(call(server, kOneShotFunctionId, bytes{0, 0, 0}).status, 1) << "decode_status::bad_detector_index";
  EXPECT_EQ(last(), "the shot has 3 bytes, the model needs 2");
  bytes small(1);
  server_answer now;
  ASSERT_TRUE(server.submit(kOneShotFunctionId, packed("000000000"), small, {}, now));
  EXPECT_EQ(now.status, 4) << "decode_status::buffer_too_small";
  EXPECT_EQ(last(), "the slot's room for the answer has 1 byte, the model needs 2");
  EXPECT_EQ(server.decoders()[0]->failures().count, 3U);
}

TEST(DecoderSession, DescribesTheModelOfADecoderWithoutAnEffectOnItsStream) {
  // Two measurements for each of four detectors.
  sparse_rows rows;
  for (std::uint64_t d = 0; d < 4; ++d) {
    rows.columns.insert(rows.columns.end(), {2 * d, 2 * d + 1});
    rows.first.push_back(rows.columns.size());
  }
  decoding_server server(setups(std::make_unique<decoding_unit>(
      make_decoder("lookup", rotated_model(4)).instance, std::move(rows), 8, std::uint64_t{0x123456789abcdef0})));
  ASSERT_EQ(enqueue(server, 0, "1000"), answered(server_status::ok));
  for (const bytes &payload : {bytes{}, reset_payload(kId)}) {
    const full_answer answer = call(server, kDescribeFunctionId, payload);
    EXPECT_EQ(answer.status, 0);
    const auto facts = read_model_facts(answer.result);
    ASSERT_TRUE(facts.has_value());
    EXPECT_EQ(facts->detectors, 4u);
    EXPECT_EQ(facts->bits_per_shot, 8u);
    EXPECT_EQ(facts->observables, 4u);
    EXPECT_EQ(facts->digest, 0x123456789abcdef0u);
  }
  EXPECT_EQ(call(server, kDescribeFunctionId, reset_payload(kId + 1)), answered(server_status::invalid_decoder));
  EXPECT_EQ(call(server, kDescribeFunctionId, bytes(7)), answered(server_status::bad_request));
  bytes small(kModelFactsBytes - 1);
  server_answer now;
  ASSERT_TRUE(server.submit(kDescribeFunctionId, {}, small, {}, now));
  EXPECT_EQ(now.status, static_cast<std::int32_t>(server_status::bad_request));
  ASSERT_EQ(enqueue(server, 1, "0000"), answered(server_status::ok));
  EXPECT_EQ(corrections(server, 4), answered(server_status::ok, "1000"));
}

TEST(DecoderSession, RefusesAnswersThatDoNotFit) {
  decoding_server server(setups(unit_for(rotated_model(9))));
  bytes small(1);
  server_answer now;
  ASSERT_TRUE(server.submit(kGetCorrectionsFunctionId, get_payload(kId, 9), small, {}, now));
  EXPECT_EQ(now.status, static_cast<std::int32_t>(server_status::bad_request));
}

// A decoder of the server whose shots have no answer: at their deadline, or within the limits of the decoder.

std::unique_ptr<decoding_unit> unit_with(const std::string &name) {
  decoder_result made = make_decoder(name, rotated_model(4));
  if (!made)
    throw std::runtime_error(made.error);
  return std::make_unique<decoding_unit>(std::move(made.instance), sparse_rows{}, 4);
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

TEST(ServerNotConverged, LeavesTheReasonOfAnotherFailureInPlace) {
  decoding_server server(one_setup({.id = kId}, unit_with("lookup:depth=1")));
  call(server, kOneShotFunctionId, packed("0110"));
  EXPECT_EQ(server.decoders()[0]->failures().last, decode_status_text(decode_status::not_converged));
  call(server, kEnqueueReadoutFunctionId, readout_payload(kId, 0, {"1000", {1}, {}}, soft_kind::u8));
  const std::string other = server.decoders()[0]->failures().last;
  EXPECT_EQ(other.find("a request with 1 soft values (u8)"), 0U) << other;
  call(server, kOneShotFunctionId, packed("0110"));
  const decode_failures failures = server.decoders()[0]->failures();
  EXPECT_EQ(failures.last, other);
  EXPECT_EQ(failures.count, 3U);
  EXPECT_EQ(failures.not_converged, 2U);
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
} // namespace cudaq::qec::realtime::test
