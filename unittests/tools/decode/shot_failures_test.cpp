// SPDX-License-Identifier: Apache-2.0
// A shot without an answer is a failure of the logical error rate, whichever command plays it.
#include "unittests/support/program_paths.h"
#include "unittests/tools/common/run_program.h"

#include <gtest/gtest.h>

namespace cudaq::realtime::tools::test {
namespace {

constexpr int kShots = 1000;

std::string own_shots() {
  const std::string set = std::string(CUDAQ_TEST_DATA) + "/surface_z_d3_p0.005";
  return " --dem " + set + ".dem --in " + set + ".dets.b8 --obs_in " + set + ".obs.b8 --json";
}

/// The report of a command that decodes or plays each recorded shot once. Shots without an answer fail a player.
nlohmann::json report_of(const std::string &command, const std::string &decoder) {
  return run_program(command + own_shots() + " --decoder '" + decoder + "'").json();
}

TEST(ShotFailures, HaveTheSameRateInDecodeAndEmulate) {
  // Belief propagation alone gives up on the hard shots.
  const std::string decoder = "relay-bp:pre_iter=2,num_sets=0,set_max_iter=1";
  const auto decoded = report_of("decode --out /dev/null", decoder);
  const auto played = report_of("emulate --transport ring --shots 1000", decoder);
  ASSERT_FALSE(decoded.is_discarded() || played.is_discarded());
  EXPECT_EQ(decoded.at("shots"), kShots);
  EXPECT_EQ(played.at("shots"), kShots);
  EXPECT_GT(decoded.at("unanswered"), 0) << "else nothing is tested";
  EXPECT_GE(decoded.at("logical_errors"), decoded.at("unanswered"));
  for (const char *same : {"unanswered", "logical_errors", "logical_error_rate"})
    EXPECT_EQ(played.at(same), decoded.at(same)) << same;
  EXPECT_EQ(played.at("shots_answered").get<int>() + played.at("unanswered").get<int>(), kShots);
}

TEST(ShotFailures, OfADecoderThatGivesUpArePlayedAndCountedInDemoAndPipeline) {
  const std::string decoder = "relay-bp:pre_iter=2,num_sets=0,set_max_iter=1";
  const auto decoded = report_of("decode --out /dev/null", decoder);
  ASSERT_GT(decoded.at("not_converged"), 0) << "else nothing is tested";
  for (const char *command : {"demo --shots 1000 --rate 0", "pipeline --shots 1000 --workers 1"}) {
    const program_result run = run_program(command + own_shots() + " --decoder '" + decoder + "'");
    EXPECT_EQ(run.exit_code, 0) << command << run.err;
    const auto report = run.json();
    ASSERT_FALSE(report.is_discarded()) << command << run.err;
    const bool is_demo = report.contains("passes");
    const auto &played = is_demo ? report.at("passes").at(0) : report;
    for (const char *same : {"unanswered", "not_converged"})
      EXPECT_EQ(played.at(same), decoded.at(same)) << command << same;
    EXPECT_EQ(is_demo ? played.at("logical_errors") : played.at("logical_errors").at("with_predecoder"),
              decoded.at("logical_errors"))
        << command;
    EXPECT_EQ(played.at("mismatches"), 0) << command;
    EXPECT_EQ(played.at("error_statuses"), 0) << command;
  }
}

TEST(ShotFailures, AreAllShotsOfADecoderThatIsAlwaysLate) {
  const std::string late = "lookup:deadline_us=0.001", in_time = "lookup";
  const auto decoded = report_of("decode --out /dev/null", late);
  EXPECT_EQ(decoded.at("late"), kShots);
  EXPECT_EQ(decoded.at("late_shots").size(), 1000U);
  EXPECT_EQ(decoded.at("late_shots").at(7), 7);
  EXPECT_EQ(decoded.at("unanswered"), 0);
  EXPECT_EQ(decoded.at("logical_errors"), kShots);
  EXPECT_EQ(report_of("decode --out /dev/null --late answer", late).at("logical_errors"),
            report_of("decode --out /dev/null", in_time).at("logical_errors"))
      << "as asked for";
  const auto played = report_of("emulate --transport ring --shots 1000", late);
  EXPECT_EQ(played.at("deadline_statuses"), kShots);
  EXPECT_EQ(played.at("logical_errors"), kShots);
  const auto pass = report_of("demo --shots 1000 --rate 0", late).at("passes").at(0);
  EXPECT_EQ(pass.at("unanswered"), kShots);
  EXPECT_EQ(pass.at("logical_error_rate"), 1.0);
}

} // namespace
} // namespace cudaq::realtime::tools::test
