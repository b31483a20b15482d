// SPDX-License-Identifier: Apache-2.0
#include "tools/html/html_plots.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace cudaq::realtime::tools {
namespace {

std::string percent(double x) { return fmt::format("{:g} %", x); }
bool has(const std::string &text, const std::string &part) { return text.find(part) != std::string::npos; }

TEST(CurvePlot, HasPointsIntervalsAndTheValuesOfX) {
  const std::string plot = curve_plot(
      {{"first", 0, 0, {{1, 0.1, 0.05, 0.2}, {3, 0.2, 0.1, 0.4}}}, {"second", 1, 2, {{1, 0.01, 0.01, 0.01}}}}, "x",
      "rates", &percent);
  for (const char *const part : {">1 %</text>", ">3 %</text>", ">first</text>", ">second</text>", "class=\"s1 d2\"",
                                 "<circle class=\"f1\"", "<path class=\"s0 interval\""})
    EXPECT_TRUE(has(plot, part)) << part << plot;
  EXPECT_FALSE(has(plot, "<path class=\"s1 interval\"")) << "no interval is given";
}

TEST(CurvePlot, ManyValuesOfXHaveRoundLabels) {
  plotted_curve curve{"many", 0, 0, {}};
  for (int k = 0; k < 200; ++k)
    curve.points.push_back({10 + 0.37 * k, 0.1, 0.1, 0.1});
  const std::string plot = curve_plot({curve}, "x", "rates", &percent);
  EXPECT_TRUE(has(plot, ">20 %</text>")) << plot;
  EXPECT_FALSE(has(plot, ">10.37 %</text>"));
}

TEST(CurvePlot, ARateOfZeroHasAnIntervalOnly) {
  const std::string plot = curve_plot({{"one", 0, 0, {{1, 0, 0, 0.2}}}}, "x", "rates", &percent);
  EXPECT_TRUE(has(plot, "<path class=\"s0 interval\""));
  EXPECT_FALSE(has(plot, "<circle"));
  EXPECT_FALSE(has(plot, "nan") || has(plot, "inf")) << plot;
  EXPECT_EQ(curve_plot({{"none", 0, 0, {}}}, "x", "rates", &percent), "");
}

TEST(CurvePlot, AFileOfItsOwnNeedsNoPage) {
  const std::string file = svg_file(curve_plot({{"one", 0, 0, {{1, 0.1, 0, 0.2}}}}, "x", "rates", &percent));
  EXPECT_TRUE(file.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=")) << file;
  EXPECT_TRUE(file.ends_with("</svg>\n"));
  EXPECT_TRUE(has(file, ".s0{stroke:#2563a8}"));
  EXPECT_FALSE(has(file, "var(") || has(file, "<div"));
  EXPECT_EQ(svg_file(""), "");
}

} // namespace
} // namespace cudaq::realtime::tools
