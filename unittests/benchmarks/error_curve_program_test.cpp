// SPDX-License-Identifier: Apache-2.0
// `decoding` with several models: a run adds to the counts of the run before it what is missing.
#include "unittests/support/program_paths.h"
#include "unittests/tools/common/interrupted_program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fstream>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

namespace cudaq::realtime::tools::test {
namespace {

class ErrorCurveProgram : public ::testing::Test {
protected:
  void SetUp() override {
    for (const char *const p : {"0.003", "0.005"})
      std::filesystem::copy_file(std::string(CUDAQ_TEST_DATA) + "/surface_z_d3_p" + p + ".dem",
                                 file(fmt::format("d=3,p={},r=3.dem", p)));
  }
  [[nodiscard]] std::string file(const std::string &name) const { return (folder_.path() / name).string(); }
  [[nodiscard]] std::string models() const { return file("d=3,p=0.003,r=3.dem") + " " + file("d=3,p=0.005,r=3.dem"); }
  nlohmann::json points(const std::string &options) const {
    const auto report = run_good_program("decoding --json " + options);
    return report.is_discarded() ? nlohmann::json::array() : report.at("points");
  }
  static void refused(const std::string &options, const std::string &text) {
    const program_result r = run_program("decoding --decoder lookup " + options);
    EXPECT_EQ(r.exit_code, 2) << options << r.err;
    EXPECT_TRUE(contains(r.err, text)) << options << "\n" << r.err;
  }
  static std::vector<std::uint64_t> column(const nlohmann::json &points, const char *name) {
    std::vector<std::uint64_t> values;
    for (const auto &p : points)
      values.push_back(p.at(name).get<std::uint64_t>());
    return values;
  }

private:
  const scratch_folder folder_;
};

TEST_F(ErrorCurveProgram, ALaterRunAddsOnlyTheMissingShots) {
  const std::string all = "--decoder lookup --dem " + models();
  const auto once = points(all + " --shots 3000");
  EXPECT_EQ(column(once, "shots"), (std::vector<std::uint64_t>{3000, 3000}));
  EXPECT_GT(once.at(1).at("failures"), 5);
  EXPECT_EQ(once.at(0).at("distance"), 3);
  EXPECT_EQ(once.at(1).at("p"), 0.005);
  EXPECT_LT(once.at(0).at("logical_error_rate_per_round"), once.at(0).at("logical_error_rate"));

  const std::string csv = " --csv " + file("counts.csv");
  const std::string seeded = " --seed 1" + csv;
  points("--decoder lookup --shots 700 --dem " + file("d=3,p=0.003,r=3.dem") + seeded); // in the middle of a batch
  const auto more = points(all + " --shots 3000 --threads 2" + seeded);
  EXPECT_EQ(column(more, "added_shots"), (std::vector<std::uint64_t>{2300, 3000}));
  EXPECT_EQ(column(more, "failures"), column(once, "failures")) << "the same shots as in one run";
  const std::string counts = read_file(file("counts.csv"));
  const auto none = points(all + " --shots 3000" + csv);
  EXPECT_EQ(column(none, "added_shots"), (std::vector<std::uint64_t>{0, 0}));
  EXPECT_EQ(read_file(file("counts.csv")), counts) << "nothing was missing";
  EXPECT_EQ(points("--csv " + file("counts.csv")), none) << "the counts alone";
}

// Their counts may be added, as sinter does.
TEST_F(ErrorCurveProgram, TwoFilesWithoutASeedHaveOtherShots) {
  const auto seed = [&](const std::string &csv) {
    return run_good_program("decoding --json --decoder lookup --shots 300 --dem " + file("d=3,p=0.005,r=3.dem") +
                            " --csv " + file(csv))
        .at("seed");
  };
  EXPECT_NE(seed("first.csv"), seed("second.csv"));
}

TEST_F(ErrorCurveProgram, EachDecoderStopsAtItsFailures) {
  const auto stopped = points("--decoder lookup bp-osd --shots 1000000 --failures 20 --dem " + models());
  ASSERT_EQ(stopped.size(), 4);
  for (const auto &point : stopped) {
    EXPECT_GE(point.at("failures"), 20);
    EXPECT_LT(point.at("shots"), 100000);
  }
}

TEST_F(ErrorCurveProgram, ARunIsRefusedWhileAnotherOneAddsToTheFile) {
  const std::string csv = " --csv " + file("counts.csv");
  const std::string run = "--dem " + file("d=3,p=0.003,r=3.dem") + csv + " --shots ";
  points("--decoder lookup " + run + "700");
  const int held = ::open(file("counts.csv").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(::flock(held, LOCK_EX | LOCK_NB), 0) << "the run that has ended holds no lock";
  const std::string counts = read_file(file("counts.csv"));
  refused(run + "900", "another run adds its counts to this file");
  EXPECT_EQ(read_file(file("counts.csv")), counts);
  EXPECT_EQ(column(points(csv), "shots"), std::vector<std::uint64_t>{700}) << "to read needs no lock";
  ::close(held);
  EXPECT_EQ(column(points("--decoder lookup " + run + "900"), "shots"), std::vector<std::uint64_t>{900});
}

TEST_F(ErrorCurveProgram, AddsRowsInTheOrderOfTheColumnsOfTheFile) {
  const std::string head = "decoder,json_metadata,shots,custom_counts,strong_id,errors,seconds,discards\n";
  std::ofstream(file("counts.csv")) << head << "other,,10,,7f,1,0.5,0\n";
  const std::string run = "--decoder lookup --csv " + file("counts.csv") + " --dem " + file("d=3,p=0.003,r=3.dem");
  points(run + " --shots 700");
  EXPECT_EQ(column(points(run + " --shots 900"), "added_shots"), (std::vector<std::uint64_t>{200, 0}));
  EXPECT_TRUE(read_file(file("counts.csv")).starts_with(head));
}

TEST_F(ErrorCurveProgram, ASignalLeavesItsShotsInTheFile) {
  const std::vector<std::string> run{"decoding",         "--decoder",    "lookup",
                                     "--shots",          "100000000000", "--csv",
                                     file("counts.csv"), "--dem",        file("d=3,p=0.003,r=3.dem")};
  const auto report = report_after(SIGINT, run);
  ASSERT_TRUE(report.contains("points"));
  const auto shots = report.at("added_shots").get<std::uint64_t>();
  EXPECT_GT(shots, 0);
  EXPECT_EQ(column(points("--csv " + file("counts.csv")), "shots"), std::vector<std::uint64_t>{shots});
}

TEST_F(ErrorCurveProgram, AddsALineAfterOneWithoutItsEnd) {
  const std::string run = "--decoder lookup --csv " + file("counts.csv") + " --dem " + file("d=3,p=0.003,r=3.dem");
  points(run + " --shots 500");
  std::filesystem::resize_file(file("counts.csv"), std::filesystem::file_size(file("counts.csv")) - 1);
  points(run + " --shots 900");
  EXPECT_EQ(column(points("--csv " + file("counts.csv")), "shots"), std::vector<std::uint64_t>{900});
}

TEST_F(ErrorCurveProgram, DrawsTheCountsOfSinter) {
  std::ofstream(file("sinter.csv")) << "shots,errors,discards,seconds,decoder,strong_id,json_metadata,custom_counts\n"
                                       "1000,10,0,0.25,fusion,7f,\"{\"\"d\"\":5,\"\"p\"\":0.01,\"\"r\"\":5}\",\n";
  const auto one = points("--csv " + file("sinter.csv") + " --svg " + file("curve.svg"));
  ASSERT_EQ(one.size(), 1);
  EXPECT_EQ(one.at(0).at("decoder"), "fusion");
  EXPECT_EQ(one.at(0).at("rounds"), 5);
  const std::string picture = read_file(file("curve.svg"));
  EXPECT_TRUE(contains(picture, "fusion, d = 5")) << picture;
  EXPECT_FALSE(contains(picture, "var(")) << "for programs without CSS variables";
}

TEST_F(ErrorCurveProgram, RefusesAPictureWithoutDistanceOrErrorRateBeforeTheWork) {
  std::ofstream(file("mine.dem")) << "error(0.1) D0 L0\n";
  refused("--shots 100 --dem " + file("mine.dem") + " --csv " + file("counts.csv") + " --svg " + file("curve.svg"),
          "--svg: no model has its distance d and its error rate p in the name of its file, as "
          "surface_d5_p0.003_r5.dem or d=5,p=0.003,r=5.dem (mine.dem)");
  EXPECT_FALSE(std::filesystem::exists(file("curve.svg")));
  EXPECT_FALSE(std::filesystem::exists(file("counts.csv")));
  const program_result run = run_program("decoding --decoder lookup --shots 100 --dem " + file("mine.dem") + " " +
                                         models() + " --svg " + file("curve.svg"));
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(contains(run.out, "not in the picture, for want of d or p in the name: mine.dem\n")) << run.out;
  EXPECT_TRUE(contains(run.out, "d=3,p=0.005,r=3.dem ")) << "each row has its model: " << run.out;
  EXPECT_TRUE(contains(read_file(file("curve.svg")), "lookup, d = 3"));
}

TEST_F(ErrorCurveProgram, ThePictureOfTheDocumentsShowsItsCounts) {
  const std::string counts = std::string(CUDAQ_FIGURES) + "/correlated.csv";
  points("--csv " + counts + " --svg " + file("picture.svg"));
  EXPECT_EQ(read_file(file("picture.svg")), read_file(std::string(CUDAQ_FIGURES) + "/correlated.svg"))
      << "cudaq-realtime-bench decoding --csv docs/performance/rates/correlated.csv --svg "
         "docs/performance/rates/correlated.svg";
}

TEST_F(ErrorCurveProgram, RefusesWhatItCannotAddTo) {
  const std::string one = file("d=3,p=0.003,r=3.dem");
  refused("", "--dem is missing");
  refused("--dem " + one + " --csv " + file("d=3,p=0.005,r=3.dem"), "no column shots");
  refused("--csv " + file("missing.csv"), "has no counts");
  refused("--csv /dev/full --dem " + one, "is not a regular file");
  EXPECT_FALSE(std::filesystem::exists(file("missing.csv")));
  refused("--dem " + one + " " + one, "named twice");
  refused("--duration 1 --dem " + models(), "--duration");
  refused("--svg x.svg --dem " + one, "--svg");
  refused("--dem " + models() + " --csv /nonexistent/counts.csv", "cannot write");
}

} // namespace
} // namespace cudaq::realtime::tools::test
