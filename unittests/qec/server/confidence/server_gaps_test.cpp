// SPDX-License-Identifier: Apache-2.0
// Answers with gaps: docs/transport/server_wire.md, "Gaps".
#include "unittests/qec/server/confidence/server_gaps_support.h"
#include "unittests/qec/server/server_stream_support.h"

#include <cmath>

namespace {

using namespace cudaq::qec::realtime;
using namespace cudaq::qec::realtime::test;

constexpr std::uint64_t kId = 8;
constexpr std::size_t kAnswerBytes = 2 + kGapObservables * 4;

decoding_server gaps_server() { return decoding_server(one_setup({.id = kId}, gaps_unit())); }

bytes describe_payload(std::uint64_t id, std::uint64_t form) {
  bytes payload;
  append_number(payload, id);
  append_number(payload, form);
  return payload;
}

/// Serves a request whose result has so much room.
full_answer call_with_room(decoding_server &server, std::size_t room, std::uint32_t function, const bytes &payload) {
  bytes result(room + 1, 0xEE);
  server_answer now;
  EXPECT_TRUE(server.submit(function, payload, std::span(result).first(room), {}, now, 0));
  EXPECT_EQ(result.back(), 0xEE);
  result.resize(now.bytes);
  return {now.status, result};
}

TEST(ServerGaps, AreInTheLongestDescription) {
  decoding_server with = gaps_server();
  decoding_server without(one_setup({.id = kId}, unit_for(rotated_model(2))));
  decoding_server stream(one_setup({.id = kId}, stream_unit_for(rotated_stream_model(3))));
  EXPECT_EQ(read_gap_bytes(call(with, kDescribeFunctionId, describe_payload(kId, 4)).result), 4u);
  EXPECT_EQ(read_gap_bytes(call(without, kDescribeFunctionId, describe_payload(kId, 4)).result), 0u);
  EXPECT_EQ(read_gap_bytes(call(stream, kDescribeFunctionId, describe_payload(kId, 4)).result), 0u);
  const bytes shorter = call(with, kDescribeFunctionId, describe_payload(kId, 3)).result;
  bytes longest = call(with, kDescribeFunctionId, describe_payload(kId, 4)).result;
  EXPECT_EQ(read_gap_bytes(shorter), std::nullopt);
  EXPECT_EQ(read_model_facts(longest), read_model_facts(shorter));
  EXPECT_EQ(read_server_facts(longest), read_server_facts(shorter));
  EXPECT_EQ(read_readout_facts(longest), read_readout_facts(shorter));
  longest.resize(kReadoutDescriptionBytes);
  EXPECT_EQ(longest, shorter);
  EXPECT_EQ(call_with_room(with, kGapsDescriptionBytes - 1, kDescribeFunctionId, describe_payload(kId, 4)).status,
            static_cast<std::int32_t>(server_status::bad_request));
}

TEST(ServerGaps, AreNotInAnswersOfADecoderWithoutTheSetting) {
  decoding_server server(one_setup({.id = kId}, unit_for(rotated_model(2), {}, 0, "pymatching")));
  EXPECT_EQ(call(server, kOneShotFunctionId, packed("10")), answered(server_status::ok, "10"));
  ASSERT_EQ(call(server, kEnqueueFunctionId, enqueue_payload(kId, 1, "10")).status, 0);
  EXPECT_EQ(call(server, kGetCorrectionsFunctionId, get_payload(kId, 2)), answered(server_status::ok, "10"));
}

// The oracle has no server: decodes of the shots, one by one.
TEST(ServerGaps, OfASumAreTheLeastOfItsShots) {
  const std::string model = "error(0.1) D0 L0\nerror(0.05) D0 D1 L1\nerror(0.01) D1 L1\nerror(0.2) D1 D2\n"
                            "error(0.03) D2\n";
  for (const char *name : {"pymatching:confidence=1", "bp-osd:confidence=1"}) {
    decoding_server server(one_setup({.id = kId}, unit_for(model, {}, 0, name)));
    const auto oracle = make_decoder(name, model).instance;
    std::vector<float> least(2, std::numeric_limits<float>::infinity());
    unsigned sum = 0;
    for (unsigned shot = 8; shot-- > 0;) {
      const std::uint8_t events = static_cast<std::uint8_t>(shot);
      std::uint8_t observables = 0;
      std::vector<double> gaps(2);
      decode_details details{.gaps = gaps};
      ASSERT_EQ(oracle->decode_bits({&events, 1}, {&observables, 1}, details), decode_status::ok);
      sum ^= observables;
      for (std::size_t k = 0; k < 2; ++k)
        least[k] = std::min(least[k], static_cast<float>(gaps[k]));
      const full_answer one = call(server, kOneShotFunctionId, {events});
      EXPECT_EQ(one.result.front(), observables);
      EXPECT_EQ(gaps_of(one, 2), std::vector<float>(gaps.begin(), gaps.end())) << name << ", events " << shot;
      ASSERT_TRUE(std::isfinite(gaps[0]) && gaps[0] > 0);
      std::string bits;
      for (unsigned d = 0; d < 3; ++d)
        bits += (shot >> d & 1) != 0 ? '1' : '0';
      ASSERT_EQ(call(server, kEnqueueFunctionId, enqueue_payload(kId, 8 - shot, bits)).status, 0);
      const full_answer all = call(server, kGetCorrectionsFunctionId, get_payload(kId, 2));
      EXPECT_EQ(all.result.front(), sum);
      EXPECT_EQ(gaps_of(all, 2), least);
    }
  }
}

TEST(ServerGaps, AreNotKnownOfASumWithAShotThatReachedItsDeadline) {
  decoding_server server = gaps_server();
  ASSERT_EQ(call(server, kEnqueueFunctionId, enqueue_payload(kId, 1, "11")).status,
            static_cast<std::int32_t>(server_status::deadline));
  ASSERT_EQ(call(server, kEnqueueFunctionId, enqueue_payload(kId, 2, "10")).status, 0);
  const auto gaps = gaps_of(call(server, kGetCorrectionsFunctionId, get_payload(kId, 9, true)), 9);
  EXPECT_EQ(std::ranges::count_if(gaps, [](float gap) { return std::isnan(gap); }), 9);
  ASSERT_EQ(call(server, kEnqueueFunctionId, enqueue_payload(kId, 3, "10")).status, 0);
  EXPECT_EQ(gaps_of(call(server, kGetCorrectionsFunctionId, get_payload(kId, 2)), 2), (std::vector<float>{1.5, 2.5}));
  ASSERT_EQ(call(server, kResetFunctionId, reset_payload(kId)).status, 0);
  EXPECT_EQ(gaps_of(call(server, kGetCorrectionsFunctionId, get_payload(kId, 1)), 1),
            (std::vector<float>{std::numeric_limits<float>::infinity()}));
}

TEST(ServerGaps, AreRefusedWhereTheSlotHasNoRoomForThem) {
  decoding_server server = gaps_server();
  ASSERT_EQ(call(server, kResetFunctionId, reset_payload(kId)).status, 0);
  const auto bad_request = static_cast<std::int32_t>(server_status::bad_request);
  const auto too_small = static_cast<std::int32_t>(decode_status::buffer_too_small);
  for (const std::size_t room : {std::size_t{0}, std::size_t{2}, kAnswerBytes - 1}) {
    EXPECT_EQ(call_with_room(server, room, kGetCorrectionsFunctionId, get_payload(kId, 9, true)),
              (full_answer{bad_request, {}}));
    EXPECT_EQ(call_with_room(server, room, kOneShotFunctionId, packed("10")), (full_answer{too_small, {}}));
  }
  EXPECT_EQ(call_with_room(server, kAnswerBytes, kGetCorrectionsFunctionId, get_payload(kId, 9)).result.size(),
            kAnswerBytes);
  EXPECT_EQ(call_with_room(server, kAnswerBytes, kOneShotFunctionId, packed("10")).result.size(), kAnswerBytes);
  EXPECT_EQ(call(server, kGetCorrectionsFunctionId, get_payload(kId, 10)).status, bad_request);
}

// The answers that are remembered have their gaps, too, and room for them.
TEST(ServerGaps, AreThoseOfTheFirstAnswerToARepeatedRequest) {
  constexpr std::uint32_t kReads = 70; // more than are remembered
  decoding_server server = gaps_server();
  std::vector<full_answer> first;
  for (std::uint32_t k = 0; k < kReads; ++k) {
    ASSERT_EQ(call(server, kEnqueueFunctionId, enqueue_payload(kId, k, k % 2 == 0 ? "10" : "00")).status, 0);
    first.push_back(call(server, kGetCorrectionsFunctionId, get_payload(kId, 9, true), k + 1, 1000 + k));
    EXPECT_EQ(gaps_of(first.back(), 9).at(1), k % 2 == 0 ? 2.5F : 8);
  }
  for (std::uint32_t k = kReads - 20; k < kReads; ++k)
    EXPECT_EQ(call(server, kGetCorrectionsFunctionId, get_payload(kId, 9, true), k + 1, 1000 + k), first[k]) << k;
  EXPECT_EQ(server.decoders().front()->counts().repeated, 20u);
}

TEST(ServerGaps, StayAsTheyAreWhenTheModelIsExchanged) {
  decoding_server server = gaps_server();
  std::vector<std::unique_ptr<decoding_unit>> units(1);
  units[0] = std::make_unique<decoding_unit>(make_decoder("lookup", "error(0.1) D0 L8\nerror(0.1) D1\n").instance,
                                             sparse_rows{}, 2);
  const reload_result result = server.exchange(std::move(units), std::chrono::steady_clock::now());
  EXPECT_EQ(result.outcome, reload_outcome::rejected);
  EXPECT_EQ(result.reason, "the new model has 2 bits per shot, 2 detectors and 9 observables, the running one has 2 "
                           "bits per shot, 2 detectors and 9 observables with gaps; these are fixed");
}

} // namespace
