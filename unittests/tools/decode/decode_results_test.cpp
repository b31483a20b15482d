// SPDX-License-Identifier: Apache-2.0
// What `cudaq-realtime decode` says of each shot besides its answer: deadlines, gaps, and errors of the correction.
#include "unittests/support/program_paths.h"
#include "unittests/tools/decode/decode_test_support.h"

#include <chrono>
#include <cmath>
#include <cstring>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sstream>

namespace cudaq::realtime::tools::test {
namespace {

// `cudaq-realtime decode` with shots that have no solution in time, races, and plug-ins that break their contract.

const std::string kEarly = CUDAQ_TEST_EARLY_PLUGIN, kBreaking = CUDAQ_TEST_BREAKING_PLUGIN;

class DecodeDeadlines : public decode_files_test {
protected:
  void SetUp() override {
    file("model.dem", "error(0.1) D0 L0\nerror(0.1) D1 L0\nerror(0.1) D2 L0\nerror(0.1) D3 L0\n");
    // early_plugin: a shot with detector 0 ends at its deadline; with detector 1, too, it has a best solution.
    file("shots.01", "0001\n1000\n1101\n0011\n1000\n");
    file("truth.01", "1\n1\n1\n0\n0\n");
  }
};

TEST_F(DecodeDeadlines, AreCountedAndTheRunGoesOn) {
  file("shots.01", "0001\n1000\n1101\n0100\n1000\n");
  for (const char *threads : {"1", "2"}) {
    const program_result r = decode(kEarly + ":deadline_us=100000",
                                    "--threads " + std::string(threads) + " --obs_in " + path("truth.01") + " --json");
    expect_answers(r, "1\n0\n1\n1\n0\n");
    const auto j = r.json();
    EXPECT_EQ(j["shots"], 5);
    EXPECT_EQ(j["deadline_met"].get<int>() + j["deadline_missed"].get<int>(), 5);
    EXPECT_GE(j["deadline_missed"], 3);
    EXPECT_EQ(j["deadline_without_solution"], 2);
    EXPECT_EQ(j["not_converged"], 0);
    const auto &shot = j["shot_ns"];
    EXPECT_EQ(shot["count"], 5) << "also those without a solution";
    EXPECT_GE(shot["max"], 100'000'000) << "the time of a missed deadline is in the tail";
    EXPECT_LE(shot["p50"], shot["p99"]);
    EXPECT_LE(shot["p99.9"], shot["max"]);
    EXPECT_EQ(j["logical_errors"], 3) << "shots without a solution are wrong, and the fourth is";
  }
  const program_result text = decode(kEarly + ":deadline_us=100000", "--obs_in " + path("truth.01"));
  EXPECT_TRUE(contains(text.out, "deadlines       ")) << text.out;
  EXPECT_TRUE(contains(text.out, "time of a shot  min ")) << text.out;
  EXPECT_TRUE(contains(text.out, " without a solution\n")) << text.out;
  EXPECT_TRUE(contains(text.out, "; with 2 shots without an answer")) << text.out;
}

TEST(DecodeDeadlineOfTwo, CountsTheTimeOfThePredecoderToo) {
  SKIP_WITHOUT_PYMATCHING();
  constexpr std::size_t kShots = 20, kShotBytes = 3;
  const scratch_folder scratch;
  const std::string set = std::string(CUDAQ_TEST_DATA) + "/surface_z_d3_p0.003";
  const std::string shots = read_file(set + ".dets.b8").substr(0, kShots * kShotBytes);
  std::uint64_t without_events = 0;
  for (std::size_t k = 0; k < shots.size(); k += kShotBytes)
    without_events += shots.compare(k, kShotBytes, std::string(kShotBytes, '\0')) == 0 ? 1 : 0;
  ASSERT_LT(without_events, kShots);
  std::ofstream(scratch.path() / "in.b8", std::ios::binary) << shots;
  const auto decode = [&](const std::string &more) {
    return run_good_program("decode --json --threads 1 --dem '" + set + ".dem' --in '" +
                            (scratch.path() / "in.b8").string() + "' --out '" + (scratch.path() / "out.01").string() +
                            "' --decoder pymatching:deadline_us=500 " + more);
  };
  EXPECT_GT(decode("").at("deadline_met"), 0);
  const auto both = decode("--predecoder 'model=" + std::string(CUDAQ_TEST_LARGE_NETWORK) + "'");
  EXPECT_LE(both.at("deadline_met"), without_events) << "the network takes milliseconds for a shot with events";
  EXPECT_GE(both.at("deadline_missed"), kShots - without_events);
  EXPECT_EQ(both.at("predecoder"), "model");
  EXPECT_EQ(both.at("decoder"), "pymatching");
}

TEST_F(DecodeDeadlines, OfNoneAreNotReported) {
  const program_result r = decode("bp-osd", "--json");
  ASSERT_EQ(r.exit_code, 0) << r.err;
  EXPECT_FALSE(r.json().contains("deadline_met"));
  EXPECT_FALSE(r.json().contains("race_wins"));
}

TEST_F(DecodeDeadlines, ShotsThatDoNotConvergeAreCountedToo) {
  file("shots.01", "1000\n1100\n0001\n");
  const program_result r = decode(CUDAQ_TEST_PLUGIN, "--json");
  expect_answers(r, "1\n0\n1\n");
  EXPECT_EQ(r.json()["not_converged"], 1);
  EXPECT_TRUE(contains(decode(CUDAQ_TEST_PLUGIN).out, "no answer       1 of 3 shots: 1 not converged, 0 at"));
}

TEST_F(DecodeDeadlines, OfARaceComeWithItsWinners) {
  const program_result r = decode("race:bp-osd|relay-bp(seed=1)", "--threads 2 --json");
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const auto wins = r.json()["race_wins"];
  ASSERT_EQ(wins.size(), 2U);
  EXPECT_EQ(wins.at("bp-osd").get<int>() + wins.at("relay-bp:seed=1").get<int>(), 5);
  EXPECT_TRUE(contains(decode("race:bp-osd|relay-bp").out, " of bp-osd\n"));
}

TEST_F(DecodeDeadlines, OfARaceComeWithItsMembersAndTheirSettings) {
  const std::string race = "race:relay-bp(seed=1,num_sets=2)|bp-osd|bp-osd,mode=best,deadline_us=1000000000";
  const auto report = decode(race, "--json --html " + path("page.html")).json();
  EXPECT_EQ(report.at("decoder"), "race");
  EXPECT_EQ(report.at("decoder_name"), race);
  std::vector<std::string> names;
  int answers = 0;
  for (const auto &member : report.at("race_members")) {
    names.push_back(member.at("name"));
    answers += member.at("answers").get<int>();
  }
  EXPECT_EQ(names, (std::vector<std::string>{"relay-bp:seed=1,num_sets=2", "bp-osd", "bp-osd"}));
  EXPECT_EQ(answers, 5);
  const auto &wins = report.at("race_wins");
  EXPECT_EQ(wins.at("relay-bp:seed=1,num_sets=2").get<int>() + wins.at("bp-osd").get<int>(), 5);
  EXPECT_TRUE(contains(read_file(path("page.html")), "num_sets=2)|bp-osd|bp-osd,mode=best")) << "the race of the page";
  EXPECT_EQ(decode("bp-osd:osd_order=0", "--json").json().at("decoder_name"), "bp-osd:osd_order=0");
}

// With detector 2 the errors of the plug-in are not those of the model.
TEST_F(DecodeDeadlines, AMemberOfARaceThatFailsIsNamed) {
  file("shots.01", "0010\n0010\n0001\n0001\n");
  const std::string race = "race:bp-osd|" + kEarly + ",mode=best", errors = "--errors_out " + path("errors.txt");
  const program_result r = decode(race, errors + " --json");
  ASSERT_EQ(r.exit_code, 0) << r.err;
  EXPECT_EQ(r.json()["race_member_faults"]["count"], 2);
  const std::string last = r.json()["race_member_faults"]["last"];
  EXPECT_TRUE(last.starts_with("member " + kEarly + ": plug-in early: ")) << last;
  EXPECT_TRUE(contains(decode(race, errors).out, "member faults   2; one of the last: member ")) << r.out;
  EXPECT_FALSE(decode("race:bp-osd|relay-bp", "--json").json().contains("race_member_faults"));
}

// A member of a race that never returns is waited for in the same place: where the decoders are destroyed.
TEST_F(DecodeDeadlines, ADecoderThatNeverReturnsDoesNotKeepTheProgramAfterItsReport) {
  file("shots.01", "0100\n");
  const auto begin = std::chrono::steady_clock::now();
  const program_result r =
      decode(std::string(CUDAQ_TEST_STUCK_DECODER) + ":hang=destroy,mark=" + path("mark"), "--json");
  EXPECT_EQ(r.exit_code, 0) << r.err;
  EXPECT_EQ(r.json()["shots"], 1);
  EXPECT_TRUE(contains(r.err, "the report is complete, but the program has not ended after 3 s")) << r.err;
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60)) << "the plug-in sleeps ten minutes";
}

