// SPDX-License-Identifier: Apache-2.0
// Files that are not what the options say: the text says what was expected, and what the file may be.
#include "unittests/tools/decode/decode_test_support.h"

#include <gtest/gtest.h>

namespace cudaq::realtime::tools::test {
namespace {

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

} // namespace
} // namespace cudaq::realtime::tools::test
