// SPDX-License-Identifier: Apache-2.0
// `demo` and `pipeline` with a user's own model and shots.
#include "unittests/tools/decode/decode_test_support.h"

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

TEST(OwnData, AutoTakesBpOsdWhereMatchingCannotAndSaysWhy) {
  SKIP_WITHOUT_PYMATCHING();
  const std::string shots = " --shots 100 --dem " + kColorCode.file("dem") + " --in " + kColorCode.file("dets") +
                            " --obs_in " + kColorCode.file("obs");
  for (const std::string command : {"demo --rate 0", "pipeline"}) {
    const program_result r = run_program(command + shots);
    EXPECT_EQ(r.exit_code, 0) << r.err;
    EXPECT_TRUE(contains(r.out, "auto took bp-osd, because its first choice refuses the model: pymatching decoder: "
                                "line 2: a component has 3 detectors"))
        << r.out;
  }
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

} // namespace
} // namespace cudaq::realtime::tools::test
