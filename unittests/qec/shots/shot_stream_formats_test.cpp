// SPDX-License-Identifier: Apache-2.0
// All formats of Stim, with bytes that Stim 1.15.0 writes for the same shots.
#include "unittests/qec/shots/shot_stream_test_support.h"

namespace cudaq::qec::realtime::test {
namespace {

struct golden {
  shot_format format;
  std::string bytes; ///< as detectors
};

const shot_list kShots{"1010000001", "0000000000", "0000000010"};

template <std::size_t n>
std::string raw(const char (&text)[n]) {
  return {text, n - 1};
}

const std::vector<golden> kGolden{
    {shot_format::text01, "1010000001\n0000000000\n0000000010\n"}, {shot_format::b8, raw("\x05\x02\x00\x00\x00\x01")},
    {shot_format::r8, raw("\x00\x01\x06\x00\x0a\x08\x01")},        {shot_format::hits, "0,2,9\n\n8\n"},
    {shot_format::dets, "shot D0 D2 D9\nshot\nshot D8\n"},
};

class ShotStream : public ShotStreamFolder {};
class ShotStreamFormat : public ShotStreamFolder, public testing::WithParamInterface<golden> {};

TEST_P(ShotStreamFormat, ReadsWhatStimWrites) {
  SKIP_WITHOUT_STIM(GetParam().format);
  write(GetParam().bytes);
  EXPECT_EQ(read_all(GetParam().format, {10, 0}), kShots);
}

TEST_P(ShotStreamFormat, KnowsHowManyShotsAFileHas) {
  SKIP_WITHOUT_STIM(GetParam().format);
  write(GetParam().bytes);
  shot_reader reader(path(), GetParam().format, {10, 0});
  EXPECT_EQ(reader.expected_shots(), 0u) << "nothing was read";
  std::vector<std::uint8_t> row(2);
  ASSERT_TRUE(reader.read(row, {}));
  if (GetParam().format == shot_format::text01 || GetParam().format == shot_format::b8) {
    EXPECT_EQ(reader.expected_shots(), 3u);
  }
  while (reader.read(row, {}))
    ;
  EXPECT_EQ(reader.expected_shots(), 3u);
  EXPECT_EQ(shot_reader("/dev/zero", shot_format::b8, {8, 0}).expected_shots(), 0u);
}

TEST_P(ShotStreamFormat, WritesWhatStimWrites) {
  SKIP_WITHOUT_STIM(GetParam().format);
  shot_writer writer(path(), GetParam().format, 10);
  for (const auto &row : {std::vector<std::uint8_t>{5, 2}, {0, 0}, {0, 1}})
    writer.write(row);
  writer.finish();
  std::string expected = GetParam().bytes;
  if (GetParam().format == shot_format::dets)
    std::replace(expected.begin(), expected.end(), 'D', 'L');
  EXPECT_EQ(content(), expected);
  EXPECT_EQ(read_all(GetParam().format, {0, 10}), (shot_list{" 1010000001", " 0000000000", " 0000000010"}));
}

TEST_P(ShotStreamFormat, AnEmptyFileHasNoShots) {
  SKIP_WITHOUT_STIM(GetParam().format);
  write("");
  EXPECT_EQ(read_all(GetParam().format, {10, 0}), shot_list{});
}

INSTANTIATE_TEST_SUITE_P(All, ShotStreamFormat, testing::ValuesIn(kGolden),
                         [](const auto &test) { return std::string(name_of(test.param.format)); });

TEST_F(ShotStream, Ptb64HasAWordForEachBit) {
  std::string bytes(80, '\0');
  bytes[0] = bytes[16] = bytes[72] = 1; // bits 0, 2 and 9 of shot 0
  bytes[64] = 4;                        // bit 8 of shot 2
  bytes[8 + 7] = '\x80';                // bit 1 of shot 63
  shot_list expected(64, kShots[1]);
  expected[0] = kShots[0];
  expected[2] = kShots[2];
  expected[63] = "0100000000";

  shot_writer writer(path(), shot_format::ptb64, 10);
  for (int shot = 0; shot < 64; ++shot)
    writer.write(shot == 0    ? std::vector<std::uint8_t>{5, 2}
                 : shot == 2  ? std::vector<std::uint8_t>{0, 1}
                 : shot == 63 ? std::vector<std::uint8_t>{2, 0}
                              : std::vector<std::uint8_t>{0, 0});
  writer.finish();
  EXPECT_EQ(content(), bytes);
  SKIP_WITHOUT_STIM(shot_format::ptb64);
  EXPECT_EQ(read_all(shot_format::ptb64, {10, 0}), expected);
}

TEST_F(ShotStream, LongRunsOfR8AreRead) {
  SKIP_WITHOUT_STIM(shot_format::r8);
  write(raw("\xff\xff\x01\x58"));
  std::string expected(600, '0');
  expected[511] = '1';
  EXPECT_EQ(read_all(shot_format::r8, {600, 0}), shot_list{expected});
}

TEST_F(ShotStream, ObservablesMayFollowTheDetectors) {
  const shot_list expected{"10100000 01", "00000000 10"};
  write(raw("\x05\x02\x00\x01"));
  EXPECT_EQ(read_all(shot_format::b8, {8, 2}), expected);
  SKIP_WITHOUT_STIM(shot_format::text01);
  write("1010000001\n0000000010\n");
  EXPECT_EQ(read_all(shot_format::text01, {8, 2}), expected);
  write("9,0,2\n8\n"); // in any order
  EXPECT_EQ(read_all(shot_format::hits, {8, 2}), expected);
  write("shot D0 D2 L1\r\n\n  shot L0\n");
  EXPECT_EQ(read_all(shot_format::dets, {8, 2}), expected);
}

TEST_F(ShotStream, DetsMayHaveManyObservables) {
  SKIP_WITHOUT_STIM(shot_format::dets);
  write("shot L0 L99\n");
  std::string expected(101, '0');
  expected[0] = ' ';
  expected[1] = expected[100] = '1';
  EXPECT_EQ(read_all(shot_format::dets, {0, 100}), shot_list{expected});
}

TEST(ShotFormat, HasTheNamesOfStim) {
  for (const std::string_view name : kShotFormatNames)
    EXPECT_EQ(name_of(find_shot_format(name).value()), name);
  EXPECT_EQ(find_shot_format("01"), shot_format::text01);
  EXPECT_EQ(find_shot_format("ptb64"), shot_format::ptb64);
  EXPECT_FALSE(find_shot_format(""));
  EXPECT_FALSE(find_shot_format("B8"));
}

} // namespace
} // namespace cudaq::qec::realtime::test
