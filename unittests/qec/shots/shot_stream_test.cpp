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

// Bad files of shots: each is refused with the shot and the byte, and no shot is invented.

struct bad_file {
  shot_format format;
  std::string bytes;
  std::size_t good_shots;
  std::string error; ///< after the path
};

class ShotStreamRefusals : public ShotStreamFolder {
protected:
  /// Reads until the error; all files have shots of 10 detectors.
  void expect_refusal(const bad_file &bad) const {
    SCOPED_TRACE(std::string(name_of(bad.format)) + " " + bad.error);
    write(bad.bytes);
    std::vector<std::uint8_t> row(2);
    shot_reader reader(path(), bad.format, {10, 0});
    try {
      while (reader.read(row, {})) {
      }
      ADD_FAILURE() << "accepted, with " << reader.shots() << " shots";
    } catch (const shot_file_error &error) {
      const std::string text = error.what();
      EXPECT_TRUE(text.starts_with(path() + ": " + bad.error)) << text;
      EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    }
    EXPECT_EQ(reader.shots(), bad.good_shots);
  }
  static std::string zeros(std::size_t count) { return std::string(count, '\0'); }
};

TEST_F(ShotStreamRefusals, NameTheFaultOfB8) {
  expect_refusal({shot_format::b8, zeros(3), 1,
                  "shot 1, byte 3: b8 data ends in the middle of a shot: 1 of its 2 bytes are there; a shot has 10 "
                  "detectors = 2 bytes (is b8 the right format, and the model that of the shots?)"});
  expect_refusal({shot_format::b8, zeros(3) + "\x04", 1, "shot 1, byte 4: bit 10 is set; a shot has 10 detectors"});
}

TEST_F(ShotStreamRefusals, NameTheFaultOfATextFormat) {
  SKIP_WITHOUT_STIM(shot_format::text01);
  const std::string good01 = "0000000001\n";
  expect_refusal({shot_format::text01, good01 + "000\n", 1, "shot 1, byte 15: 01 data ended in middle of record"});
  expect_refusal({shot_format::text01, good01 + "000", 1, "shot 1, byte 14: 01 data ended in middle of record"});
  expect_refusal({shot_format::text01, good01 + "00000000001\n", 1, "shot 1, byte 22: 01 data didn't end with"});
  expect_refusal({shot_format::text01, "0000000001", 0, "shot 0, byte 10: 01 data didn't end with a newline"});
  expect_refusal({shot_format::text01, "00000z0001\n", 0, "shot 0, byte 6: Unexpected character"});
  expect_refusal({shot_format::text01, good01 + "00\x7f" + "0", 1,
                  "shot 1, byte 14: the byte 0x7f is no text; a shot has 10 detectors (is 01 the right format"});
  expect_refusal({shot_format::hits, zeros(2), 0, "shot 0, byte 1: the byte 0x00 is no text; a shot has 10"});
  expect_refusal({shot_format::dets, "shot\xff\n", 0, "shot 0, byte 5: the byte 0xff is no text; a shot has 10"});

  expect_refusal({shot_format::hits, "3\n\n3,10\n", 2, "shot 2, byte 8: hit index is too large; a shot has 10"});
  expect_refusal({shot_format::hits, "18446744073709551617\n", 0, "shot 0"});
  expect_refusal({shot_format::hits, "3,4", 0, "shot 0, byte 3: HITS data wasn't comma-separated"});
  expect_refusal({shot_format::hits, "3,3\n", 0, "shot 0, byte 4: detector 3 is listed twice"});
  expect_refusal({shot_format::hits, "-1\n", 0, "shot 0, byte 1: HITS data"});

  expect_refusal({shot_format::dets, "shot D1\nshot D10\n", 1, "shot 1, byte 17: DETS data had a value larger"});
  expect_refusal({shot_format::dets, "shot D1\nshot L0\n", 1, "shot 1, byte 16: DETS data had a value larger"});
  expect_refusal({shot_format::dets, "shot M0\n", 0, "shot 0, byte 8: DETS data had a value larger"});
  expect_refusal({shot_format::dets, "shot D1 D1\n", 0, "shot 0, byte 11: detector 1 is listed twice"});
  expect_refusal({shot_format::dets, "shot D1\nshit\n", 1, "shot 1, byte 11: DETS data didn't start with 'shot'"});
  expect_refusal({shot_format::dets, "shot D1\nshot D1", 1, "shot 1, byte 15: dets data ends without a newline"});
}