TEST_F(DecodeDeadlines, ABrokenPromiseEndsTheRunAndIsNamed) {
  for (const auto &[broken, text] : std::initializer_list<std::pair<const char *, const char *>>{
           {"status", ": shot 0: internal error of the decoder: plug-in breaking: decode returned 17, accepted"},
           {"bits",
            ": shot 0: internal error of the decoder: plug-in breaking: decode set the observable 1, the model"},
           {"answer", "flip observable 0; the answer has it as 1"}}) {
    file("shots.01", "0101\n");
    expect_refused(kBreaking + ":break=" + broken, "--threads 2", text);
  }
}

// `cudaq-realtime decode --confidence`: the gaps of the observables.

class DecodeConfidence : public decode_files_test {
protected:
  void SetUp() override {
    // With D0 the answer is the first error, and the second one is the other value of L0. No error flips L1.
    file("model.dem", "error(0.1) D0\nerror(0.01) D0 L0\nerror(0.1) D1\nlogical_observable L1\n");
    file("shots.01", "10\n00\n10\n01\n");
    file("truth.01", "10\n00\n00\n00\n"); // the first answer is wrong
  }
  const double with_event = std::log(99.0) - std::log(9.0), without = std::log(99.0) + std::log(9.0);
};

TEST_F(DecodeConfidence, IsALineForEachShotOrARowOfDoubles) {
  for (const char *decoder : {"bp-osd", "bp-osd:confidence=1", "auto"})
    for (const char *threads : {"--threads 1 ", "--threads 3 "}) {
      const program_result r = decode(decoder, threads + ("--confidence " + path("gaps.txt")));
      if (std::string_view(decoder) == "auto" && contains(r.err, "lookup"))
        continue; // a build without PyMatching
      expect_answers(r, "00\n00\n00\n00\n");
      std::istringstream lines(read_file(path("gaps.txt")));
      for (const double expected : {with_event, without, with_event, without}) {
        std::string gap, other;
        ASSERT_TRUE(lines >> gap >> other);
        EXPECT_NEAR(std::stod(gap), expected, 1e-3);
        EXPECT_EQ(other, "inf");
      }
      EXPECT_FALSE(lines >> std::ws && !lines.eof());
    }
  ASSERT_EQ(decode("bp-osd", "--confidence " + path("gaps.f64")).exit_code, 0);
  const std::string bytes = read_file(path("gaps.f64"));
  ASSERT_EQ(bytes.size(), 4 * 2 * sizeof(double));
  double row[2];
  std::memcpy(row, bytes.data() + 2 * sizeof row, sizeof row);
  EXPECT_NEAR(row[0], with_event, 1e-9);
  EXPECT_EQ(row[1], HUGE_VAL);
}

