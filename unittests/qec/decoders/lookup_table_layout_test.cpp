// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/decoders/lookup_decoder.h"
#include "unittests/qec/qec_test_support.h"

#include <cstring>
#include <type_traits>

namespace cudaq::qec::realtime::test {
namespace {

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
