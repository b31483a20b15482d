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

} // namespace
} // namespace cudaq::realtime::tools
