// SPDX-License-Identifier: Apache-2.0
// `cudaq-realtime decode`: the answers are PyMatching's, in each format, with any number of threads.
#include "unittests/support/program_paths.h"
#include "unittests/tools/decode/decode_test_support.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <regex>
#include <sys/stat.h>

namespace cudaq::realtime::tools::test {
namespace {

/// A file of this set.
std::string d5(const std::string &ending) { return std::string(CUDAQ_TEST_DATA) + "/surface_z_d5_p0.005." + ending; }

// Known failure 68.
TEST(DecodeProgram, PredictsAsPyMatchingFromAndToEachFormat) {
  SKIP_WITHOUT_PYMATCHING();
  const scratch_folder scratch;
  for (const own_set &set : kOwnSets)
    for (const char *threads : {"1", "4"}) {
      SCOPED_TRACE(std::string(set.name) + " with threads: " + threads);
      const std::string out = (scratch.path() / ("out." + std::string(set.format))).string();
      const program_result r = run_program("decode " + set.options() + "--out " + out + " --threads " + threads +
                                           " --json " + (scratch.path() / "report").string());
      ASSERT_EQ(r.exit_code, 0) << r.err;
      EXPECT_EQ(read_file(out), read_file(set.file("pred")));
      EXPECT_TRUE(contains(r.out, "logical errors  " + std::to_string(set.logical_errors) + " of 128, rate")) << r.out;
      EXPECT_EQ(r.err, "");
      const auto j = nlohmann::json::parse(read_file(scratch.path() / "report"));
      EXPECT_EQ(j.at("shots"), kOwnShots);
      EXPECT_EQ(j.at("logical_errors"), set.logical_errors);
      EXPECT_EQ(j.at("differences_from_predictions"), 0);
      EXPECT_LT(j.at("logical_error_rate_95_percent").at(0), j.at("logical_error_rate"));
      EXPECT_GT(j.at("logical_error_rate_95_percent").at(1), j.at("logical_error_rate"));
    }
}

TEST(DecodeProgram, ReadsStdinAndWritesStdoutInAnyFormat) {
  SKIP_WITHOUT_PYMATCHING();
  // Through all formats and back: d5 has 1000 shots, so ptb64 cannot hold them.
  const std::string dem = "decode --dem " + d5("dem") + " ";
  const std::string expected = read_file(d5("pred.b8"));
  const scratch_folder scratch;
  const auto shots = scratch.path() / "predictions";
  for (const char *format : {"01", "b8", "r8", "hits", "dets"}) {
    const program_result r =
        run_program(dem + "--in_format b8 --threads 2 --out_format " + format, CUDAQ_TOOL_PATH, d5("dets.b8"));
    ASSERT_EQ(r.exit_code, 0) << r.err;
    EXPECT_TRUE(contains(r.err, "decoded         1000 shots")) << r.err;
    if (std::string(format) == "b8") {
      EXPECT_EQ(r.out, expected);
    }
    // The predictions are right observables of themselves.
    std::ofstream(shots, std::ios::binary) << r.out;
    const program_result again =
        run_program(dem + "--in " + d5("dets.b8") + " --out /dev/null --obs-in-format " + format + " --obs-in -",
                    CUDAQ_TOOL_PATH, shots);
    EXPECT_EQ(again.exit_code, 0) << again.err;
    EXPECT_TRUE(contains(again.out, "logical errors  0 of 1000")) << format << again.out;
  }
}

TEST(DecodeProgram, TheNamedSetsHaveTheirPredictions) {
  for (const char *name :
       {"surface_z_d3_p0.005", "surface_z_d5_p0.003", "surface_z_d7_p0.005", "surface_z_d13_p0.005"}) {
    const std::string prefix = std::string(CUDAQ_TEST_DATA) + "/" + name;
    if (!qec::realtime::pymatching_available() && !contains(name, "_d3_"))
      GTEST_SKIP() << "PyMatching is not built in, and the lookup decoder is for d3";
    const program_result r = run_program("decode --dem " + prefix + ".dem --in " + prefix + ".dets.b8 --predictions " +
                                         prefix + ".pred.b8 --out_format b8 --threads 3");
    EXPECT_EQ(r.exit_code, 0) << r.err;
    EXPECT_EQ(r.out, read_file(prefix + ".pred.b8")) << name;
  }
}

TEST(DecodeProgram, AnswersStayInOrderOverManyBatches) {
  SKIP_WITHOUT_PYMATCHING();
  const scratch_folder scratch;
  const auto shots = scratch.path() / "shots.b8", predictions = scratch.path() / "pred.b8";
  std::ofstream detections(shots, std::ios::binary), golden(predictions, std::ios::binary);
  for (int k = 0; k < 30; ++k) {
    detections << read_file(d5("dets.b8"));
    golden << read_file(d5("pred.b8"));
  }
  detections.close();
  golden.close();
  const program_result r = run_program("decode --dem " + d5("dem") + " --in_format b8 --out_format b8 " +
                                           "--threads 4 --predictions " + predictions.string(),
                                       CUDAQ_TOOL_PATH, shots);
  EXPECT_EQ(r.exit_code, 0) << r.err;
  EXPECT_EQ(r.out, read_file(predictions));
}

TEST(DecodeProgram, ObservablesMayBeAppendedToTheShots) {
  SKIP_WITHOUT_PYMATCHING();
  const scratch_folder scratch;
  const auto file = [&](const std::string &name, const std::string &content) {
    std::ofstream(scratch.path() / name) << content;
    return (scratch.path() / name).string() + " ";
  };
  const std::string run = "decode --in_includes_appended_observables --dem " +
                          file("m.dem", "error(0.1) D0 L0\nerror(0.1) D0 D1\nerror(0.1) D1 L1\n") +
                          "--out /dev/null --in ";
  // Shot 0 is D0 alone, which is L0; shot 1 says so wrongly.
  for (const std::string &shots : {file("s.01", "1010\n1001\n"), file("s.dets", "shot D0 L0\nshot D0 L1\n")}) {
    const program_result r = run_program(run + shots);
    EXPECT_EQ(r.exit_code, 0) << r.err;
    EXPECT_TRUE(contains(r.out, "logical errors  1 of 2")) << r.out;
  }
}

TEST(DecodeProgram, DifferentPredictionsAreAFailedCheck) {
  SKIP_WITHOUT_PYMATCHING();
  const own_set &set = kOwnSets[1];
  const program_result r = run_program("decode --dem " + set.file("dem") + " --in " + set.file("dets") +
                                       " --predictions " + set.file("obs") + " --out /dev/null");
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_TRUE(contains(r.out, "differences     14 of 128")) << r.out;
  EXPECT_TRUE(contains(r.err, "FAILED: answers differ")) << r.err;
}

TEST(DecodeProgram, ThePredecoderIsAsInThePipeline) {
  SKIP_WITHOUT_PYMATCHING();
  const std::string prefix = std::string(CUDAQ_TEST_DATA) + "/surface_z_d7_p0.005";
  const program_result r = run_program("decode --predecoder local --out /dev/null --dem " + prefix + ".dem --in " +
                                       prefix + ".dets.b8 --obs_in " + prefix + ".obs.b8");
  EXPECT_EQ(r.exit_code, 0) << r.err;
  const auto pipeline = run_good_program("pipeline --json --noise 0.005 --predecoder local --shots 10 --data '" +
                                         std::string(CUDAQ_TEST_DATA) + "'");
  ASSERT_FALSE(pipeline.is_discarded());
  EXPECT_TRUE(
      contains(r.out, "logical errors  " + pipeline.at("logical_errors").at("with_predecoder").dump() + " of 800"))
      << r.out;
}

TEST(DecodeProgram, AutoTakesNoPredecoderAndSaysSo) {
  SKIP_WITHOUT_PYMATCHING();
  const own_set &set = kOwnSets[1];
  const std::string run = "decode --out /dev/null --json --dem " + set.file("dem") + " --in " + set.file("dets") +
                          " --obs_in " + set.file("obs") + " --decoder pymatching";
  const auto with = run_good_program(run + " --predecoder auto"), without = run_good_program(run);
  ASSERT_FALSE(with.is_discarded() || without.is_discarded());
  EXPECT_EQ(with.at("predecoder"), "passthrough");
  EXPECT_TRUE(contains(with.at("predecoder_choice"), "auto takes no predecoder"));
  EXPECT_EQ(with.at("logical_errors"), without.at("logical_errors"));
}

TEST(DecodeProgram, AutoTakesBpOsdForAColourCodeAndSaysWhy) {
  SKIP_WITHOUT_PYMATCHING();
  const std::string shots = " --dem " + kColorCode.file("dem") + " --in " + kColorCode.file("dets") + " --obs_in " +
                            kColorCode.file("obs"),
                    run = "decode --out /dev/null" + shots;
  for (const std::string &command : {run, "demo --rate 0 --shots 100" + shots, "pipeline --shots 100" + shots}) {
    const program_result r = run_program(command);
    EXPECT_EQ(r.exit_code, 0) << r.err;
    EXPECT_TRUE(contains(r.out,
                         "auto took bp-osd, because its first choice refuses the model: pymatching decoder: line "
                         "2: a component has 3 detectors"))
        << r.out;
  }
  const auto j = run_good_program(run + " --json"), named = run_good_program(run + " --json --decoder bp-osd");
  ASSERT_FALSE(j.is_discarded() || named.is_discarded());
  EXPECT_EQ(j.at("decoder"), "bp-osd");
  EXPECT_TRUE(contains(j.at("decoder_choice"), "detectors, matching takes one or two"));
  EXPECT_EQ(j.at("logical_errors"), named.at("logical_errors"));
  EXPECT_FALSE(named.contains("decoder_choice"));
}

// What `--decoder auto` takes: the reports name it, and the reason comes before the work.

TEST(DecodeChoice, IsReportedBeforeTheFirstShotComes) {
  SKIP_WITHOUT_PYMATCHING();
  const scratch_folder scratch;
  const std::string fifo = (scratch.path() / "shots").string();
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  const int shots = open(fifo.c_str(), O_RDWR | O_CLOEXEC); // a writer, so that the program can open it
  ASSERT_GE(shots, 0);
  const std::string command = "timeout -k 2 60 '" + std::string(CUDAQ_TOOL_PATH) +
                              "' decode --out /dev/null --in_format dets --dem '" + kColorCode.file("dem") +
                              "' --in '" + fifo + "'";
  std::FILE *const out = popen(command.c_str(), "r");
  ASSERT_NE(out, nullptr);
  std::array<char, 4096> line{};
  ASSERT_NE(std::fgets(line.data(), line.size(), out), nullptr);
  EXPECT_TRUE(contains(line.data(), "decoder         auto took bp-osd, because its first choice refuses"))
      << line.data();
  const std::string text = read_file(kColorCode.file("dets"));
  EXPECT_EQ(write(shots, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  close(shots);
  std::string rest;
  while (std::fgets(line.data(), line.size(), out) != nullptr)
    rest += line.data();
  EXPECT_EQ(pclose(out), 0);
  EXPECT_TRUE(contains(rest, "decoded         128 shots")) << rest;
  EXPECT_FALSE(contains(rest, "auto took")) << "once";
}

TEST(DecodeChoice, AStreamNamesTheDecoderOfItsWindowsAndTheReason) {
  SKIP_WITHOUT_PYMATCHING();
  const scratch_folder scratch;
  const auto decoded = [&](const std::string &round, const std::string &errors, const std::string &bits) {
    std::ofstream(scratch.path() / "m.dem") << "repeat 9 {\n" + round + errors + "shift_detectors(1) " +
                                                   std::to_string(bits.size()) + "\n}\n" + round + "error(0.1) D0\n";
    std::ofstream shots(scratch.path() / "s.01");
    for (int k = 0; k < 10; ++k)
      shots << bits << "\n";
    shots.close();
    return "decode --stream --commit 2 --buffer 2 --out /dev/null --dem " + (scratch.path() / "m.dem").string() +
           " --in " + (scratch.path() / "s.01").string();
  };
  const std::string graph = decoded("detector(0) D0\n", "error(0.1) D0 D1 L0\nerror(0.1) D0\n", "0");
  auto j = run_good_program(graph + " --json");
  ASSERT_FALSE(j.is_discarded());
  EXPECT_EQ(j.at("decoder"), "pymatching");
  EXPECT_FALSE(j.contains("decoder_choice"));
  EXPECT_TRUE(contains(j.at("stream"), "a repetition has 1 detector in 1 round; pymatching; sequential"));
  const std::string hyper = decoded("detector(0) D0\ndetector(0) D1\ndetector(0) D2\n",
                                    "error(0.1) D0 D1 D2 L0\nerror(0.1) D0\nerror(0.1) D1\nerror(0.1) D2\n", "000");
  j = run_good_program(hyper + " --json");
  ASSERT_FALSE(j.is_discarded());
  EXPECT_EQ(j.at("decoder"), "bp-osd");
  EXPECT_TRUE(contains(j.at("decoder_choice"), "auto took bp-osd, because its first choice refuses "));
  const std::string text = run_program(hyper).out;
  EXPECT_TRUE(text.starts_with("decoder         auto took bp-osd, because")) << text;
  EXPECT_TRUE(contains(text, "; bp-osd; sequential")) << text;
}

// The pages of `decode --html` say what was measured, and whether anything was checked.

class DecodePages : public decode_files_test {
protected:
  [[nodiscard]] std::string page_of(const std::string &options) const {
    const std::string page = (scratch_.path() / "page.html").string();
    const program_result r = run_program("decode --decoder lookup --out /dev/null " + options + " --html " + page);
    EXPECT_EQ(r.exit_code, 0) << r.err;
    return read_file(page);
  }
  /// The green result of a page.
  static constexpr const char *kGood = "<p class=\"result good\">Good: every check passed";
};

TEST_F(DecodePages, ARunWithoutObservablesAndPredictionsCheckedNothing) {
  const std::string set = std::string(CUDAQ_TEST_DATA) + "/surface_z_d3_p0.003";
  const std::string data = "--dem " + set + ".dem --in " + set + ".dets.b8";
  const std::string page = page_of(data);
  EXPECT_TRUE(contains(page, "<p class=\"result \">Nothing was checked: the shots came without"));
  EXPECT_FALSE(contains(page, "Good:"));
  EXPECT_TRUE(contains(page_of(data + " --obs_in " + set + ".obs.b8"), kGood));
}

TEST_F(DecodePages, OfStreamsHaveTheDecodeTimeOfWindows) {
  const std::string model = file("m.dem", "repeat 9 {\ndetector(0) D0\nerror(0.1) D0 D1 L0\nerror(0.1) D0\n"
                                          "shift_detectors(1) 1\n}\ndetector(0) D0\nerror(0.1) D0\n");
  const std::string data =
      "--stream --commit 2 --buffer 2 --dem " + model + " --in " + file("s.01", "0\n0\n0\n0\n0\n0\n0\n0\n0\n0\n");
  const std::string page = page_of(data);
  for (const char *title : {">decode time (logarithmic)<", ">windows (logarithmic)<", "<th>windows</th>",
                            "Nothing was checked: the stream came without observables (--obs_in)"})
    EXPECT_TRUE(contains(page, title)) << title;
  for (const char *word : {"latency", "requests", "Good:"})
    EXPECT_FALSE(contains(page.substr(0, page.find("All figures")), word)) << word;
  EXPECT_TRUE(contains(page_of(data + " --obs_in " + file("o.01", "0\n")), kGood));
}

TEST_F(DecodePages, TheHelpPromisesPlotsOfStreamsOnly) {
  const std::string help = std::regex_replace(run_program("decode --help").out, std::regex("\\s+"), " ");
  EXPECT_TRUE(contains(help, "report as one HTML page, into FILE; with plots of the windows if --stream")) << help;
}

} // namespace
} // namespace cudaq::realtime::tools::test