TEST_F(DecodeConfidence, ReportsWhichShotsAreWrongAboveEachGap) {
  const program_result r = decode("bp-osd", "--confidence " + path("gaps.txt") + " --obs_in " + path("truth.01") +
                                                " --json " + path("report.json"));
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
  ASSERT_EQ(decode("bp-osd", options).exit_code, 0);
  EXPECT_FALSE(contains(read_file(path("page.html")), heading));
  ASSERT_EQ(decode("bp-osd", options + " --obs_in " + path("truth.01")).exit_code, 0);
  const std::string page = read_file(path("page.html"));
  EXPECT_TRUE(contains(page, heading)) << page;
  EXPECT_TRUE(contains(page, ">50 %</text>")) << "two of four shots are discarded, and none of the others is wrong";
}

// The second shot has no events: its answer needs no time, but the search for the other value of L0 does.
TEST_F(DecodeConfidence, OfAShotWithoutAnAnswerIsNotKnown) {
  const program_result r =
      decode("bp-osd:deadline_us=0.001", "--confidence " + path("gaps.txt") + " --json " + path("report.json"));
  ASSERT_EQ(r.exit_code, 0) << r.err;
  EXPECT_EQ(read_file(path("gaps.txt")), "nan nan\nnan inf\nnan nan\nnan nan\n");
  EXPECT_EQ(nlohmann::json::parse(read_file(path("report.json")))["confidence"]["unknown"], 4);
}

