// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/decoders/lookup_decoder.h"
#include "unittests/qec/every_error_set.h"
#include "unittests/qec/qec_test_support.h"

#include <cstring>
#include <type_traits>

namespace cudaq::qec::realtime::test {
namespace {

TEST(LookupDecoder, FindsTheLeastSetOfEverySyndromeOfRandomGraphs) {
  std::mt19937 random(3);
  for (int model = 0; model < 60; ++model)
    expect_least("lookup", random_model(random, 2, 0.4));
}

TEST(LookupDecoder, FindsTheLeastSetWithErrorsOfManyDetectors) {
  std::mt19937 random(4);
  for (int model = 0; model < 30; ++model)
    expect_least("lookup", random_model(random, 4, 0.4));
}

TEST(LookupDecoder, FindsTheLeastSetWithErrorsLikelierThanNot) {
  std::mt19937 random(5);
  for (int model = 0; model < 30; ++model)
    expect_least("lookup", random_model(random, 2, 0.95));
}

TEST(LookupDecoder, GivesATieToTheSmallestObservables) {
  // D0 alone means L1, or L0 and L1, or L2: all have the same weight.
  for (const char *dem : {"error(0.1) D0 L1\nerror(0.1) D0 L0 L1\nerror(0.1) D0 L2\n",
                          "error(0.1) D0 L2\nerror(0.1) D0 L0 L1\nerror(0.1) D0 L1\n"})
    EXPECT_EQ(decode(*make_or_throw("lookup", dem), {0}).observables, bits(3, {1}));
}

class LookupGolden : public testing::TestWithParam<std::string> {};

TEST_P(LookupGolden, EqualsPyMatchingsPredictionsAtDistance3) {
  const shot_set set = load_committed(shot_set_name(3, GetParam()));
  const auto with = make_or_throw("lookup", set.dem_text);
  std::vector<std::uint64_t> events(set.num_detectors);
  for (std::uint64_t shot = 0; shot < set.shots; ++shot) {
    const std::size_t count = unpack_events(set.detection_row(shot), set.num_detectors, events).count;
    std::uint8_t out = 0;
    ASSERT_EQ(with->decode(std::span(events).first(count), {&out, 1}), decode_status::ok);
    EXPECT_EQ(out, set.prediction_row(shot)[0]) << "shot " << shot;
  }
}

INSTANTIATE_TEST_SUITE_P(Noise, LookupGolden, testing::Values("0.003", "0.005"), kind_name);

class LookupAllSyndromes : public testing::TestWithParam<std::string> {};

TEST_P(LookupAllSyndromes, AgreeWithExactWeightsAndDifferFromPyMatchingOnlyOnTies) {
  constexpr double kRounding = 1e-4;
  const shot_set set = load_committed(shot_set_name(3, GetParam()));
  const auto lookup = make_or_throw("lookup", set.dem_text);
  const auto other = make_or_throw("auto", set.dem_text); // PyMatching if it was built in
  const relaxed_weights exact(*parse_dem(set.dem_text));
  ASSERT_EQ(exact.detectors.size(), 16U);
  int ties = 0;
  for (std::uint64_t row = 0; row < 1U << 16; ++row) {
    std::vector<std::uint64_t> events;
    for (const std::uint64_t bit : indices_of(row))
      events.push_back(exact.detectors[bit]);
    const auto [without, with] = exact.of(row);
    const bool tie = std::abs(without - with) < kRounding;
    ties += tie;
    if (tie)
      continue;
    const answer expected{decode_status::ok,
                          bits(1, with < without ? std::vector<std::uint64_t>{0} : std::vector<std::uint64_t>{})};
    ASSERT_EQ(decode(*lookup, events), expected) << "row " << row;
    ASSERT_EQ(decode(*other, events), expected) << "row " << row;
  }
  RecordProperty("ties", ties);
}

INSTANTIATE_TEST_SUITE_P(Noise, LookupAllSyndromes, testing::Values("0.003", "0.005"), kind_name);

TEST(LookupDecoder, RefusesACodeThatIsTooLargeAndSaysWhatToDo) {
  const decoder_result made = make_decoder("lookup", load_committed(shot_set_name(5, "0.003")).dem_text);
  EXPECT_FALSE(made);
  EXPECT_NE(made.error.find("a table holds at most 20 detectors"), std::string::npos) << made.error;
  EXPECT_NE(made.error.find("use the pymatching decoder"), std::string::npos) << made.error;
}

TEST(LookupDecoder, ByDepthGivesTheAnswerOfTheWholeTableOrNone) {
  const shot_set set = load_committed(shot_set_name(3, "0.005"));
  const auto whole = make_or_throw("lookup", set.dem_text), by_depth = make_or_throw("lookup:depth=2", set.dem_text);
  const relaxed_weights exact(*parse_dem(set.dem_text));
  int answered = 0, others = 0;
  for (std::uint64_t row = 0; row < 1U << 16; row += 3) {
    std::vector<std::uint64_t> events;
    for (const std::uint64_t bit : indices_of(row))
      events.push_back(exact.detectors[bit]);
    const answer found = decode(*by_depth, events);
    if (found.status != decode_status::ok) {
      ASSERT_EQ(found.status, decode_status::not_converged);
      continue;
    }
    ++answered;
    others += found != decode(*whole, events);
  }
  EXPECT_GT(answered, 300);
  EXPECT_LT(others, answered / 10) << "three errors may be likelier than two";
  for (const std::uint64_t detector : exact.detectors)
    EXPECT_EQ(decode(*by_depth, {detector}), decode(*whole, {detector}));
}

TEST(LookupDecoder, ByDepthRefusesMoreSetsThanATableHolds) {
  const std::string dem = load_committed(shot_set_name(5, "0.003")).dem_text;
  EXPECT_EQ(decode(*make_or_throw("lookup:depth=1", dem), {}).status, decode_status::ok);
  EXPECT_NE(make_decoder("lookup:depth=16", dem).error.find("use a smaller depth"), std::string::npos);
  EXPECT_NE(make_decoder("lookup:depth=17", dem).error.find("depth"), std::string::npos);
}

TEST(LookupDecoder, RefusesMorePartsThanAViewHolds) {
  std::string dem;
  for (int k = 0; k < 17; ++k)
    dem += "error(0.1) D" + std::to_string(k) + " L" + std::to_string(k) + "\n";
  EXPECT_FALSE(make_decoder("lookup", dem));
}

static_assert(std::is_trivially_copyable_v<lookup_table_header> && std::is_standard_layout_v<lookup_table_header>);
static_assert(std::is_trivially_copyable_v<lookup_table_view> && std::is_standard_layout_v<lookup_table_view>);
static_assert(std::is_trivially_copyable_v<lookup_state>);
static_assert(offsetof(lookup_table_header, row_bytes) == 24);
static_assert(offsetof(lookup_table_header, detector_map_offset) == 32);
static_assert(offsetof(lookup_table_header, part_offset_offset) == 40);
static_assert(offsetof(lookup_table_header, total_bytes) == 48);

lookup_table table_of(const std::string &dem) {
  const auto model = parse_dem(dem);
  if (model.failed())
    throw std::runtime_error(model.text());
  auto table = build_lookup_table(*model);
  if (table.failed())
    throw std::runtime_error(table.text());
  return std::move(*table);
}

TEST(LookupTable, HoldsOnlyTheDetectorsThatCarryObservables) {
  const lookup_table table = table_of(load_committed(shot_set_name(3, "0.003")).dem_text);
  const lookup_table_header &header = table.header();
  EXPECT_EQ(header.magic, kLookupMagic);
  EXPECT_EQ(header.version, kLookupVersion);
  EXPECT_EQ(header.num_detectors, 24U);
  EXPECT_EQ(header.num_parts, 1U);
  EXPECT_EQ(header.row_bytes, 1U);
  int in_table = 0;
  for (std::uint32_t d = 0; d < header.num_detectors; ++d)
    in_table += static_cast<detector_role>(table.view().detector_map[d] >> 24) == detector_role::part_bit;
  EXPECT_EQ(in_table, 16); // 4 stabilizers, 4 layers
  EXPECT_EQ(header.total_bytes, sizeof header + 24 * 4 + 8 + (1U << 16));
}

TEST(LookupTable, AnswersAfterItsBytesWereMoved) {
  const shot_set set = load_committed(shot_set_name(3, "0.005"));
  std::vector<std::uint64_t> moved;
  lookup_table_header header;
  {
    const lookup_table table = table_of(set.dem_text);
    header = table.header();
    moved.resize(header.total_bytes / 8 + 1);
    std::memcpy(moved.data(), table.data(), header.total_bytes);
  }
  const lookup_table_view view = make_lookup_table_view(header, reinterpret_cast<const std::uint8_t *>(moved.data()));
  for (std::uint64_t shot = 0; shot < set.shots; ++shot) {
    std::uint8_t out = 0xEE;
    ASSERT_EQ(lookup_decode_packed(view, set.detection_row(shot).data(), &out), decode_status::ok);
    EXPECT_EQ(out, set.prediction_row(shot)[0]) << "shot " << shot;
  }
}

TEST(LookupTable, RefusesBitsPastTheLastDetector) {
  const lookup_table table = table_of("error(0.1) D0 L0\nerror(0.1) D0 D1\n");
  const std::uint8_t packed = 0x05;
  std::uint8_t out = 0xEE;
  EXPECT_EQ(lookup_decode_packed(table.view(), &packed, &out), decode_status::bad_detector_index);
  EXPECT_EQ(out, 0);
}

TEST(LookupTable, KeepsTheNoSolutionBitApartFromEightObservables) {
  std::string dem = "detector D1\nerror(0.1) D0 D2";
  for (int k = 0; k < 8; ++k)
    dem += " L" + std::to_string(k);
  const lookup_table table = table_of(dem);
  EXPECT_EQ(table.header().row_bytes, 2U);
  std::uint8_t out = 0;
  std::uint8_t packed = 0x05;
  EXPECT_EQ(lookup_decode_packed(table.view(), &packed, &out), decode_status::ok);
  EXPECT_EQ(out, 0xFF);
  packed = 0x01;
  EXPECT_EQ(lookup_decode_packed(table.view(), &packed, &out), decode_status::no_solution);
  EXPECT_EQ(out, 0);
}

TEST(LookupTable, NoticesAnEventGivenTwiceWhereItWouldMatter) {
  const lookup_table table = table_of("error(0.1) D0 L0\n");
  lookup_state state;
  lookup_begin(state);
  lookup_add_event(table.view(), state, 0);
  lookup_add_event(table.view(), state, 0);
  std::uint8_t out = 0xEE;
  EXPECT_EQ(lookup_finish(table.view(), state, &out), decode_status::duplicate_detector_index);
}

TEST(LookupTable, IsSharedByDecodersOfSeveralThreads) {
  const auto table = std::make_shared<const lookup_table>(table_of("error(0.1) D0 L0\n"));
  const auto first = make_lookup_decoder(table);
  const auto second = make_lookup_decoder(table);
  EXPECT_EQ(decode(*first, {0}), decode(*second, {0}));
}

} // namespace
} // namespace cudaq::qec::realtime::test