TEST_F(ShotStreamRefusals, NameTheFaultOfAPackedFormat) {
  SKIP_WITHOUT_STIM(shot_format::r8);
  expect_refusal({shot_format::r8, std::string("\x0a\x00\x01", 3), 1, "shot 1, byte 3: End of file before end of r8"});
  expect_refusal({shot_format::r8, "\x0b", 0, "shot 0, byte 1: r8 data jumped past"});
  expect_refusal({shot_format::ptb64, zeros(79), 0, "shot 0, byte 79: ptb64 data ended in middle of 64 record group"});
  expect_refusal({shot_format::ptb64, zeros(81), 64, "shot 64, byte 81: ptb64 data ended in middle of 64"});
}

TEST_F(ShotStreamRefusals, AShotWithoutEndDoesNotUseUpTheMemory) {
  SKIP_WITHOUT_STIM(shot_format::hits);
  std::string endless = "7\n";
  for (int k = 0; k < 300000; ++k)
    endless += "1,";
  const std::string text = "the shot has more than 65776 bytes";
  write(endless);
  shot_reader reader(path(), shot_format::hits, {10, 0});
  std::vector<std::uint8_t> row(2);
  EXPECT_TRUE(reader.read(row, {}));
  try {
    reader.read(row, {});
    ADD_FAILURE() << "accepted";
  } catch (const shot_file_error &error) {
    EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
  }
}

TEST_F(ShotStreamRefusals, NameTheFileThatCannotBeUsed) {
  const auto text_of = [](auto &&action) -> std::string {
    try {
      action();
    } catch (const shot_file_error &error) {
      return error.what();
    }
    return "no error";
  };
  const std::string missing = path() + "-missing", folder = std::filesystem::path(path()).parent_path().string();
  EXPECT_EQ(text_of([&] {
              shot_reader(missing, shot_format::b8, {10, 0});
            }),
            missing + ": cannot be opened: No such file or directory");
  EXPECT_EQ(text_of([&] {
              std::vector<std::uint8_t> row(2);
              shot_reader(folder, shot_format::b8, {10, 0}).read(row, {});
            }),
            folder + ": cannot be read: Is a directory");
  write("");
  EXPECT_NE(text_of([&] {
              shot_reader(path(), shot_format::b8, {0, 0});
            }).find("a shot has no bits"),
            std::string::npos);
  EXPECT_EQ(text_of([&] { shot_writer(folder, shot_format::b8, 1); }), folder + ": cannot be opened: Is a directory");
  EXPECT_EQ(text_of([] {
              shot_writer full("/dev/full", shot_format::b8, 8);
              full.write(std::vector<std::uint8_t>{1});
              full.finish();
            }),
            "/dev/full: cannot be written, at most 1 shots are in it: No space left on device");
  EXPECT_NE(text_of([&] {
              shot_writer part(path(), shot_format::ptb64, 8);
              for (int shot = 0; shot < 70; ++shot)
                part.write(std::vector<std::uint8_t>{1});
              part.finish();
            }).find("ptb64 holds groups of 64 shots, and 70 is not a multiple: the last 6 shots are not written"),
            std::string::npos);
  EXPECT_EQ(content().size(), 64u);
}

TEST_F(ShotStreamRefusals, ABuildWithoutStimNamesTheFormatsThatItHas) {
  if (pymatching_available())
    GTEST_SKIP() << "this build has Stim";
  write("");
  EXPECT_THROW(shot_reader(path(), shot_format::hits, {10, 0}), shot_file_error);
}

} // namespace
} // namespace cudaq::qec::realtime::test
