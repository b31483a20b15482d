// SPDX-License-Identifier: Apache-2.0
// `decode --stream` of files that have shots, and not one experiment: the cause is named before the work.
#include "unittests/qec/stream/stream_test_support.h"
#include "unittests/tools/decode/decode_test_support.h"

#include <fmt/format.h>

namespace cudaq::realtime::tools::test {
namespace {

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
