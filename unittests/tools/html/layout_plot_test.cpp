// SPDX-License-Identifier: Apache-2.0
#include "tools/html/html_plots.h"

#include <cmath>
#include <gtest/gtest.h>
#include <string>

namespace cudaq::realtime::tools {
namespace {

std::size_t count(const std::string &text, const std::string &part) {
  std::size_t found = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size())
    ++found;
  return found;
}

TEST(LayoutPlot, ShowsEachPlaceWithTheColourOfItsDifference) {
  const std::string legend = layout_plot({{0, 0, 0, "quiet"}});
  const std::string plot =
      layout_plot({{1, 1, 12, "dying <one>"}, {3, 1, -7, "too rare"}, {1, 3, 0.5, "right"}, {3, 3, NAN, "not known"}});
  EXPECT_EQ(count(plot, "<circle") - count(legend, "<circle"), 3u) << "four places, beside the same legend";
  EXPECT_EQ(count(plot, "<title>dying &lt;one&gt;</title>"), 1u);
  EXPECT_EQ(count(plot, "fill:var(--bad);fill-opacity:1.00") - count(legend, "fill:var(--bad);fill-opacity:1.00"), 1u);
  EXPECT_EQ(count(plot, "fill:var(--c0);") - count(legend, "fill:var(--c0);"), 1u) << "one fires too rarely";
  EXPECT_EQ(count(plot, "stroke:var(--text)") - count(legend, "stroke:var(--text)"), 2u) << "two are certain";
  EXPECT_EQ(count(plot, "stroke-dasharray"), 1u) << "one is not known";
  EXPECT_EQ(count(plot, "nan"), 0u) << plot;
}

TEST(LayoutPlot, IsAsHighAsItsCodeAndIsNothingWithoutPlaces) {
  EXPECT_EQ(layout_plot({}), "");
  EXPECT_EQ(layout_plot({{NAN, 1, 2, "no place"}}), "");
  std::vector<plotted_place> line;
  for (int k = 0; k < 1000; ++k)
    line.push_back({static_cast<double>(k), 0, 0, ""});
  const std::string plot = layout_plot(line);
  EXPECT_EQ(count(plot, "nan") + count(plot, "inf"), 0u);
  const std::size_t at = plot.find("viewBox=\"0 0 760 ");
  ASSERT_NE(at, std::string::npos) << plot.substr(0, 200);
  EXPECT_LT(std::stod(plot.substr(at + 17)), 120) << "a code on a line is flat";
}

TEST(CorrectionPlot, DrawsAnErrorOfManyDetectorsAsAStarInEachOfItsTimes) {
  std::vector<plotted_detector> detectors;
  for (int d = 0; d < 10; ++d)
    detectors.push_back({static_cast<double>(d % 5), 0, static_cast<double>(d / 5), false});
  const std::string none = correction_plot(detectors, {}, "t");
  const std::string star = correction_plot(detectors, {{{0, 2, 4}, false}}, "t");
  EXPECT_EQ(count(star, "<line") - count(none, "<line"), 3u);
  EXPECT_EQ(count(star, "ring") - count(none, "ring"), 0u);
  const std::string both = correction_plot(detectors, {{{0, 2, 4, 6, 7}, true}}, "t");
  EXPECT_EQ(count(both, "<line class=\"s3 d0 flips\"") - count(none, "<line class=\"s3 d0 flips\""), 4u)
      << "a star, and a line";
  EXPECT_EQ(count(both, "s3 d0 flips ring"), 5u);
}

TEST(CorrectionPlot, ShowsALongTitleInRowsAndTheDashesThatItHasInItsLegend) {
  const std::vector<plotted_detector> detectors{{0, 0, 0, true}, {1, 0, 0, false}, {0, 0, 1, false}, {1, 0, 1, true}};
  const std::string title =
      "Shot 207, pymatching: 12 events, 7 errors of the correction; it flips no observable, which is wrong";
  const std::string one = correction_plot(detectors, {{{0, 1}, false}}, "short"),
                    two = correction_plot(detectors, {{{0, 3}, false}}, title);
  EXPECT_EQ(count(one, "class=\"heading\""), 1u);
  EXPECT_EQ(count(two, "class=\"heading\""), 2u);
  EXPECT_EQ(count(two, "wrong</text>"), 1u);
  for (std::size_t at = 0; (at = two.find("class=\"heading\"", at)) != std::string::npos; ++at) {
    const std::size_t begin = two.find('>', at) + 1;
    EXPECT_LE(two.find('<', begin) - begin, 93u) << "of 8 units, in 760";
  }
  EXPECT_EQ(count(one, "it moves: "), 0u);
  EXPECT_EQ(count(two, "it moves: "), 1u);
}

TEST(CorrectionPlot, IsAFileWithoutVariablesAndNothingWithoutPlaces) {
  const std::string file = svg_file(correction_plot({{0, 0, 0, true}}, {{{0}, false}}, "<one> shot"));
  EXPECT_EQ(count(file, "var("), 0u) << file;
  EXPECT_EQ(count(file, "nan") + count(file, "inf"), 0u) << file;
  EXPECT_EQ(count(file, "&lt;one&gt; shot</text>"), 1u);
  EXPECT_EQ(correction_plot({}, {}, "t"), "");
  EXPECT_EQ(correction_plot({{0, NAN, 0, false}}, {}, "t"), "");
}

} // namespace
} // namespace cudaq::realtime::tools
