// SPDX-License-Identifier: Apache-2.0
// `cudaq-realtime decode --heralds`: detectors of the input that are heralds.
#include "unittests/qec/model_text.h"
#include "unittests/support/program_paths.h"
#include "unittests/tools/decode/decode_test_support.h"

#include <gtest/gtest.h>

namespace cudaq::realtime::tools::test {
namespace {

constexpr const char *kModelOfHeralds = "error(0.1) D0\nerror(1e-9) D0 L0\nerror(0.1) D1\n";

class DecodeHeralds : public decode_files_test {
protected:
  void SetUp() override {
    file("model.dem", kModelOfHeralds);
    file("shots.01", "100\n110\n101\n111\n"); // the middle one is a herald
    file("heralds.txt", cudaq::qec::realtime::test::heralds_text(kModelOfHeralds, "detectors 3\nherald 1 1 0.5\n"));
  }
  [[nodiscard]] program_result decode(const std::string &decoder, const std::string &more = "") const {
    return run_program("decode --dem " + path("model.dem") + " --in " + path("shots.01") + " --out " + path("out.01") +
                       " --decoder '" + decoder + "' " + more);
  }
};

TEST_F(DecodeHeralds, ChangeTheAnswersOfShotsInWhichTheyFired) {
  for (const char *decoder : {"bp-osd", "relay-bp", "auto", "race:relay-bp|bp-osd", "bp-osd:osd_order=0"})
    for (const char *threads : {" --threads 1", " --threads 3"}) {
      const program_result r = decode(decoder, "--heralds " + path("heralds.txt") + threads);
      ASSERT_EQ(r.exit_code, 0) << r.err;
      EXPECT_EQ(read_file(path("out.01")), "0\n1\n0\n1\n") << decoder << threads;
    }
  const program_result r = decode("bp-osd:heralds=" + path("heralds.txt"));
  ASSERT_EQ(r.exit_code, 0) << r.err;
  EXPECT_EQ(read_file(path("out.01")), "0\n1\n0\n1\n");
}

TEST_F(DecodeHeralds, AreRefusedWithAReason) {
  const auto expect_refused = [this](const std::string &decoder, const std::string &more, const std::string &why) {
    const program_result r = decode(decoder, more);
    EXPECT_EQ(r.exit_code, 2) << why;
    EXPECT_TRUE(contains(r.err, why)) << r.err;
  };
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

} // namespace
} // namespace cudaq::realtime::tools::test
