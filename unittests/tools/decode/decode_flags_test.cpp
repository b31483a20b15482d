// SPDX-License-Identifier: Apache-2.0
// `cudaq-realtime decode --flags`: probabilities that single shots replace.
#include "unittests/qec/model_text.h"
#include "unittests/support/program_paths.h"
#include "unittests/tools/decode/decode_test_support.h"

#include <gtest/gtest.h>

namespace cudaq::realtime::tools::test {
namespace {

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
  [[nodiscard]] program_result decode(const std::string &more, const std::string &decoder = "bp-osd") const {
    return run_program("decode --dem " + path("model.dem") + " --in " + path("shots.01") + " --out " + path("out.01") +
                       " --decoder '" + decoder + "' --flags " + more);
  }
  /// Decodes with a file of this text, and expects a refusal.
  void expect_wrong(const std::string &text, const std::string &why) {
    file("wrong.txt", text);
    const program_result r = decode(path("wrong.txt"));
    EXPECT_EQ(r.exit_code, 2) << text;
    EXPECT_TRUE(contains(r.err, path("wrong.txt"))) << r.err;
    EXPECT_TRUE(contains(r.err, why)) << r.err;
  }
};

TEST_F(DecodeFlags, ChangeTheAnswersOfTheirShotsOnly) {
  file("flags.txt", flags("# shot 0 has none\n\nshot 1 0 0.4 2 0.5\nshot 2 1 0\r\nshot 3 1 1e-3\n"));
  for (const char *decoder : {"bp-osd", "relay-bp", "auto", "race:relay-bp|bp-osd"})
    for (const char *threads : {" --threads 1", " --threads 3"}) {
      const program_result r = decode(path("flags.txt") + threads + " --json " + path("report.json"), decoder);
      ASSERT_EQ(r.exit_code, 0) << r.err;
      EXPECT_EQ(read_file(path("out.01")), "0\n1\n0\n1\n") << decoder << threads;
      EXPECT_TRUE(contains(read_file(path("report.json")), "\"flagged_shots\": 3")) << decoder;
    }
}

TEST_F(DecodeFlags, MayComeFromAPipe) {
  file("flags.txt", flags("shot 3 0 0.4\n"));
  const program_result r = run_program("decode --dem " + path("model.dem") + " --in " + path("shots.01") + " --out " +
                                           path("out.01") + " --decoder bp-osd --flags -",
                                       CUDAQ_TOOL_PATH, path("flags.txt"));
  ASSERT_EQ(r.exit_code, 0) << r.err;
  EXPECT_EQ(read_file(path("out.01")), "0\n0\n0\n1\n");
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
  const program_result r = decode(path("flags.txt") + " --threads 2");
  ASSERT_EQ(r.exit_code, 0) << r.err;
  EXPECT_EQ(read_file(path("out.01")), expected);
}

TEST_F(DecodeFlags, NameTheShotWhoseListTheDecoderRefuses) {
  file("flags.txt", flags("shot 1 3 0.4\n"));
  const program_result r = decode(path("flags.txt"));
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_TRUE(contains(r.err, "shot 1: ")) << r.err;
  EXPECT_TRUE(contains(r.err, "error 3 of the shot's list (probability 0.4) is not one of the model")) << r.err;
  EXPECT_EQ(read_file(path("out.01")), "0\n");
}

TEST_F(DecodeFlags, AreRefusedByWhatDoesNotTakeThem) {
  file("flags.txt", flags("shot 1 0 0.4\n"));
  EXPECT_TRUE(contains(decode(path("flags.txt"), "lookup").err, "--flags: lookup does not take probabilities"));
  EXPECT_TRUE(contains(decode(path("flags.txt") + " --predecoder local").err, "--predecoder local"));
  EXPECT_TRUE(contains(decode(path("flags.txt") + " --stream").err, "--flags excludes --stream"));
  EXPECT_TRUE(contains(decode("- --obs_in -").err, "only one of them can be stdin"));
  EXPECT_TRUE(contains(decode(path("missing.txt")).err, "missing.txt")) << "no such file";
}

} // namespace
} // namespace cudaq::realtime::tools::test
