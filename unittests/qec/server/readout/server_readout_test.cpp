// SPDX-License-Identifier: Apache-2.0
// Requests with soft values and flags of leakage.
#include "unittests/qec/server/readout/server_readout_support.h"
#include "unittests/qec/server/server_stream_support.h"

#include <limits>
#include <random>

namespace {

using namespace cudaq::qec::realtime;
using namespace cudaq::qec::realtime::test;

constexpr std::uint64_t kId = 6;

const readout_shot kSure{"10", {12, 12, 3}, {0, 0, 0, 0, 0}}, kUnsure{"10", {3, 7, 8}, {0, 0, 0, 0, 0}};

decoding_server readout_server() { return decoding_server(one_setup({.id = kId}, readout_unit())); }

std::string last_failure(decoding_server &server) { return server.decoders().front()->failures().last; }

TEST(ServerReadout, DecodesAShotWithItsValuesAndFlags) {
  const struct {
    readout_shot shot;
    const char *answer;
  } cases[] = {
      {kSure, "1"},
      {kUnsure, "0"},
      {{"10", {7, 7, 12}, {0, 0, 0, 0, 0}}, "1"}, // one of the two is not enough
      {{"10", {7, 12, 7}, {0, 0, 0, 0, 0}}, "1"},
      {{"10", {12, 7, 12}, {0, 0, 0, 0, 2}}, "0"},
      {{"10", {12, 7, 12}, {2, 2, 2, 2, 1}}, "1"},
      {{"00", {7, 7, 7}, {2, 2, 2, 2, 2}}, "0"},
  };
  decoding_server server = readout_server();
  std::uint64_t counter = 0;
  for (const auto &[shot, answer] : cases)
    for (const soft_kind kind : kAllKinds) {
      EXPECT_EQ(call(server, kOneShotFunctionId, one_shot_payload(shot, kind)), answered(server_status::ok, answer))
          << static_cast<unsigned>(kind);
      EXPECT_EQ(call(server, kOneShotReadoutFunctionId, readout_payload(kId, 0, shot, kind)),
                answered(server_status::ok, answer));
      EXPECT_EQ(call(server, kEnqueueReadoutFunctionId, readout_payload(kId, counter++, shot, kind)),
                answered(server_status::ok));
      EXPECT_EQ(call(server, kGetCorrectionsFunctionId, get_payload(kId, 1, true)),
                answered(server_status::ok, answer));
    }
}

/// A chain of detectors with two measurements between neighbours, and flags.
std::string chain_model(unsigned n) {
  std::string text = "error(0.03) D0 L0\n";
  for (unsigned k = 0; k + 1 < n; ++k)
    text += "error(0.05) D" + std::to_string(k) + " D" + std::to_string(k + 1) + "\n";
  return text + "error(0.04) D" + std::to_string(n - 1) + "\n";
}

std::string chain_lines(unsigned n) {
  std::string text = "measurements " + std::to_string(n) + "\nflags 7\ngaussian 0 12 3 2 0.5\n";
  for (unsigned k = 1; k < n; ++k)
    text += "misread " + std::to_string(k) + " 0.01 " + std::to_string(k) + " 0\n";
  for (unsigned flag = 0; flag < 7; ++flag)
    text += "flag " + std::to_string(flag) + " 2 " + std::to_string(2 * flag) + " 0.5\n";
  return text;
}

// The oracle has no wire: a decoder of its own, and the table.
TEST(ServerReadout, AnswersPartsInAnyOrderAsTheDecoderAnswersTheWholeShot) {
  constexpr unsigned kDetectors = 19;
  const std::string model = chain_model(kDetectors), lines = chain_lines(kDetectors);
  decoding_server server(one_setup({.id = kId}, readout_unit(lines, model)));
  const auto oracle = make_decoder("bp-osd", model).instance;
  const auto table = readout_table_for(lines, model);
  std::mt19937 random(20261129);
  const auto below = [&](unsigned n) { return static_cast<unsigned>(random() % n); };
  std::uint64_t counter = 0;
  unsigned flipped = 0, changed_by_values = 0;
  for (unsigned n = 0; n < 300; ++n) {
    const soft_kind kind = kAllKinds[n % 3];
    readout_shot shot{std::string(kDetectors, '0'), {}, {}};
    for (char &bit : shot.bits)
      bit = below(6) == 0 ? '1' : '0';
    for (unsigned k = 0; k < kDetectors; ++k)
      shot.values.push_back(below(16));
    for (unsigned k = 0; k < 7; ++k)
      shot.flags.push_back(below(3));
    std::vector<error_probability> list;
    std::string fault;
    const bytes soft = soft_bytes_of(shot.values, kind), flags = flag_bytes_of(shot.flags);
    ASSERT_EQ(table->list_of({.soft = soft, .kind = kind, .leakage = flags}, list, fault), decode_status::ok) << fault;
    bytes wanted(1), without(1);
    ASSERT_EQ(oracle->decode_bits(packed(shot.bits), wanted, list), decode_status::ok);
    ASSERT_EQ(oracle->decode_bits(packed(shot.bits), without), decode_status::ok);
    flipped += wanted[0];
    changed_by_values += wanted != without ? 1 : 0;

    std::size_t bits = 0, values = 0, sent_flags = 0;
    while (bits != kDetectors) { // the last bits come with all that is left of the others
      const std::size_t more_bits = std::min<std::size_t>(below(8), kDetectors - bits);
      const bool last = bits + more_bits == kDetectors;
      const std::size_t more_values = last ? kDetectors - values : std::min<std::size_t>(below(8), kDetectors - values);
      const std::size_t more_flags = last ? 7 - sent_flags : std::min<std::size_t>(below(4), 7 - sent_flags);
      const auto value = shot.values.begin() + static_cast<std::ptrdiff_t>(values);
      const auto flag = shot.flags.begin() + static_cast<std::ptrdiff_t>(sent_flags);
      const readout_shot part{shot.bits.substr(bits, more_bits),
                              {value, value + static_cast<std::ptrdiff_t>(more_values)},
                              {flag, flag + static_cast<std::ptrdiff_t>(more_flags)}};
      const bool plain = more_values + more_flags == 0 && below(2) == 0; // then as a client without values sends it
      ASSERT_EQ(call(server, plain ? kEnqueueFunctionId : kEnqueueReadoutFunctionId,
                     plain ? enqueue_payload(kId, counter, part.bits) : readout_payload(kId, counter, part, kind)),
                answered(server_status::ok))
          << n;
      ++counter;
      bits += more_bits;
      values += more_values;
      sent_flags += more_flags;
    }
    ASSERT_EQ(call(server, kGetCorrectionsFunctionId, get_payload(kId, 1, true)), (full_answer{0, wanted})) << n;
    ASSERT_EQ(call(server, kOneShotFunctionId, one_shot_payload(shot, kind)), (full_answer{0, wanted})) << n;
  }
  EXPECT_GT(flipped, 30u);
  EXPECT_GT(changed_by_values, 10u) << "else a server that ignores the values passes";
}

TEST(ServerReadout, RefusesAShotWhoseReadoutIsNotComplete) {
  for (const bool has_values : {false, true}) {
    decoding_server server = readout_server();
    const readout_shot shot{"10", has_values ? kUnsure.values : std::vector<unsigned>{}, {}};
    EXPECT_EQ(call(server, kEnqueueReadoutFunctionId, readout_payload(kId, 0, shot, soft_kind::u8)),
              answered(server_status::bad_request));
    EXPECT_NE(last_failure(server).find(has_values ? "flags: 0 bytes, accepted: 2 for 5"
                                                   : "soft values: 0 bytes, accepted: 12 for 3"),
              std::string::npos)
        << last_failure(server);
  }
  decoding_server server = readout_server();
  EXPECT_EQ(call(server, kEnqueueFunctionId, enqueue_payload(kId, 0, "10")), answered(server_status::bad_request))
      << "a client that sends no values must not get worse answers in silence";
  EXPECT_EQ(call(server, kGetCorrectionsFunctionId, get_payload(kId, 1)), answered(server_status::bad_request))
      << "it latches: the shot is lost";
  EXPECT_EQ(call(server, kResetFunctionId, reset_payload(kId)), answered(server_status::ok));
  EXPECT_EQ(call(server, kEnqueueReadoutFunctionId, readout_payload(kId, 0, kUnsure, soft_kind::u4)),
            answered(server_status::ok));
  EXPECT_EQ(call(server, kGetCorrectionsFunctionId, get_payload(kId, 1)), answered(server_status::ok, "0"));
}

TEST(ServerReadout, RefusesMoreValuesOrFlagsThanAShotHasAndAnotherKindInOneShot) {
  const readout_shot part{"", {12, 12}, {0, 0, 0}};
  const struct {
    readout_shot next;
    soft_kind kind;
  } cases[] = {
      {{"1", {12, 12}, {}}, soft_kind::u8}, {{"1", {}, {0, 0, 0}}, soft_kind::u8}, {{"1", {12}, {}}, soft_kind::u4}};
  for (const auto &[next, kind] : cases) {
    decoding_server server = readout_server();
    ASSERT_EQ(call(server, kEnqueueReadoutFunctionId, readout_payload(kId, 0, part, soft_kind::u8)),
              answered(server_status::ok));
    EXPECT_EQ(call(server, kEnqueueReadoutFunctionId, readout_payload(kId, 1, next, kind)),
              answered(server_status::bad_request));
    EXPECT_NE(last_failure(server).find("of a shot the decoder takes 3 and 5, in one of the kinds that "
                                        "describe_decoder tells; 2 (u8) and 3 had come before"),
              std::string::npos)
        << last_failure(server);
    EXPECT_EQ(call(server, kResetFunctionId, reset_payload(kId)), answered(server_status::ok));
    EXPECT_EQ(call(server, kEnqueueReadoutFunctionId, readout_payload(kId, 0, kSure, soft_kind::f32)),
              answered(server_status::ok))
        << "a reset forgets the values of the shot, and their kind";
    EXPECT_EQ(call(server, kGetCorrectionsFunctionId, get_payload(kId, 1)), answered(server_status::ok, "1"));
  }
}

TEST(ServerReadout, RefusesValuesThatAreNone) {
  bytes infinite = readout_payload(kId, 0, kSure, soft_kind::f32);
  const float value = std::numeric_limits<float>::infinity();
  std::memcpy(infinite.data() + 48 + 1 + 4, &value, sizeof value);
  readout_shot flag_of_3 = kSure;
  flag_of_3.flags[4] = 3;
  const std::pair<bytes, const char *> cases[] = {
      {infinite, "the soft value of measurement 1 is not finite"},
      {readout_payload(kId, 0, flag_of_3, soft_kind::u8), "flag 4 has the value 3"}};
  for (const auto &[payload, text] : cases) {
    decoding_server server = readout_server();
    EXPECT_EQ(call(server, kEnqueueReadoutFunctionId, payload), answered(server_status::bad_request));
    EXPECT_NE(last_failure(server).find(text), std::string::npos) << last_failure(server);
    const bytes arrays(payload.begin() + 48, payload.end());
    EXPECT_EQ(call(server, kOneShotFunctionId, arrays).status,
              static_cast<std::int32_t>(decode_status::bad_probability));
    EXPECT_EQ(call(server, kOneShotFunctionId, one_shot_payload(kSure, soft_kind::u8)),
              answered(server_status::ok, "1"));
  }
}

TEST(ServerReadout, RefusesAKindThatTheTableDoesNotTake) {
  std::string levels = "measurements 1\nlevels 0";
  for (int k = 0; k < 16; ++k)
    levels += " " + std::to_string(k - 8);
  decoding_server server(one_setup({.id = kId}, readout_unit(levels + "\nmisread 0 0.01 0 0\n")));
  EXPECT_EQ(call(server, kOneShotFunctionId, one_shot_payload({"10", {3}, {}}, soft_kind::u8)).status, 0)
      << "of one measurement u8 is u4";
  EXPECT_EQ(call(server, kOneShotFunctionId, one_shot_payload({"10", {3}, {}}, soft_kind::f32)).status,
            static_cast<std::int32_t>(decode_status::buffer_too_small));
  for (const soft_kind kind : {soft_kind::u8, soft_kind::f32})
    EXPECT_EQ(call(server, kOneShotReadoutFunctionId, readout_payload(kId, 0, {"10", {3}, {}}, kind)).status,
              -static_cast<std::int32_t>(server_status::bad_request));
  EXPECT_EQ(call(server, kEnqueueReadoutFunctionId, readout_payload(kId, 0, {"10", {3}, {}}, soft_kind::u8)),
            answered(server_status::bad_request));
  EXPECT_EQ(call(server, kResetFunctionId, reset_payload(kId)), answered(server_status::ok));
  EXPECT_EQ(call(server, kEnqueueReadoutFunctionId, readout_payload(kId, 0, {"10", {3}, {}}, soft_kind::u4)),
            answered(server_status::ok));
}

TEST(ServerReadout, IsRefusedByDecodersThatTakeNone) {
  decoding_server shots(one_setup({.id = kId}, unit_for(kReadoutModel, {}, 0, "bp-osd")));
  EXPECT_EQ(call(shots, kEnqueueReadoutFunctionId, readout_payload(kId, 0, kSure, soft_kind::u8)),
            answered(server_status::bad_request));
  EXPECT_EQ(last_failure(shots), "a request with 3 soft values (u8) and 5 flags; of a shot the decoder takes 0 and 0");
  decoding_server empty(one_setup({.id = kId}, unit_for(kReadoutModel, {}, 0, "bp-osd")));
  EXPECT_EQ(call(empty, kEnqueueReadoutFunctionId, readout_payload(kId, 0, {"10", {}, {}}, soft_kind::f32)),
            answered(server_status::bad_request))
      << "also without values";
  EXPECT_EQ(call(shots, kOneShotFunctionId, one_shot_payload(kSure, soft_kind::u8)).status,
            static_cast<std::int32_t>(decode_status::bad_detector_index))
      << "as before there was a readout";
  decoding_server stream(one_setup({.id = kId}, stream_unit_for(rotated_stream_model(2))));
  EXPECT_EQ(call(stream, kEnqueueReadoutFunctionId, readout_payload(kId, 0, kSure, soft_kind::u8)),
            answered(server_status::bad_request));
  EXPECT_NE(last_failure(stream).find("takes 0 and 0"), std::string::npos) << last_failure(stream);
}

TEST(ServerReadout, TakesAShotInOneRequestOnlyAsTheWholeThatItSays) {
  const auto payload = [](const readout_shot &shot, soft_kind kind) { return readout_payload(kId, 0, shot, kind); };
  const bytes whole = payload(kSure, soft_kind::u8);
  bytes cut = payload(kSure, soft_kind::f32), counted = whole, of_another = whole;
  cut.resize(whole.size()); // floats in the length of bytes: of qec_decode it would be a shot
  counted[8] = 1;
  of_another[0] = 9;
  const struct {
    bytes payload;
    server_status status;
    const char *text;
  } cases[] = {
      {cut, server_status::bad_request, ""},
      {counted, server_status::bad_request, ""},
      {bytes(whole.begin(), whole.begin() + 7), server_status::bad_request, ""},
      {of_another, server_status::invalid_decoder, ""},
      {payload({"1", {12, 12, 3}, {0, 0, 0, 0, 0}}, soft_kind::u8), server_status::bad_request,
       "a shot of 1 detection events; the decoder takes 2"},
      {payload({"100", {12, 12, 3}, {0, 0, 0, 0, 0}}, soft_kind::u8), server_status::bad_request,
       "a shot of 3 detection events; the decoder takes 2"},
      {payload({"10", {12, 12}, {0, 0, 0, 0, 0}}, soft_kind::u8), server_status::bad_request,
       "a request with 2 soft values (u8) and 5 flags; of a shot the decoder takes 3 and 5"},
      {payload({"10", {12, 12, 3}, {}}, soft_kind::u4), server_status::bad_request,
       "a request with 3 soft values (u4) and 0 flags; of a shot the decoder takes 3 and 5"},
  };
  for (const auto &[sent, status, text] : cases) {
    decoding_server server = readout_server();
    EXPECT_EQ(call(server, kOneShotReadoutFunctionId, sent).status, -static_cast<std::int32_t>(status));
    EXPECT_EQ(last_failure(server).find(text), 0U) << last_failure(server);
    EXPECT_EQ(call(server, kOneShotReadoutFunctionId, whole), answered(server_status::ok, "1")) << "nothing latches";
  }
  decoding_server without(one_setup({.id = kId}, unit_for(kReadoutModel, {}, 0, "bp-osd")));
  EXPECT_EQ(call(without, kOneShotReadoutFunctionId, payload({"10", {}, {}}, soft_kind::u8)).status,
            -static_cast<std::int32_t>(server_status::bad_request))
      << "a decoder without a table";
  decoding_server stream(one_setup({.id = kId}, stream_unit_for(rotated_stream_model(2))));
  EXPECT_EQ(call(stream, kOneShotReadoutFunctionId, whole).status,
            -static_cast<std::int32_t>(server_status::bad_request));
}

// Values and flags begin a shot, as bits do.
TEST(ServerReadout, IsNotDividedByAReloadNorByTheEnd) {
  const readout_shot values{"", kSure.values, {}}, flags{"", {}, kSure.flags};
  const auto reload = [](decoding_server &server, std::chrono::milliseconds limit) {
    return server.reload(one_setup({.id = kId}, readout_unit()), cudaq::realtime::detail::steady_clock::now() + limit)
        .outcome;
  };
  for (const bool flags_first : {false, true}) {
    const readout_shot &first = flags_first ? flags : values;
    const readout_shot last{"10", flags_first ? kSure.values : std::vector<unsigned>{},
                            flags_first ? std::vector<unsigned>{} : kSure.flags};
    decoding_server server = readout_server();
    EXPECT_EQ(call(server, kEnqueueReadoutFunctionId, readout_payload(kId, 0, first, soft_kind::u8)),
              answered(server_status::ok));
    EXPECT_EQ(reload(server, std::chrono::milliseconds(20)), reload_outcome::busy) << "inside the shot";
    server.begin_end();
    EXPECT_EQ(call(server, kEnqueueReadoutFunctionId, readout_payload(kId, 1, last, soft_kind::u8)),
              answered(server_status::ok))
        << "the shot had begun";
    EXPECT_EQ(call(server, kEnqueueReadoutFunctionId, readout_payload(kId, 2, first, soft_kind::u8)),
              answered(server_status::not_ready));
    EXPECT_EQ(call(server, kGetCorrectionsFunctionId, get_payload(kId, 1)), answered(server_status::ok, "1"));
    EXPECT_EQ(reload(server, std::chrono::seconds(20)), reload_outcome::applied) << "between shots";
  }
}

TEST(ServerReadout, ExecutesARepeatedRequestOnce) {
  decoding_server server = readout_server();
  const readout_shot flips{"10", {12, 12, 12}, {0, 0, 0, 0, 0}};
  const bytes payload = readout_payload(kId, 1, flips, soft_kind::u8);
  for (int attempt = 0; attempt < 3; ++attempt)
    EXPECT_EQ(call(server, kEnqueueReadoutFunctionId, payload, 9, 1000), answered(server_status::ok));
  EXPECT_EQ(call(server, kGetCorrectionsFunctionId, get_payload(kId, 1)), answered(server_status::ok, "1"));
  EXPECT_EQ(server.decoders().front()->counts().shots, 1u);
}

TEST(ServerReadout, IsInTheAnswerOfDescribeDecoder) {
  decoding_server server = readout_server();
  decoding_server plain(one_setup({.id = kId}, unit_for(kReadoutModel, {}, 0, "bp-osd")));
  bytes question;
  append_number(question, kId);
  append_number(question, 3);
  const full_answer answer = call(server, kDescribeFunctionId, question);
  EXPECT_EQ(answer.result.size(), 96u);
  EXPECT_EQ(read_readout_facts(answer.result), (readout_facts{3, 5, 0b111}));
  EXPECT_EQ(read_model_facts(answer.result)->detectors, 2u);
  EXPECT_TRUE(read_server_facts(answer.result));
  EXPECT_EQ(read_readout_facts(call(plain, kDescribeFunctionId, question).result), readout_facts{});
  question[8] = 5;
  EXPECT_EQ(call(server, kDescribeFunctionId, question), answered(server_status::bad_request));
  bytes shorter = question; // the answers that clients without a readout know
  for (const auto &[wanted, size] : {std::pair{1, 48u}, {2, 72u}}) {
    shorter[8] = static_cast<std::uint8_t>(wanted);
    EXPECT_EQ(call(server, kDescribeFunctionId, shorter).result.size(), size);
  }
}

TEST(ServerReadout, HasALengthThatIsCheckedExactly) {
  for (const soft_kind kind : kAllKinds) {
    const bytes whole = readout_payload(kId, 0, kUnsure, kind);
    ASSERT_EQ(read_request(kEnqueueReadoutFunctionId, whole).status, server_status::ok);
    bytes longer = whole;
    longer.push_back(0);
    EXPECT_EQ(read_request(kEnqueueReadoutFunctionId, longer).status, server_status::bad_request);
    for (std::size_t size = 0; size < whole.size(); ++size) {
      const read_result read = read_request(kEnqueueReadoutFunctionId, std::span(whole).first(size));
      EXPECT_EQ(read.status, server_status::bad_request) << size;
      EXPECT_EQ(read.knows_decoder, size >= 8) << size;
    }
  }
}

// The length says the kind, as qec_decode has no other field.
TEST(ServerReadout, TakesAsOneShotOnlyTheLengthsOfItsKinds) {
  for (const auto &[levels, kinds] : {std::pair{false, 3}, {true, 1}}) {
    std::string lines = kReadoutLines;
    if (levels) {
      std::string table = "levels 0";
      for (int k = 0; k < 256; ++k)
        table += " " + std::to_string(k - 128);
      lines.replace(lines.find("gaussian 0 12 3 2 0.5"), 21, table);
    }
    decoding_server server(one_setup({.id = kId}, readout_unit(lines)));
    int served = 0;
    for (std::size_t size = 0; size <= one_shot_payload(kUnsure, soft_kind::f32).size() + 1; ++size) {
      bytes payload = one_shot_payload(kUnsure, soft_kind::u8);
      payload.resize(size);
      const std::int32_t status = call(server, kOneShotFunctionId, payload).status;
      served += status == 0 ? 1 : 0;
      EXPECT_TRUE(status == 0 || status == static_cast<std::int32_t>(decode_status::buffer_too_small)) << status;
    }
    EXPECT_EQ(served, kinds);
    EXPECT_EQ(call(server, kOneShotFunctionId, one_shot_payload(kUnsure, soft_kind::u8)).status, 0);
  }
}

TEST(ServerReadout, HasFieldsThatAreChecked) {
  const bytes good = readout_payload(kId, 0, {"1", {}, {}}, soft_kind::u8);
  ASSERT_EQ(read_request(kEnqueueReadoutFunctionId, good).status, server_status::ok);
  for (const std::size_t field : {16u, 24u, 32u}) // counts whose bytes wrap to the length of the payload
    for (const std::uint64_t count : {std::uint64_t{1} << 61, std::uint64_t{1} << 63, kMaxEnqueuedBits + 1}) {
      bytes payload = good;
      std::memcpy(payload.data() + field, &count, sizeof count);
      EXPECT_EQ(read_request(kEnqueueReadoutFunctionId, payload).status, server_status::bad_request) << field;
    }
  for (const std::size_t at : {40u, 41u, 43u, 44u, 47u}) { // an unknown kind, and the field that is 0
    bytes payload = good;
    payload[at] = 3;
    EXPECT_EQ(read_request(kEnqueueReadoutFunctionId, payload).status, server_status::bad_request) << at;
  }
}

} // namespace
