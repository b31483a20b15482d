// SPDX-License-Identifier: Apache-2.0
// What a shot tells `cudaq-realtime decode` besides its events: lists, heralds, soft values and flags.
#include "unittests/qec/model_text.h"
#include "unittests/support/program_paths.h"
#include "unittests/tools/decode/decode_test_support.h"

#include <cstring>
#include <gtest/gtest.h>
#include <vector>

namespace cudaq::realtime::tools::test {
namespace {

// `cudaq-realtime decode --flags`: probabilities that single shots replace.

constexpr const char *kModel = "error(0.1) D0 L0\nerror(0.2) D0\nerror(0.1) D1\n";

class DecodeFlags : public decode_files_test {
protected:
  void SetUp() override {
    file("model.dem", kModel);
    file("shots.01", "10\n10\n00\n10\n");
  }
  /// With the head of a file for the model.
  [[nodiscard]] static std::string flags(const std::string &lines, const std::string &model = kModel) {
    return cudaq::qec::realtime::test::head_of_text("cudaq-realtime-flags 1", model) + lines;
  }
  /// Decodes with a file of this text, and expects a refusal.
  void expect_wrong(const std::string &text, const std::string &why) {
    file("wrong.txt", text);
    expect_refused("bp-osd", "--flags " + path("wrong.txt"), why);
    expect_refused("bp-osd", "--flags " + path("wrong.txt"), path("wrong.txt"));
  }
};

TEST_F(DecodeFlags, ChangeTheAnswersOfTheirShotsOnly) {
  file("flags.txt", flags("# shot 0 has none\n\nshot 1 0 0.4 2 0.5\nshot 2 1 0\r\nshot 3 1 1e-3\n"));
  for (const char *decoder : {"bp-osd", "relay-bp", "auto", "race:relay-bp|bp-osd"})
    for (const char *threads : {" --threads 1", " --threads 3"}) {
      expect_answers(decode(decoder, "--flags " + path("flags.txt") + threads + " --json " + path("report.json")),
                     "0\n1\n0\n1\n");
      EXPECT_TRUE(contains(read_file(path("report.json")), "\"flagged_shots\": 3")) << decoder;
    }
}

TEST_F(DecodeFlags, MayComeFromAPipe) {
  file("flags.txt", flags("shot 3 0 0.4\n"));
  expect_answers(decode("bp-osd", "--flags -", path("flags.txt")), "0\n0\n0\n1\n");
}

TEST_F(DecodeFlags, AreRefusedWithTheLineThatIsWrong) {
  expect_wrong("", "line 1: the file has no line \"cudaq-realtime-flags 1\"");
  expect_wrong("cudaq-realtime-flags 2\n", "line 1: the first line is \"cudaq-realtime-flags 2\"");
  expect_wrong("cudaq-realtime-flags 1\n", "line 1: the file has no line model");
  expect_wrong("cudaq-realtime-flags 1\nmodel 00000001\n", "line 2: the file is for the model 00000001, this one has");
  expect_wrong("cudaq-realtime-flags 1\nmodel x\n", "line 2: the line is \"model x\"");
  expect_wrong(flags("shot x\n"), "line 3: the line begins with \"shot x\"");
  expect_wrong(flags("shot 1 0 0.4\nshot 1 0 0.4\n"), "line 4: shot 1 comes after shot 1; shots ascend");
  expect_wrong(flags("shot 1 0 0.4 1\n"), "the probability of error 1 is \"\"");
  expect_wrong(flags("shot 1 0 1.5\n"), "the probability of error 0 is \"1.5\", accepted: a number from 0 to 1");
  expect_wrong(flags("shot 1 0 nan\n"), "accepted: a number from 0 to 1");
  expect_wrong(flags("shot 1 -1 0.5\n"), "the error \"-1\" is not a number of an error");
  expect_wrong(flags("shot 1 0 0.4 1 0.4 2 0.4 2 0.4\n"),
               "line 3: the list has more errors than the model, which has 3");
  expect_wrong(flags("shot 4 0 0.4\n"), "a list for shot 4, but there are 4 shots");
}

// A batch ends after lists of 16 MiB, here in the middle of the shots.
TEST_F(DecodeFlags, MayBeLongerThanTheMemoryOfABatch) {
  constexpr std::size_t kErrors = 60'000, kShots = 30;
  std::string model = "error(0.1) D0 L0\nerror(0.2) D0\n", list, shots, expected, lists;
  for (std::size_t k = 2; k < kErrors; ++k) {
    model += "error(1e-6) D0\n";
    list += " " + std::to_string(k) + " 0";
  }
  file("model.dem", model);
  for (std::size_t shot = 0; shot < kShots; ++shot) {
    shots += "1\n";
    lists += "shot " + std::to_string(shot) + " 1 " + (shot % 3 == 0 ? "0.01" : "0.2") + list + "\n";
    expected += shot % 3 == 0 ? "1\n" : "0\n";
  }
  file("shots.01", shots);
  file("flags.txt", flags(lists, model));
  expect_answers(decode("bp-osd", "--threads 2 --flags " + path("flags.txt")), expected);
}

TEST_F(DecodeFlags, NameTheShotWhoseListTheDecoderRefuses) {
  file("flags.txt", flags("shot 1 3 0.4\n"));
  const std::string option = "--flags " + path("flags.txt");
  expect_refused("bp-osd", option, "shot 1: ");
  expect_refused("bp-osd", option, "error 3 of the shot's list (probability 0.4) is not one of the model");
  EXPECT_EQ(read_file(path("out.01")), "0\n");
}

TEST_F(DecodeFlags, AreRefusedByWhatDoesNotTakeThem) {
  file("flags.txt", flags("shot 1 0 0.4\n"));
  const std::string option = "--flags " + path("flags.txt");
  expect_refused("lookup", option, "--flags: lookup does not take probabilities");
  expect_refused("bp-osd", option + " --predecoder local", "--predecoder local");
  expect_refused("bp-osd", option + " --stream", "--flags excludes --stream");
  expect_refused("bp-osd", "--flags - --obs_in -", "only one of them can be stdin");
  expect_refused("bp-osd", "--flags " + path("missing.txt"), "missing.txt");
}

// `cudaq-realtime decode --heralds`: detectors of the input that are heralds.

constexpr const char *kModelOfHeralds = "error(0.1) D0\nerror(1e-9) D0 L0\nerror(0.1) D1\n";

class DecodeHeralds : public decode_files_test {
protected:
  void SetUp() override {
    file("model.dem", kModelOfHeralds);
    file("shots.01", "100\n110\n101\n111\n"); // the middle one is a herald
    file("heralds.txt", cudaq::qec::realtime::test::heralds_text(kModelOfHeralds, "detectors 3\nherald 1 1 0.5\n"));
  }
};

TEST_F(DecodeHeralds, ChangeTheAnswersOfShotsInWhichTheyFired) {
  for (const char *decoder : {"bp-osd", "relay-bp", "auto", "race:relay-bp|bp-osd", "bp-osd:osd_order=0"})
    for (const char *threads : {" --threads 1", " --threads 3"})
      expect_answers(decode(decoder, "--heralds " + path("heralds.txt") + threads), "0\n1\n0\n1\n");
  expect_answers(decode("bp-osd:heralds=" + path("heralds.txt")), "0\n1\n0\n1\n");
}

TEST_F(DecodeHeralds, AreRefusedWithAReason) {
  const std::string heralds = "--heralds " + path("heralds.txt");
  expect_refused("lookup", heralds, "lookup does not take probabilities of a shot");
  expect_refused("bp-osd", heralds + " --predecoder local", "--heralds, --predecoder local: a predecoder knows");
  expect_refused("bp-osd:heralds=x", heralds, "the setting heralds is listed twice");
  expect_refused("bp-osd", "--heralds a,b", "--heralds a,b: the path has a comma");
  expect_refused("bp-osd", "--heralds " + path("none.txt"), "none.txt: ");
  file("model.dem", std::string(kModelOfHeralds) + "\n");
  expect_refused("bp-osd", heralds, "heralds.txt: line 2: the file is for the model");
}

TEST_F(DecodeHeralds, ArePartOfTheRoundsOfAStream) {
  // Detector 1 of a round is a herald: it has fired in round 1, not in round 4.
  const std::string round = "detector(0,0) D0\ndetector(1,0) D1\nerror(0.01) D0\n";
  const std::string two = "error(0.02) D0 D2\nerror(1e-9) D0 D2 L0\nshift_detectors(0,1) 2\n";
  const std::string dem = round + two + "repeat 4 {\n" + round + two + "}\n" + round;
  std::string lines = "detectors 12\n";
  for (int k = 0; k < 5; ++k)
    lines += "herald " + std::to_string(2 * k + 1) + " " + std::to_string(3 * k + 2) + " 0.4\n";
  file("loop.dem", dem);
  file("loop.txt", cudaq::qec::realtime::test::heralds_text(dem, lines));
  for (const auto &[shot, observable] : {std::pair{"000000001010", "0"}, std::pair{"001110000000", "1"}}) {
    file("stream.01", std::string(shot) + "\n");
    const program_result r =
        run_program("decode --stream --dem " + path("loop.dem") + " --in " + path("stream.01") + " --out " +
                    path("out.01") + " --decoder bp-osd --commit 2 --buffer 2 --heralds " + path("loop.txt"));
    ASSERT_EQ(r.exit_code, 0) << r.err;
    EXPECT_TRUE(read_file(path("out.01")).ends_with(std::string("6 ") + observable + "\n"))
        << read_file(path("out.01"));
  }
}

// `cudaq-realtime decode --readout`: soft values of measurements, and flags of leakage.

constexpr const char *kModelOfReadout = "error(0.1) D0\nerror(0.01) D0 L0\nerror(0.1) D1\n";

class DecodeReadout : public decode_files_test {
protected:
  void SetUp() override {
    file("model.dem", kModelOfReadout);
    file("shots.01", "10\n10\n00\n10\n");
    table("measurements 1\nflags 1\ngaussian 0 10 0 2 0.5\nmisread 0 0.001 0 0\nflag 0 2 1 0.4\n");
    file("soft.u8", "\x04\x0a\x0a\x04"); // of the fourth shot the flag is 2
    file("leakage", std::string("\0\0\1\2", 4));
  }
  void table(const std::string &lines) const {
    file("readout.txt", cudaq::qec::realtime::test::head_of_text("cudaq-realtime-readout 1", kModelOfReadout) + lines);
  }
  [[nodiscard]] std::string with_table(const std::string &more) const {
    return "--readout " + path("readout.txt") + " " + more;
  }
  [[nodiscard]] std::string both() const {
    return "--soft " + path("soft.u8") + " --soft_kind u8 --leakage " + path("leakage");
  }
  void expect_wrong(const std::string &more, const std::string &why, const std::string &decoder = "bp-osd") const {
    expect_refused(decoder, with_table(more), why);
  }
};

TEST_F(DecodeReadout, ChangesTheAnswersOfEachShot) {
  for (const char *decoder : {"bp-osd", "relay-bp", "auto", "race:relay-bp|bp-osd"})
    for (const char *threads : {" --threads 1", " --threads 3"}) {
      const program_result r = decode(decoder, with_table(both() + threads));
      expect_answers(r, "0\n1\n0\n1\n");
      EXPECT_TRUE(contains(r.out, "readout         of 4 shots by ")) << r.out;
    }
}

TEST_F(DecodeReadout, TakesEachKindOfValues) {
  const float values[] = {4, 10, 10, 4};
  std::string bytes(sizeof values, '\0');
  std::memcpy(bytes.data(), values, sizeof values);
  file("soft.f32", bytes);
  for (const char *more : {"--soft_kind f32", ""}) {
    const std::string files = "--soft " + path("soft.f32") + " --leakage " + path("leakage") + " ";
    expect_answers(decode("bp-osd", with_table(files + more)), "0\n1\n0\n1\n");
  }
  // One value of four bits is in a byte of its own: the bytes of u8 are those of u4.
  const std::string files = "--soft " + path("soft.u8") + " --leakage " + path("leakage");
  expect_answers(decode("bp-osd", with_table(files + " --soft_kind u4")), "0\n1\n0\n1\n");
}

TEST_F(DecodeReadout, MayComeFromAPipeAndWithAListOfEachShot) {
  file("flags.txt",
       cudaq::qec::realtime::test::head_of_text("cudaq-realtime-flags 1", kModelOfReadout) + "shot 0 1 0.4\n");
  const std::string more = "--soft - --soft_kind u8 --leakage " + path("leakage") + " --flags " + path("flags.txt");
  expect_answers(decode("bp-osd", with_table(more), path("soft.u8")), "1\n1\n0\n1\n");
}

TEST_F(DecodeReadout, IsRefusedWithAReason) {
  expect_wrong("", "--soft is missing: the table of --readout has soft values of measurements");
  expect_wrong("--soft " + path("soft.u8") + " --soft_kind u8", "--leakage is missing: the table of --readout has");
  expect_wrong("--soft_kind u5", "--soft_kind");
  expect_wrong("--soft - --leakage -", "only one of them can be stdin");
  expect_wrong(both(), "--readout: lookup does not take probabilities of a shot", "lookup");
  expect_wrong(both() + " --predecoder local", "--readout, --predecoder local: a predecoder knows");
  expect_wrong("--leakage " + path("leakage") + " --soft " + path("none"), "none");
  file("leakage", std::string("\0\0\3\2", 4));
  expect_wrong(both(), "shot 2: flag 0 has the value 3, accepted: 0, 1, 2\nshots decoded before that: 2");
  file("leakage", std::string("\0\0\1", 3));
  expect_wrong(both(), "fewer");
  file("leakage", std::string("\0\0\1\2\0", 5));
  expect_wrong(both(), "more shots than");
  table("measurements 1\ngaussian 0 10 0 2 0.5\nmisread 0 0.001 0 9\n");
  expect_wrong(both(), "readout.txt: line 5: error 0: the calibration of measurement 0 is \"9\"");
  table("measurements 1\ngaussian 0 10 0 2 0.5\nmisread 0 0.001 0 0\n");
  expect_wrong(both(), "the table of --readout has no flags of leakage");
  file("model.dem", std::string(kModelOfReadout) + "\n");
  expect_wrong(both(), "readout.txt: line 2: the file is for the model");
  expect_refused("bp-osd", "--soft " + path("soft.u8"), "--readout");
}

} // namespace
} // namespace cudaq::realtime::tools::test
