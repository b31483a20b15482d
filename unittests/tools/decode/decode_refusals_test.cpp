// SPDX-License-Identifier: Apache-2.0
// `cudaq-realtime decode` refuses what it cannot decode, and says how much of the output is there.
#include "unittests/qec/stream/stream_test_support.h"
#include "unittests/tools/decode/decode_test_support.h"

#include <fmt/format.h>
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

// Files that are not what the options say: the text says what was expected, and what the file may be.

class DecodeWrongFiles : public decode_files_test {
protected:
  /// The model of a chain of detectors. The first one has an error of its own.
  [[nodiscard]] std::string chain(int detectors) const {
    std::string text = "error(0.1) D0 L0\n";
    for (int k = 1; k < detectors; ++k)
      text += "error(0.1) D" + std::to_string(k - 1) + " D" + std::to_string(k) + "\n";
    return file("chain" + std::to_string(detectors) + ".dem", text);
  }
  static void expect_refusal(const std::string &command, const std::string &text) {
    const program_result r = run_program(command);
    EXPECT_EQ(r.exit_code, 2) << command;
    EXPECT_TRUE(contains(r.err, text)) << command << "\n" << r.err;
    EXPECT_EQ(r.err.find('\0'), std::string::npos) << command;
  }
};

TEST_F(DecodeWrongFiles, TheReportSaysWhatAShotOfTheModelIs) {
  // 10 shots of 40 detectors are 50 shots of 8: nothing in the file says which.
  const std::string shots = file("s.b8", std::string(50, '\0'));
  const program_result r =
      run_program("decode --decoder lookup --dem " + chain(8) + " --in " + shots + " --out /dev/null");
  EXPECT_EQ(r.exit_code, 0) << r.err;
  EXPECT_TRUE(contains(r.out, "decoded         50 shots")) << r.out;
  EXPECT_TRUE(contains(r.out, "each shot       8 detectors = 1 byte\n")) << r.out;
}

TEST_F(DecodeWrongFiles, OtherNumbersOfShotsMayComeFromAnotherModel) {
  const std::string data = " --dem " + chain(8) + " --in " + file("s.b8", std::string(50, '\0')) + " --obs_in " +
                           file("o.b8", std::string(10, '\0'));
  expect_refusal("decode --decoder lookup --out /dev/null" + data,
                 "o.b8: 10 shots, fewer than " + file("s.b8", std::string(50, '\0')) +
                     ", which has at least 11 shots of 8 detectors = 1 byte (is the model that of the shots?)");
  expect_refusal("pipeline --decoder lookup" + data,
                 "o.b8: 10 shots, but --in has 50 of 8 detectors = 1 byte (is the model that of the shots?)");
}

TEST_F(DecodeWrongFiles, ABinaryFileThatEndsInsideAShotIsRefused) {
  const std::string text =
      "b8 data ends in the middle of a shot: 2 of its 3 bytes are there; a shot has 17 detectors = 3 "
      "bytes (is b8 the right format, and the model that of the shots?)";
  const std::string data = " --decoder lookup --dem " + chain(17) + " --in " + file("s.b8", std::string(50, '\0'));
  expect_refusal("decode --out /dev/null" + data, text);
  expect_refusal("pipeline" + data, text);
}

TEST_F(DecodeWrongFiles, ACircuitIsRefusedWithTheCommandThatMakesItsModel) {
  const std::string data =
      " --dem " + file("code.stim", "# A circuit.\nQUBIT_COORDS(0, 0) 0\nR 0\n") + " --in " + file("s.b8", "");
  const std::string text = "line 2: unknown instruction \"QUBIT_COORDS\": is this a Stim circuit? Its model is made by "
                           "`stim analyze_errors --in circuit.stim --out model.dem`";
  for (const std::string command :
       {"decode", "decode --stream", "decode --decoder lookup", "decode --decoder bp-osd", "pipeline", "demo"})
    expect_refusal(command + data, text);
}

TEST_F(DecodeWrongFiles, AModelWithoutDetectorsIsRefused) {
  const std::string shots = " --in " + file("s.b8", "");
  for (const std::string command : {"decode", "decode --decoder bp-osd", "pipeline", "demo"})
    for (const std::string text : {"", "# nothing\n", "error(0.1) L0\n"})
      expect_refusal(command + shots + " --dem " + file("m.dem", text),
                     "m.dem: the model has no detectors: a shot has at least one");
  expect_refusal("decode --stream" + shots + " --dem " + file("m.dem", ""), "the model has no detectors");
}

TEST_F(DecodeWrongFiles, AnEmptyFileOfShotsIsRefused) {
  const std::string model = " --decoder lookup --dem " + chain(3), none = file("s.b8", "");
  for (const std::string &command :
       std::vector<std::string>{"decode --out /dev/null", "decode --threads 2 --obs_in " + none, "pipeline", "demo"})
    expect_refusal(command + model + " --in " + none, "s.b8: there are no shots");
  expect_refusal("decode" + model, "stdin: there are no shots");
}

