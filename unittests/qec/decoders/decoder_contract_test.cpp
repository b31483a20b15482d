// SPDX-License-Identifier: Apache-2.0
#include "unittests/qec/qec_test_support.h"

#include <random>

namespace cudaq::qec::realtime::test {
namespace {

class DecoderContract : public testing::TestWithParam<std::string> {};

TEST_P(DecoderContract, AnswerDoesNotDependOnTheOrderOfEvents) {
  const shot_set set = load_committed(shot_set_name(3, "0.005"));
  const auto with = make_or_throw(GetParam(), set.dem_text);
  std::mt19937 random(7);
  std::vector<std::uint64_t> buffer(set.num_detectors);
  for (std::uint64_t shot = 0; shot < set.shots; ++shot) {
    const std::size_t count = unpack_events(set.detection_row(shot), set.num_detectors, buffer).count;
    std::vector<std::uint64_t> events(buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(count));
    const answer ascending = decode(*with, events);
    std::shuffle(events.begin(), events.end(), random);
    EXPECT_EQ(decode(*with, events), ascending) << "shot " << shot;
  }
}

TEST_P(DecoderContract, RefusesAnEventListedTwice) {
  const auto with = make_or_throw(GetParam(), "error(0.1) D0 L0\nerror(0.1) D0 D1\nerror(0.1) D1\n");
  const std::vector<std::vector<std::uint64_t>> shots{{0, 0}, {1, 0, 1}, {0, 1, 1}, {0, 1, 0, 1, 0, 1}};
  for (const auto &events : shots)
    EXPECT_EQ(decode(*with, events), (answer{decode_status::duplicate_detector_index, bits(1, {})}));
}

TEST_P(DecoderContract, WritesOnlyTheObservableBytes) {
  const auto with = make_or_throw(GetParam(), "error(0.1) D0 L8\n");
  ASSERT_EQ(with->observable_bytes(), 2U);
  const std::vector<std::uint64_t> events{0};
  std::vector<std::uint8_t> out(5, 0xEE);
  EXPECT_EQ(with->decode(events, out), decode_status::ok);
  EXPECT_EQ(out, (std::vector<std::uint8_t>{0, 1, 0xEE, 0xEE, 0xEE}));
  std::vector<std::uint8_t> small(1, 0xEE);
  EXPECT_EQ(with->decode(events, small), decode_status::buffer_too_small);
  EXPECT_EQ(small[0], 0xEE);
}

TEST_P(DecoderContract, ServesAModelWithoutObservablesOrDetectors) {
  const auto blind = make_or_throw(GetParam(), "error(0.1) D0\n");
  EXPECT_EQ(decode(*blind, {0}), (answer{decode_status::ok, {}}));
  const auto empty = make_or_throw(GetParam(), "# nothing\n");
  EXPECT_EQ(empty->num_detectors(), 0U);
  EXPECT_EQ(decode(*empty, {}), (answer{decode_status::ok, {}}));
  EXPECT_EQ(decode(*empty, {0}).status, decode_status::bad_detector_index);
}

TEST_P(DecoderContract, TakesErrorsThatAreLikelierThanNot) {
  const auto with = make_or_throw(GetParam(), "error(0.9) D0 D1 L0\nerror(0.2) D0\nerror(0.4) D1\n");
  // Without events, all three errors (0.9 * 0.2 * 0.4) are likelier than no error (0.1 * 0.8 * 0.6).
  EXPECT_EQ(decode(*with, {}), (answer{decode_status::ok, bits(1, {0})}));
  EXPECT_EQ(decode(*with, {0, 1}), (answer{decode_status::ok, bits(1, {0})}));
}

TEST_P(DecoderContract, RefusesABadModelWithItsLine) {
  std::vector<std::string> models{"error(0.1) D0\nerrors(0.1) D0\n", "\nerror(2) D0\n", "\nerror(0.1) D0 ^\n"};
  if (GetParam() != "bp-osd" && GetParam() != "relay-bp") // it takes errors that are certain
    models.push_back("\nerror(1) D0\n");
  for (const std::string &dem : models) {
    const decoder_result made = make_decoder(GetParam(), dem);
    EXPECT_FALSE(made);
    EXPECT_NE(made.error.find("line 2"), std::string::npos) << made.error;
    EXPECT_NE(made.error.find(GetParam()), std::string::npos) << made.error;
  }
}

TEST_P(DecoderContract, KnowsItsName) { EXPECT_EQ(make_or_throw(GetParam(), "error(0.1) D0")->name(), GetParam()); }

INSTANTIATE_TEST_SUITE_P(Kinds, DecoderContract, testing::ValuesIn(all_decoder_kinds()), kind_name);

TEST(DecoderSelector, AutoTakesPyMatchingWhereItIsBuiltIn) {
  EXPECT_EQ(std::string(make_or_throw("auto", "error(0.1) D0")->name()),
            pymatching_available() ? "pymatching" : "lookup");
}

TEST(DecoderSelector, RefusesAnUnknownNameAndListsTheKnown) {
  const decoder_result made = make_decoder("magic", "error(0.1) D0");
  EXPECT_FALSE(made);
  EXPECT_NE(made.error.find("\"magic\""), std::string::npos);
  EXPECT_NE(made.error.find("lookup, bp-osd, relay-bp, auto, sliding-window"), std::string::npos);
}

TEST(DecoderSelector, PyMatchingRefusesUndecomposedErrors) {
  CUDAQ_SKIP_WITHOUT_PYMATCHING();
  const decoder_result made = make_decoder("pymatching", "error(0.1) D0 D1 D2 L0\n");
  EXPECT_FALSE(made);
  EXPECT_NE(made.error.find("decompose_errors"), std::string::npos) << made.error;
}

TEST(DecodeStatus, HasATextForEveryValueAndForUnknownOnes) {
  for (std::int32_t k = 0; k <= 6; ++k)
    EXPECT_STRNE(decode_status_text(static_cast<decode_status>(k)), "");
  EXPECT_STREQ(decode_status_text(static_cast<decode_status>(99)), "unknown decode status");
}

} // namespace
} // namespace cudaq::qec::realtime::test
