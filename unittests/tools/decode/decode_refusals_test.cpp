// SPDX-License-Identifier: Apache-2.0
// `cudaq-realtime decode` refuses what it cannot decode, and says how much of the output is there.
#include "unittests/tools/decode/decode_test_support.h"

#include <gtest/gtest.h>

namespace cudaq::realtime::tools::test {
namespace {

class DecodeRefusals : public decode_files_test {
protected:
  /// A chain of three detectors; odd numbers of events have no solution.
  [[nodiscard]] std::string chain() const { return file("m.dem", "error(0.1) D0 D1 L0\nerror(0.1) D1 D2\n"); }
};

TEST_F(DecodeRefusals, AnswersBeforeABadShotAreWritten) {
  SKIP_WITHOUT_PYMATCHING();
  for (const char *threads : {"1", "3"}) {
    const std::string run = "--dem " + chain() + " --threads " + threads + " --in ";
    // A shot that cannot be decoded, also if the file is wrong after it.
    const std::string odd = "s.01: shot 2: no error of the model causes these detection events";
    expect_refusal(run + file("s.01", "110\n011\n100\n000\n"), odd, "1\n0\n");
    expect_refusal(run + file("s.01", "110\n011\n100\n0\n"), odd, "1\n0\n");
    expect_refusal(run + file("s.01", "110\n011\n100\n"), "shots decoded before that: 2", "1\n0\n");
    // A file that is cut.
    expect_refusal(run + file("s.01", "110\n011\n00"), "s.01: shot 2, byte 10: 01 data ended", "1\n0\n");
    expect_refusal(run + file("s.hits", "0,1\n7\n"), "s.hits: shot 1, byte 6: hit index is too large; a shot has 3",
                   "1\n");
  }
  // 5000 good shots, then a bad one: several batches.
  std::string many, answers;
  for (int k = 0; k < 5000; ++k) {
    many += k % 3 == 0 ? "110\n" : "011\n";
    answers += k % 3 == 0 ? "1\n" : "0\n";
  }
  expect_refusal("--threads 4 --dem " + chain() + " --in " + file("many.01", many + "001\n"),
                 "shots decoded before that: 5000", answers);
  // A bad shot in the first of many batches: nothing after it is written.
  for (const char *threads : {"1", "2", "4"})
    expect_refusal(std::string("--threads ") + threads + " --dem " + chain() + " --in " +
                       file("early.01", "110\n011\n100\n" + many + many + many + many),
                   "early.01: shot 2: no error of the model", "1\n0\n");
}

TEST_F(DecodeRefusals, FilesMustHaveTheSameNumberOfShots) {
  SKIP_WITHOUT_PYMATCHING();
  const std::string run = "--dem " + chain() + " --in " + file("s.01", "110\n011\n") + " --out /dev/null ";
  expect_refusal(run + "--obs_in " + file("o.01", "1\n"), "o.01: 1 shot, fewer than");
  expect_refusal(run + "--obs_in " + file("o.01", "1\n0\n0\n"), "o.01: more shots than");
  expect_refusal(run + "--predictions " + file("o.01", "1\n0\n0\n"), "which has 2 shots");
  expect_refusal(run + "--obs_in " + file("o.01", "11\n0\n"),
                 "o.01: shot 0, byte 2: 01 data didn't end with a newline");
}

TEST_F(DecodeRefusals, OutputsThatCannotHoldTheAnswers) {
  SKIP_WITHOUT_PYMATCHING();
  const std::string run = "--dem " + chain() + " --in " + file("s.01", "110\n011\n");
  expect_refusal(run + " --out /dev/full", "/dev/full: cannot be written, at most 2 shots are in it");
  expect_refusal(run + " --out " + scratch_.path().string() + "/none/o.01", "cannot be opened: No such file");
  expect_refusal(run + " --out_format ptb64", "ptb64 holds groups of 64 shots, and 2 is not a multiple");
}

TEST_F(DecodeRefusals, TheOutputIsNoneOfTheInputs) {
  SKIP_WITHOUT_PYMATCHING();
  const std::string shots = file("s.01", "110\n"), answers = file("o.01", "1\n"), model = chain();
  const std::string run = "--dem " + model + " --in " + shots;
  expect_refusal(run + " --out " + shots, "this is the file of --in");
  expect_refusal(run + " --out " + model, "this is the file of --dem");
  const std::string network = file("n.safetensors", "weights");
  expect_refusal(run + " --predecoder model=" + network + " --out " + network, "this is the file of --predecoder");
  expect_refusal(run + " --obs_in " + answers + " --out " + answers, "this is the file of --obs_in");
  expect_refusal(run + " --predictions " + answers + " --out " + answers, "this is the file of --predictions");
  EXPECT_EQ(std::filesystem::file_size(shots), 4u);
}

TEST_F(DecodeRefusals, OptionsThatDoNotFit) {
  expect_refusal("--dem " + chain() + " --in /dev/null --predecoder local --decoder lookup:predecoder=local",
                 "has a predecoder already");
  expect_refusal("--dem " + chain() + " --in /dev/null --predecoder local --decoder bp-osd",
                 "runs before the decoder pymatching only, not before bp-osd");
  const std::string run = "--dem " + chain() + " ";
  expect_refusal("--in x", "--dem is missing");
  expect_refusal(run + "--in_format b9", "b9");
  expect_refusal(run + "--obs_in -", "only one of them can be stdin");
  const program_result both = run_program("decode " + run + "--json");
  EXPECT_EQ(both.exit_code, 2);
  EXPECT_TRUE(contains(both.err, "--json without FILE writes to stdout, where the predictions go")) << both.err;
  EXPECT_EQ(both.json().at("exit_status"), 2) << "stdout has the report only: " << both.out;
  expect_refusal(run + "--in s --obs_in o --in_includes_appended_observables", "in one place only");
  expect_refusal("--dem " + scratch_.path().string() + "/none.dem", "none.dem: cannot be read: No such file");
  expect_refusal("--dem " + file("empty.dem", ""), "");
}

TEST_F(DecodeRefusals, AModelThatMatchingCannotTakeIsRefusedWithItsLine) {
  SKIP_WITHOUT_PYMATCHING();
  const own_set &color = kColorCode;
  for (const std::string command : {"decode", "demo", "pipeline"}) {
    const program_result r =
        run_program(command + " --decoder pymatching --dem " + color.file("dem") + " --in " + color.file("dets"));
    EXPECT_EQ(r.exit_code, 2);
    EXPECT_TRUE(contains(r.err, "color.dem: pymatching decoder: line 2: a component has 3 detectors")) << r.err;
  }
}

} // namespace
} // namespace cudaq::realtime::tools::test
