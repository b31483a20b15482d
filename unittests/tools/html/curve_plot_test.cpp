// SPDX-License-Identifier: Apache-2.0
#include "tools/html/html_plots.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

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
  EXPECT_TRUE(has(plot, "l3.5 7.0l3.5 -7.0\"")) << "an arrow: the low end is not known" << plot;
  EXPECT_EQ(curve_plot({{"none", 0, 0, {}}}, "x", "rates", &percent), "");
}

/// The numbers after each `before`.
std::vector<double> numbers(const std::string &text, const std::string &before) {
  std::vector<double> all;
  for (std::size_t at = 0; (at = text.find(before, at)) != std::string::npos; at += before.size())
    all.push_back(std::stod(text.substr(at + before.size())));
  return all;
}

TEST(CurvePlot, IsSquareAndItsIntervalsStayInsideAndBesideEachOther) {
  const std::vector<plotted_rate> points{{0.001, 0, 0, 0.0004}, {0.002, 0.001, 0.0002, 0.003}, {0.004, 0.9, 0.8, 1}};
  const std::string plot = curve_plot({{"a", 0, 0, points}, {"b", 1, 0, points}}, "x", "rates", &percent);
  EXPECT_TRUE(has(plot, "<text class=\"heading\"")) << plot;
  const double left = numbers(plot, "<rect class=\"frame\" x=\"").at(0);
  const std::string frame = plot.substr(plot.find("class=\"frame\""));
  const double width = numbers(frame, " width=\"").at(0), height = numbers(frame, " height=\"").at(0);
  EXPECT_EQ(width, height);
  const std::vector<double> bars = numbers(plot, "interval\" d=\"M"); // the left ends of their upper caps
  ASSERT_EQ(bars.size(), 6U);
  for (const double x : bars) {
    EXPECT_GT(x, left + 5) << plot;
    EXPECT_LT(x + 7, left + width - 5) << plot;
  }
  for (std::size_t k = 0; k < 3; ++k)
    EXPECT_GT(bars[k + 3] - bars[k], 4) << "the same x in both curves";
  for (const double y : numbers(plot, " cy=\""))
    EXPECT_LT(y, 40 + height) << plot;
}

TEST(CurvePlot, HasMarksAtTheDigitsOfBothAxes) {
  const std::string plot =
      curve_plot({{"a", 0, 0, {{0.002, 0.02, 0.02, 0.02}, {0.03, 0.3, 0.3, 0.3}}}}, "x", "rates", &percent);
  std::string marks = plot.substr(plot.find("<path class=\"frame\""));
  marks = marks.substr(0, marks.find("/>"));
  const auto count = [&marks](const std::string &part) {
    std::size_t found = 0;
    for (std::size_t at = 0; (at = marks.find(part, at)) != std::string::npos; ++at)
      ++found;
    return found;
  };
  // x: 0.002 to 0.009, 0.01, 0.02, 0.03; each has a mark at the bottom and one at the top.
  EXPECT_EQ(count("v-4"), 10U) << marks;
  EXPECT_EQ(count("v-8"), 1U) << marks;
  EXPECT_EQ(count("v4") + count("v8"), 11U) << marks;
  EXPECT_EQ(count("h8"), 1U) << "y: 0.1" << marks;
  EXPECT_EQ(count("h4"), 10U) << "y: 0.02 to 0.09, 0.2, 0.3" << marks;
}

TEST(CurvePlot, ABoundIsAShortArrow) {
  const std::string plot = curve_plot({{"one", 0, 0, {{1, 0, 0, 0.2}, {2, 0.1, 0.05, 0.2}}}}, "x", "rates", &percent);
  const std::string arrow =
      plot.substr(plot.find("d=\"M", plot.find("interval")) + 3); // M77.5 600.0h7.0M81.0 600.0V626.0
  const double high = std::stod(arrow.substr(arrow.find(' '))), low = std::stod(arrow.substr(arrow.find('V') + 1));
  EXPECT_NEAR(low - high, 26, 0.2) << arrow;
}

TEST(CurvePlot, CutsANameThatIsLongerThanItsRow) {
  const std::string plot = curve_plot({{std::string(300, 'n'), 0, 0, {{1, 0.1, 0.1, 0.1}}}}, "x", "rates", &percent);
  EXPECT_TRUE(has(plot, "nnn...</text>")) << plot;
  EXPECT_FALSE(has(plot, std::string(100, 'n')));
}

TEST(CurvePlot, AFileOfItsOwnNeedsNoPage) {
  const std::string file = svg_file(curve_plot({{"one", 0, 0, {{1, 0.1, 0, 0.2}}}}, "x", "rates", &percent));
  EXPECT_TRUE(file.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=")) << file;
  EXPECT_TRUE(file.ends_with("</svg>\n"));
  EXPECT_TRUE(has(file, ".s0{stroke:#2563a8}"));
  EXPECT_TRUE(has(file, "@media (prefers-color-scheme:dark){") && has(file, ".s0{stroke:#79b0ee}"));
  EXPECT_FALSE(has(file, "var(") || has(file, "<div"));
  EXPECT_EQ(svg_file(""), "");
}

} // namespace
} // namespace cudaq::realtime::tools