TEST_F(DecodeConfidence, IsRefusedWithAReason) {
  file("ring.dem", "error(0.1) D0 D1\nerror(0.1) D1 D2\nerror(0.1) D0 D2 L0\n");
  for (const char *decoder : {"lookup", "race:bp-osd|relay-bp"})
    expect_refused(decoder, "--confidence " + path("gaps.txt"), "confidence");
  for (const auto &[file, why] : {std::pair<std::string, std::string>{"-", "--confidence: name a file of its own"},
                                  {path("model.dem"), "this is the file of --dem"},
                                  {path("out.01"), "this is the file of --out"},
                                  {path("r") + " --json " + path("r"), "this is the file of --json"},
                                  {path("no/such/folder"), "No such file or directory"},
                                  {path("gaps.txt") + " --stream", "--confidence"},
                                  {"/dev/full", "--confidence /dev/full: No space left on device"}})
    expect_refused("bp-osd", "--confidence " + file, why);
}

// `cudaq-realtime decode --errors_out`: the errors of the corrections.

class DecodeErrors : public decode_files_test {
protected:
  void SetUp() override {
    file("model.dem", "error(0.1) D0 D1 D2 L0\nerror(0) D0\nerror(0.1) D0\nerror(0.1) D1 L1\n");
    file("shots.01", "111\n110\n000\n");
  }
};

TEST_F(DecodeErrors, AreWrittenInEachFormat) {
  for (const char *decoder : {"relay-bp", "bp-osd"}) {
    expect_answers(decode(decoder, "--threads 2 --errors_out " + path("errors.hits")), "10\n01\n00\n");
    EXPECT_EQ(read_file(path("errors.hits")), "0\n2,3\n\n") << decoder;
  }
  ASSERT_EQ(decode("bp-osd", "--errors_out " + path("errors.01")).exit_code, 0);
  EXPECT_EQ(read_file(path("errors.01")), "1000\n0011\n0000\n");
}

TEST_F(DecodeErrors, AreRefusedWithoutADecoderThatGivesThemAndAFileOfTheirOwn) {
  expect_refused("lookup", "--errors_out " + path("e.01"),
                 "--errors_out: lookup gives no errors of its correction; bp-osd and relay-bp do");
  const std::string other_name = (scratch_.path() / "." / "out.01").string();
  for (const auto &[file, why] : {std::pair<std::string, std::string>{"-", ": name a file of its own"},
                                  {path("model.dem"), " " + path("model.dem") + ": this is the file of --dem"},
                                  {other_name, " " + other_name + ": this is the file of --out"}})
    expect_refused("bp-osd", "--errors_out " + file, "--errors_out" + why);
}

} // namespace
} // namespace cudaq::realtime::tools::test
