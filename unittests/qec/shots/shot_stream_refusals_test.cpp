// SPDX-License-Identifier: Apache-2.0
// Bad files of shots: each is refused with the shot and the byte, and no shot is invented.
#include "unittests/qec/shots/shot_stream_test_support.h"

namespace cudaq::qec::realtime::test {
namespace {

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
