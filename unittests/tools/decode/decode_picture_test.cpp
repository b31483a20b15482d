// SPDX-License-Identifier: Apache-2.0
// `cudaq-realtime decode --svg`: the correction of a shot over the places of its code.
#include "unittests/qec/model_text.h"
#include "unittests/tools/decode/decode_test_support.h"

#include <regex>

namespace cudaq::realtime::tools::test {
namespace {

std::size_t count(const std::string &text, const std::string &pattern) {
  const std::regex form(pattern);
  return static_cast<std::size_t>(std::distance(std::sregex_iterator(text.begin(), text.end(), form), {}));
}

class DecodePicture : public decode_files_test {
protected:
  void SetUp() override {
    // Three detectors in a row, seen twice: D0 to D2 at t = 0, D3 to D5 at t = 1.
    std::string places;
    for (int d = 0; d < 6; ++d)
      places += "detector(" + std::to_string(2 * (d % 3)) + ", 1, " + std::to_string(d / 3) + ") D" +
                std::to_string(d) + "\n";
    file("model.dem", places + kErrors);
    file("bare.dem", kErrors);
    file("loop.dem", "repeat 9 {\ndetector(0) D0\nerror(0.1) D0 D1 L0\nerror(0.1) D0\n"
                     "shift_detectors(1) 1\n}\ndetector(0) D0\nerror(0.1) D0\n");
  }
  [[nodiscard]] program_result decode(const std::string &events, const std::string &more,
                                      const std::string &model = "model.dem") const {
    file("shots.hits", events);
    return run_program("decode --dem " + path(model) + " --in " + path("shots.hits") + " --out /dev/null --svg " +
                       path("shot.svg") + " " + more);
  }
  static constexpr const char *kErrors = "error(0.01) D0 L0\nerror(0.02) D0 D1\nerror(0.02) D1 D2\nerror(0.02) D1 D4\n"
                                         "error(0.001) D1 D5\nerror(0.02) D3 D4\nerror(0.02) D4 D5\n";
};

TEST_F(DecodePicture, HasEachErrorOfTheCorrection) {
  const struct {
    const char *events, *title;
    std::size_t fired, plain, flipping, moving, rings;
  } cases[] = {
      {"0\n", "1 event, 1 error of the correction; it flips L0<", 1, 0, 1, 0, 0}, // to the boundary
      {"1,2\n", "2 events, 1 error of the correction; it flips no observable<", 2, 1, 0, 0, 0},
      {"1,4\n", "2 events, 1 error of", 2, 0, 0, 0, 2},  // a wrong measurement
      {"0,5\n", "2 events, 2 errors of", 2, 1, 0, 1, 2}, // D0 D1, and D1 D5, which also moves: 10.8; by D4 it is 11.7
  };
  for (const char *decoder : {"auto", "bp-osd"})
    for (const auto &[events, title, fired, plain, flipping, moving, rings] : cases) {
      const program_result r = decode(events, std::string("--decoder ") + decoder);
      if (contains(r.err, "lookup gives neither")) // a build without PyMatching
        continue;
      ASSERT_EQ(r.exit_code, 0) << r.err;
      const std::string svg = read_file(path("shot.svg"));
      const std::string why = std::string(decoder) + " " + events + svg;
      EXPECT_TRUE(contains(svg, title)) << why;
      EXPECT_EQ(count(svg, "<text class=\"title\"[^>]*>t = [01]</text>"), 2U) << why;
      // One of each, without a shot, is in the legend.
      EXPECT_EQ(count(svg, "<circle class=\"f1\""), fired + 1) << why;
      EXPECT_EQ(count(svg, "<circle class=\"detector\""), 6 - fired + 1) << why;
      EXPECT_EQ(count(svg, "<line class=\"s0 d0\""), plain + 1) << why;
      EXPECT_EQ(count(svg, "<line class=\"s3 d0 flips\""), flipping + 1) << why;
      EXPECT_EQ(count(svg, "<line class=\"s0 d1\""), 2 * moving) << why;
      EXPECT_EQ(count(svg, "<circle class=\"s0 d0 ring\""), rings + 1) << why;
    }
}

TEST_F(DecodePicture, HasTheEventsThatAPredecoderRemovesPale) {
  for (const auto &[events, title] :
       {std::pair{"1,2\n", "2 events, 0 left by local, 0 errors; it flips no observable<"},
        std::pair{"0\n", "1 event, 0 left by local, 0 errors; it flips L0<"}}) {
    const program_result r = decode(events, "--predecoder local");
    if (contains(r.err, "lookup")) // a build without PyMatching
      GTEST_SKIP() << r.err;
    ASSERT_EQ(r.exit_code, 0) << r.err;
    const std::string svg = read_file(path("shot.svg"));
    EXPECT_TRUE(contains(svg, title)) << svg;
    EXPECT_EQ(count(svg, "<circle class=\"f1 removed\""), events == std::string("0\n") ? 1U : 2U) << svg;
  }
}

TEST_F(DecodePicture, HasTheHeraldsThatFiredAmongTheDetectorsOfTheirErrors) {
  const std::string model = read_file(path("model.dem"));
  file("heralds.txt",
       cudaq::qec::realtime::test::heralds_text(model, "detectors 8\nherald 6 4 0.5\nherald 7 1 0.5 2 0.5\n"));
  for (const char *decoder : {"auto", "bp-osd"}) {
    const program_result r =
        decode("1,5,6\n", std::string("--decoder ") + decoder + " --heralds " + path("heralds.txt"));
    if (contains(r.err, "lookup"))
      continue;
    ASSERT_EQ(r.exit_code, 0) << r.err;
    const std::string svg = read_file(path("shot.svg"));
    EXPECT_TRUE(contains(svg, "2 events, 1 herald, 1 error of the correction; it flips no observable\"")) << svg;
    EXPECT_EQ(count(svg, "<title>D6</title>"), 1U) << svg;
    EXPECT_EQ(count(svg, "<title>D7</title>"), 0U) << svg;
    EXPECT_EQ(count(svg, "<line class=\"s0 d1\""), 2U) << "D1 D5, which is likely with the herald; legend: " << svg;
  }
  const program_result r = decode("1\n", "--decoder bp-osd:heralds=" + path("heralds.txt"));
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_TRUE(contains(r.err, "name the file by --heralds")) << r.err;
}

TEST_F(DecodePicture, HasNoPlaceForAHeraldWhoseErrorsFlipNoDetector) {
  const std::string model = read_file(path("model.dem")) + "error(0.01) L0\n";
  file("loose.dem", model);
  file("heralds.txt", cudaq::qec::realtime::test::heralds_text(model, "detectors 7\nherald 6 7 0.5\n"));
  const program_result r = decode("1,2,6\n", "--decoder bp-osd --heralds " + path("heralds.txt"), "loose.dem");
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const std::string svg = read_file(path("shot.svg"));
  EXPECT_TRUE(contains(svg, "2 events, 1 herald, 1 error of the correction; ")) << svg;
  EXPECT_EQ(count(svg, "<title>D6</title>"), 0U) << svg;
}

TEST_F(DecodePicture, IsOfTheFirstShotWithAnEventAWrongOneOrANumber) {
  file("truth.01", "0\n1\n1\n0\n"); // the third answer is wrong
  const std::string shots = "\n0\n1,2\n0\n";
  const struct {
    const char *options, *title;
  } cases[] = {{"", "Shot 1, "},
               {"--svg-shot wrong", "Shot 2, bp-osd: 2 events, 1 error of the correction; it flips no observable, "
                                    "which is wrong<"},
               {"--svg-shot 3 --threads 2", "Shot 3, "},
               {"--svg-shot 0", "Shot 0, bp-osd: 0 events, 0 errors"}};
  for (const auto &[options, title] : cases) {
    const program_result r = decode(shots, "--decoder bp-osd --obs_in " + path("truth.01") + " " + options);
    ASSERT_EQ(r.exit_code, 0) << r.err;
    EXPECT_TRUE(contains(read_file(path("shot.svg")), title)) << options << read_file(path("shot.svg"));
  }
  std::filesystem::remove(path("shot.svg"));
  const program_result none = decode(shots, "--decoder bp-osd --svg-shot 4");
  EXPECT_EQ(none.exit_code, 0);
  EXPECT_TRUE(contains(none.out, "is unchanged: of 4 shots none is that of --svg-shot 4")) << none.out;
  EXPECT_FALSE(std::filesystem::exists(path("shot.svg")));
}

TEST_F(DecodePicture, IsRefusedWithAReason) {
  file("heralds.txt", "");
  const struct {
    const char *model;
    std::string options, text;
  } cases[] = {{"bare.dem", "", "detector D0 of "},
               {"bare.dem", "", "has no coordinates x, y, t"},
               {"model.dem", "--decoder lookup", "lookup gives neither errors nor edges"},
               {"model.dem", "--decoder bp-osd --svg-shot first", "--svg-shot"},
               {"model.dem", "--decoder bp-osd --svg-shot wrong", "without true observables"},
               {"model.dem", "--decoder bp-osd --heralds " + path("heralds.txt"), "heralds.txt"},
               {"model.dem", "--decoder bp-osd --json " + path("shot.svg"), "this is the file of --"},
               {"model.dem", "--decoder bp-osd --confidence " + path("shot.svg"), "this is the file of --svg"},
               {"loop.dem", "--stream", "--svg"}};
  for (const auto &[model, options, text] : cases) {
    const program_result r = decode("0\n", options, model);
    EXPECT_EQ(r.exit_code, 2) << options;
    EXPECT_TRUE(contains(r.err, text)) << options << ": " << r.err;
    EXPECT_FALSE(std::filesystem::exists(path("shot.svg"))) << options;
  }
}

} // namespace
} // namespace cudaq::realtime::tools::test