TEST_F(DecodeWrongFiles, ABinaryFileThatIsReadAsTextIsRefusedWithTheByteAndTheFormat) {
  SKIP_WITHOUT_PYMATCHING(); // and so without Stim's readers
  const std::string model = " --dem " + chain(9) + " --out /dev/null";
  const std::string good = file("good", "000000000\n"), zeros = file("shots", std::string(6, '\0')),
                    high = file("shots-high", "\x90\x01");
  const std::string of_shot = "; a shot has 9 detectors (is the file b8? try --in_format b8)";
  expect_refusal("decode" + model + " --in " + zeros, "shots: shot 0, byte 1: the byte 0x00 is no text" + of_shot);
  expect_refusal("decode" + model + " --in " + high, "shots-high: shot 0, byte 1: the byte 0x90 is no text" + of_shot);
  expect_refusal("decode --in_format hits" + model + " --in " + high, "the byte 0x90 is no text" + of_shot);
  expect_refusal("pipeline --dem " + chain(9) + " --in " + zeros, "the byte 0x00 is no text" + of_shot);
  expect_refusal("decode" + model + " --in " + good + " --obs_in " + zeros,
                 "the byte 0x00 is no text; a shot has 1 observable (is the file b8? try --obs_in_format b8)");
  const std::string loop = file("loop.dem", "repeat 9 {\ndetector(0) D0\nerror(0.1) D0 D1 L0\nshift_detectors(1) 1\n}\n"
                                            "detector(0) D0\nerror(0.1) D0\n");
  expect_refusal("decode --stream --commit 2 --buffer 2 --dem " + loop + " --in " + zeros,
                 "byte 0: 0x00 is neither 0, 1 nor the end of a line (is the file b8? try --in_format b8)");
}

// `decode --stream` of files that have shots, and not one experiment: the cause is named before the work.

/// A line or a row of whole bytes for each of `shots` without events.
std::string lines(std::size_t shots, std::size_t detectors) {
  std::string text;
  for (std::size_t k = 0; k < shots; ++k)
    text += std::string(detectors, '0') + "\n";
  return text;
}

class DecodeStreamOfShots : public decode_files_test {
protected:
  void SetUp() override {
    std::ofstream(path("model.dem")) << qec::realtime::test::surface_dem();
    const auto model = qec::realtime::test::repeating_or_throw(qec::realtime::test::surface_dem());
    detectors_ = model.head_detectors() + model.repetitions() * model.body_detectors() + model.tail_detectors();
    body_ = model.body_detectors();
  }
  /// Decodes a file of this content.
  [[nodiscard]] program_result decode(const std::string &name, const std::string &content,
                                      const std::string &options = "--stream") const {
    std::ofstream(path(name), std::ios::binary) << content;
    return run_program("decode " + options + " --dem " + path("model.dem") + " --in " + path(name));
  }
  void expect_shots(const program_result &r, const std::string &text) const {
    EXPECT_EQ(r.exit_code, 2) << r.err;
    EXPECT_EQ(r.out, "") << "no frame comes out before";
    for (const std::string &part :
         {text, std::string("Shots are decoded without --stream"), fmt::format("--bits_per_shot {}", detectors_)})
      EXPECT_TRUE(contains(r.err, part)) << part << "\n" << r.err;
  }

  std::size_t detectors_ = 0, body_ = 0;
};

TEST_F(DecodeStreamOfShots, ShotsInB8AreRefusedWithTheirNumber) {
  SKIP_WITHOUT_PYMATCHING();
  const std::size_t bytes = (detectors_ + 7) / 8;
  for (const std::size_t shots : {1U, 1000U, 1001U}) {
    const program_result r = decode("shots.b8", std::string(shots * bytes, '\0'));
    expect_shots(r, shots == 1
                        ? fmt::format("are a shot of {} detectors in {} bytes, as Stim writes b8", detectors_, bytes)
                        : fmt::format("are {} shots of {} detectors in {}", shots, detectors_, bytes));
  }
  const program_result good = decode("shots.b8", std::string(1000 * bytes, '\0'), "--decoder sliding-window");
  EXPECT_EQ(good.exit_code, 0) << good.err << "the command that the text names";
}

TEST_F(DecodeStreamOfShots, LinesOfWholeExperimentsAreRefused) {
  SKIP_WITHOUT_PYMATCHING();
  expect_shots(decode("shots.01", lines(20, detectors_)), fmt::format("20 lines of {} detectors", detectors_));
  // Of another length than the model's text has.
  const std::size_t longer = detectors_ + 7 * body_;
  expect_shots(decode("longer.01", lines(3, longer)), fmt::format("3 lines of {} detectors", longer));
  EXPECT_EQ(decode("one.01", lines(1, longer)).exit_code, 0) << "one experiment";
}

TEST_F(DecodeStreamOfShots, InAPipeTheFirstLineIsSeenToBeAnExperiment) {
  SKIP_WITHOUT_PYMATCHING();
  std::ofstream(path("in")) << lines(3, detectors_);
  const program_result r = run_program("decode --stream --dem " + path("model.dem"), CUDAQ_TOOL_PATH, path("in"));
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_TRUE(contains(r.err, "before that is a whole experiment: are these shots? --stream reads one")) << r.err;
}

using DecodeStreamOfManyRepetitions = decode_files_test;

TEST_F(DecodeStreamOfManyRepetitions, AFileOfAFewRoundsIsDecoded) {
  std::string model = "repeat 576460752303423488 {\n"; // 2^59, of 32 detectors
  for (int k = 0; k < 32; ++k)
    model += fmt::format("detector(0) D{0}\nerror(0.1) D{0} L0\n", k);
  const program_result r = run_program(
      fmt::format("decode --stream --decoder sliding-window:inner=bp-osd,commit=2,buffer=1 --dem {} --in {}",
                  file("model.dem", model + "shift_detectors(1) 32\n}\n"), file("rounds.b8", std::string(40, '\0'))));
  EXPECT_EQ(r.exit_code, 0) << r.err;
  EXPECT_TRUE(contains(r.out, "10 0")) << r.out;
}

} // namespace
} // namespace cudaq::realtime::tools::test
