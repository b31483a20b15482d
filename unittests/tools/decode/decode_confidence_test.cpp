// SPDX-License-Identifier: Apache-2.0
// `cudaq-realtime decode --confidence`: the gaps of the observables.
#include "unittests/support/program_paths.h"
#include "unittests/tools/decode/decode_test_support.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <sstream>

namespace cudaq::realtime::tools::test {
namespace {

class DecodeConfidence : public decode_files_test {
protected:
  void SetUp() override {
    // With D0 the answer is the first error, and the second one is the other value of L0. No error flips L1.
    file("model.dem", "error(0.1) D0\nerror(0.01) D0 L0\nerror(0.1) D1\nlogical_observable L1\n");
    file("shots.01", "10\n00\n10\n01\n");
    file("truth.01", "10\n00\n00\n00\n"); // the first answer is wrong
  }
  [[nodiscard]] program_result decode(const std::string &more, const std::string &decoder = "bp-osd") const {
    return run_program("decode --dem " + path("model.dem") + " --in " + path("shots.01") + " --out " + path("out.01") +
                       " --decoder '" + decoder + "' " + more);
  }
  const double with_event = std::log(99.0) - std::log(9.0), without = std::log(99.0) + std::log(9.0);
};

TEST_F(DecodeConfidence, IsALineForEachShotOrARowOfDoubles) {
  for (const char *decoder : {"bp-osd", "bp-osd:confidence=1", "auto"})
    for (const char *threads : {"--threads 1 ", "--threads 3 "}) {
      const program_result r = decode(threads + ("--confidence " + path("gaps.txt")), decoder);
      if (std::string_view(decoder) == "auto" && contains(r.err, "lookup"))
        continue; // a build without PyMatching
      ASSERT_EQ(r.exit_code, 0) << r.err;
      EXPECT_EQ(read_file(path("out.01")), "00\n00\n00\n00\n");
      std::istringstream lines(read_file(path("gaps.txt")));
      for (const double expected : {with_event, without, with_event, without}) {
        std::string gap, other;
        ASSERT_TRUE(lines >> gap >> other);
        EXPECT_NEAR(std::stod(gap), expected, 1e-3);
        EXPECT_EQ(other, "inf");
      }
      EXPECT_FALSE(lines >> std::ws && !lines.eof());
    }
  ASSERT_EQ(decode("--confidence " + path("gaps.f64")).exit_code, 0);
  const std::string bytes = read_file(path("gaps.f64"));
  ASSERT_EQ(bytes.size(), 4 * 2 * sizeof(double));
  double row[2];
  std::memcpy(row, bytes.data() + 2 * sizeof row, sizeof row);
  EXPECT_NEAR(row[0], with_event, 1e-9);
  EXPECT_EQ(row[1], HUGE_VAL);
}

TEST_F(DecodeConfidence, ReportsWhichShotsAreWrongAboveEachGap) {
  const program_result r =
      decode("--confidence " + path("gaps.txt") + " --obs_in " + path("truth.01") + " --json " + path("report.json"));
  ASSERT_EQ(r.exit_code, 0) << r.err;
  EXPECT_TRUE(contains(r.out, "gap >= 0        4 of 4 shots: 1 of 4")) << r.out;
  const auto report = nlohmann::json::parse(read_file(path("report.json")))["confidence"];
  EXPECT_EQ(report["unknown"], 0);
  ASSERT_EQ(report["curve"].size(), 2U) << report;
  EXPECT_EQ(report["curve"][0], (nlohmann::json{{"least_gap", 2.375}, {"kept", 4}, {"wrong", 1}}));
  EXPECT_EQ(report["curve"][1], (nlohmann::json{{"least_gap", 6.75}, {"kept", 2}, {"wrong", 0}}));
}

TEST_F(DecodeConfidence, IsACurveOfThePageIfItIsKnownWhichShotsAreWrong) {
  const std::string options = "--confidence " + path("gaps.txt") + " --html " + path("page.html");
  const std::string heading = "<h2>Wrong and discarded shots</h2>";
  ASSERT_EQ(decode(options).exit_code, 0);
  EXPECT_FALSE(contains(read_file(path("page.html")), heading));
  ASSERT_EQ(decode(options + " --obs_in " + path("truth.01")).exit_code, 0);
  const std::string page = read_file(path("page.html"));
  EXPECT_TRUE(contains(page, heading)) << page;
  EXPECT_TRUE(contains(page, ">50 %</text>")) << "two of four shots are discarded, and none of the others is wrong";
}

// The second shot has no events: its answer needs no time, but the search for the other value of L0 does.
TEST_F(DecodeConfidence, OfAShotWithoutAnAnswerIsNotKnown) {
  const program_result r =
      decode("--confidence " + path("gaps.txt") + " --json " + path("report.json"), "bp-osd:deadline_us=0.001");
  ASSERT_EQ(r.exit_code, 0) << r.err;
  EXPECT_EQ(read_file(path("gaps.txt")), "nan nan\nnan inf\nnan nan\nnan nan\n");
  EXPECT_EQ(nlohmann::json::parse(read_file(path("report.json")))["confidence"]["unknown"], 4);
}

TEST_F(DecodeConfidence, IsRefusedWithAReason) {
  file("ring.dem", "error(0.1) D0 D1\nerror(0.1) D1 D2\nerror(0.1) D0 D2 L0\n");
  const struct {
    std::string more, decoder, why;
  } cases[] = {{"--confidence " + path("gaps.txt"), "lookup", "confidence"},
               {"--confidence " + path("gaps.txt"), "race:bp-osd|relay-bp", "confidence"},
               {"--confidence -", "bp-osd", "--confidence: name a file of its own"},
               {"--confidence " + path("model.dem"), "bp-osd", "this is the file of --dem"},
               {"--confidence " + path("out.01"), "bp-osd", "this is the file of --out"},
               {"--confidence " + path("r") + " --json " + path("r"), "bp-osd", "this is the file of --json"},
               {"--confidence " + path("no/such/folder"), "bp-osd", "No such file or directory"},
               {"--confidence " + path("gaps.txt") + " --stream", "bp-osd", "--confidence"},
               {"--confidence /dev/full", "bp-osd", "--confidence /dev/full: No space left on device"}};
  for (const auto &[more, decoder, why] : cases) {
    const program_result r = decode(more, decoder);
    EXPECT_EQ(r.exit_code, 2) << more;
    EXPECT_TRUE(contains(r.err, why)) << more << ": " << r.err;
  }
}

} // namespace
} // namespace cudaq::realtime::tools::test
