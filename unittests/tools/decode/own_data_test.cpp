// SPDX-License-Identifier: Apache-2.0
// `demo` and `pipeline` with a user's own model and shots.
#include "unittests/support/program_paths.h"
#include "unittests/tools/common/run_program.h"
#include "unittests/tools/decode/decode_test_support.h"

#include <fstream>
#include <gtest/gtest.h>

namespace cudaq::realtime::tools::test {
namespace {

// Known failure 68.
TEST(OwnData, TheDemoDecodesIt) {
  SKIP_WITHOUT_PYMATCHING();
  for (const own_set &set : kOwnSets) {
    SCOPED_TRACE(set.name);
    const auto j = run_good_program("demo --json --shots 256 --rate 0 " + set.options());
    ASSERT_FALSE(j.is_discarded());
    const auto &pass = j.at("passes").at(0);
    EXPECT_EQ(pass.at("shots_answered"), 256);
    EXPECT_EQ(pass.at("mismatches"), 0);
    EXPECT_EQ(pass.at("expected_answers"), "given predictions");
    EXPECT_EQ(pass.at("logical_errors"), 2 * set.logical_errors) << "each shot is sent twice";
    EXPECT_EQ(j.at("data").at("name"), std::string(set.name) + ".dem");
  }
}

TEST(OwnData, ThePipelineDecodesIt) {
  SKIP_WITHOUT_PYMATCHING();
  for (const own_set &set : kOwnSets) {
    SCOPED_TRACE(set.name);
    const auto j = run_good_program("pipeline --json --shots 256 --workers 2 " + set.options());
    ASSERT_FALSE(j.is_discarded());
    EXPECT_EQ(j.at("completed"), 256);
    EXPECT_EQ(j.at("mismatches"), 0);
    EXPECT_EQ(j.at("logical_errors").at("shots"), kOwnShots);
    EXPECT_EQ(j.at("logical_errors").at("with_predecoder"), set.logical_errors);
    EXPECT_TRUE(j.at("config").at("rounds").is_null());
  }
}

TEST(OwnData, ShotsAloneAreCheckedAgainstTheOfflineDecode) {
  SKIP_WITHOUT_PYMATCHING();
  const own_set &toric = kOwnSets[4];
  const std::string options = "--json --shots 128 --dem " + toric.file("dem") + " --in " + toric.file("dets");
  const auto demo = run_good_program("demo --rate 0 " + options);
  ASSERT_FALSE(demo.is_discarded());
  const auto &pass = demo.at("passes").at(0);
  EXPECT_EQ(pass.at("expected_answers"), "same decoder offline");
  EXPECT_EQ(pass.at("mismatches"), 0);
  EXPECT_TRUE(pass.at("logical_errors").is_null()) << "not counted is not 0";
  EXPECT_TRUE(pass.at("differences_from_pymatching").is_null());
  const auto pipeline = run_good_program("pipeline " + options);
  ASSERT_FALSE(pipeline.is_discarded());
  EXPECT_TRUE(pipeline.at("logical_errors").is_null());
  EXPECT_EQ(pipeline.at("config").at("observables"), 80);
}

TEST(OwnData, OtherPredictionsAreAFailedCheck) {
  SKIP_WITHOUT_PYMATCHING();
  const own_set &set = kOwnSets[1];
  const std::string options =
      " --shots 200 --dem " + set.file("dem") + " --in " + set.file("dets") + " --predictions " + set.file("obs");
  const program_result demo = run_program("demo --rate 0" + options);
  EXPECT_EQ(demo.exit_code, 1);
  EXPECT_TRUE(contains(demo.err, "corrections differ from the expected ones")) << demo.err;
  const program_result pipeline = run_program("pipeline" + options);
  EXPECT_EQ(pipeline.exit_code, 1);
  EXPECT_TRUE(contains(pipeline.err, "14 of 128 answers differ from --predictions")) << pipeline.err;
}

TEST(OwnData, WithoutPredictionsADecoderHasMatchingAsItsReference) {
  SKIP_WITHOUT_PYMATCHING();
  const own_set &set = kOwnSets[0];
  const std::string run = "demo --rate 0 --shots 200 --json --dem " + set.file("dem") + " --in " + set.file("dets") +
                          " --obs_in " + set.file("obs") + " --decoder ";
  const auto other = run_good_program(run + "bp-osd"), same = run_good_program(run + "pymatching");
  ASSERT_FALSE(other.is_discarded() || same.is_discarded());
  EXPECT_EQ(other.at("reference").at("name"), "pymatching");
  EXPECT_EQ(other.at("reference").at("shots"), kOwnShots);
  EXPECT_EQ(other.at("reference").at("reference_logical_errors"), set.logical_errors);
  EXPECT_TRUE(same.at("reference").is_null()) << "it would be compared with itself";
}

TEST(OwnData, IsRefusedIfFilesOrOptionsDoNotFit) {
  const own_set &set = kOwnSets[0], &other = kOwnSets[1];
  const std::string dem = " --dem " + set.file("dem");
  for (const std::string command : {"demo", "pipeline"}) {
    const auto expect_refusal = [&](const std::string &options, const std::string &text) {
      const program_result r = run_program(command + options);
      EXPECT_EQ(r.exit_code, 2) << options;
      EXPECT_TRUE(contains(r.err, text)) << command << options << "\n" << r.err;
    };
    expect_refusal(dem, "--dem requires --in");
    expect_refusal(" --in " + set.file("dets"), "--in requires --dem");
    expect_refusal(dem + " --in " + set.file("dets") + " --noise 0.003", "excludes");
    expect_refusal(dem + " --in -", "needs a file");
    expect_refusal(dem + " --in /dev/null --in_format b8", "there are no shots");
    expect_refusal(dem + " --in " + other.file("dets"), "rotated_x.dets.b8: shot ");
  }
}

// A shot without an answer is a failure of the logical error rate, whichever command plays it.

constexpr int kShots = 1000;

std::string own_shots() {
  const std::string set = std::string(CUDAQ_TEST_DATA) + "/surface_z_d3_p0.005";
  return " --dem " + set + ".dem --in " + set + ".dets.b8 --obs_in " + set + ".obs.b8";
}

/// A command that decodes or plays each shot once, and whose answers are checked by its own decoder.
constexpr const char *kCommands[] = {"decode --out /dev/null", "emulate --transport ring --shots 1000",
                                     "demo --shots 1000 --rate 0", "pipeline --shots 1000 --workers 1"};

/// Belief propagation alone gives up on the hard shots.
const std::string kGivesUp = "relay-bp:pre_iter=2,num_sets=0,set_max_iter=1";

/// The fields of the shots; the pass of `demo`.
nlohmann::json shots_of(const program_result &run) {
  const auto report = run.json();
  return report.contains("passes") ? report.at("passes").at(0) : report;
}

std::uint64_t logical_errors_of(const nlohmann::json &shots) {
  const auto &errors = shots.at("logical_errors");
  return errors.is_object() ? errors.at("with_predecoder").get<std::uint64_t>() : errors.get<std::uint64_t>();
}

TEST(ShotFailures, OfADecoderThatGivesUpAreTheSameInEachProgram) {
  const auto decoded = shots_of(run_program(kCommands[0] + own_shots() + " --decoder " + kGivesUp + " --json"));
  ASSERT_GT(decoded.at("not_converged"), 0) << "else nothing is tested";
  EXPECT_EQ(decoded.at("unanswered"), decoded.at("not_converged"));
  EXPECT_GE(decoded.at("logical_errors"), decoded.at("unanswered"));
  const std::string count = decoded.at("unanswered").dump(),
                    text = count + " of 1000 shots: " + count + " not converged, 0 at the deadline",
                    verdict = "ok, but the decoder has no answer to " + text + "; every other answer as";
  for (const std::string command : kCommands) {
    const program_result run = run_program(command + own_shots() + " --decoder " + kGivesUp + " --json");
    EXPECT_EQ(run.exit_code, 0) << command << ": a result of the decoder\n" << run.err;
    const auto shots = shots_of(run);
    for (const char *same : {"unanswered", "not_converged"})
      EXPECT_EQ(shots.at(same), decoded.at(same)) << command << same;
    EXPECT_EQ(logical_errors_of(shots), logical_errors_of(decoded)) << command;
    EXPECT_EQ(shots.value("mismatches", 0) + shots.value("error_statuses", 0), 0) << command;
    const program_result people = run_program(command + own_shots() + " --decoder " + kGivesUp);
    EXPECT_TRUE(contains(people.out, " " + text + "\n")) << people.out;
    EXPECT_TRUE(contains(people.out, "; with " + count + " ")) << people.out;
    EXPECT_FALSE(contains(people.out, "\nok: ")) << people.out;
    EXPECT_EQ(contains(people.out, verdict), command == kCommands[2] || command == kCommands[3]) << people.out;
  }
}

/// No single error explains a shot, and the decoder of the example knows no other answers.
TEST(ShotFailures, OfADecoderThatNeverConvergesAreNoGoodRun) {
  const scratch_folder scratch;
  const auto file = [&](const char *name, const std::string &text) {
    std::ofstream(scratch.path() / name) << text;
    return (scratch.path() / name).string();
  };
  std::string events, observables;
  for (int shot = 0; shot < 1000; ++shot) {
    events += "11\n";
    observables += "1\n";
  }
  const std::string set = " --dem " + file("a.dem", "error(0.1) D0 L0\nerror(0.1) D1\n") + " --in " +
                          file("a.01", events) + " --obs_in " + file("o.01", observables) + " --decoder " +
                          CUDAQ_TEST_PLUGIN;
  for (const std::string command : kCommands) {
    const program_result run = run_program(command + set + " --json"), people = run_program(command + set);
    EXPECT_EQ(run.exit_code, 0) << command << run.err;
    const auto shots = shots_of(run);
    EXPECT_EQ(shots.at("unanswered"), kShots) << command;
    EXPECT_EQ(shots.at("not_converged"), kShots) << command;
    EXPECT_EQ(logical_errors_of(shots), kShots) << command;
    EXPECT_TRUE(contains(people.out, "1000 of 1000 shots: 1000 not converged, 0 at the deadline\n")) << people.out;
    EXPECT_FALSE(contains(people.out, "\nok")) << people.out;
  }
}

TEST(ShotFailures, AreAllShotsOfADecoderThatIsAlwaysLate) {
  const std::string late = " --decoder lookup:deadline_us=0.001";
  const auto decode = [](const std::string &more) {
    return run_good_program(kCommands[0] + own_shots() + more + " --json");
  };
  const auto decoded = decode(late);
  EXPECT_EQ(decoded.at("late"), kShots);
  EXPECT_EQ(decoded.at("late_shots").size(), 1000U);
  EXPECT_EQ(decoded.at("late_shots").at(7), 7);
  EXPECT_EQ(decoded.at("unanswered"), 0);
  EXPECT_EQ(decoded.at("logical_errors"), kShots);
  EXPECT_EQ(decode(late + " --late answer").at("logical_errors"), decode(" --decoder lookup").at("logical_errors"))
      << "as asked for";
  for (const std::string command : {kCommands[1], kCommands[2], kCommands[3]}) {
    const program_result run = run_program(command + own_shots() + late + " --json");
    EXPECT_EQ(run.exit_code, 0) << command << run.err;
    const auto shots = shots_of(run);
    EXPECT_EQ(shots.at("unanswered"), kShots) << command;
    EXPECT_EQ(shots.at("deadline_missed"), kShots) << command;
    EXPECT_EQ(logical_errors_of(shots), kShots) << command;
    const program_result people = run_program(command + own_shots() + late);
    EXPECT_TRUE(contains(people.out, "1000 of 1000 shots: 0 not converged, 1000 at the deadline\n")) << people.out;
    EXPECT_FALSE(contains(people.out, "\nok")) << people.out;
  }
}

} // namespace
} // namespace cudaq::realtime::tools::test
