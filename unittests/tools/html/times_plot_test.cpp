// SPDX-License-Identifier: Apache-2.0
#include "tools/html/html_plots.h"

#include <gtest/gtest.h>
#include <regex>

namespace cudaq::realtime::tools {
namespace {

plotted_times row(const std::string &name, std::initializer_list<std::pair<std::uint64_t, int>> values) {
  detail::time_histogram times;
  for (const auto &[ns, count] : values)
    for (int k = 0; k < count; ++k)
      times.record(ns);
  plotted_times made{name, {}};
  made.times.add(times);
  return made;
}

/// What the first group of `pattern` is, each time.
std::vector<double> numbers(const std::string &plot, const std::string &pattern) {
  const std::regex part(pattern);
  std::vector<double> all;
  for (std::sregex_iterator p(plot.begin(), plot.end(), part), end; p != end; ++p)
    all.push_back(std::stod((*p)[1]));
  return all;
}

TEST(TimesPlot, MarksThePercentilesOfEachRowOnOneAxis) {
  const std::string plot =
      times_plot({row("fast", {{100, 990}, {1000, 9}, {10'000, 1}}), row("slow <1>", {{10'000, 5}}), row("none", {})});
  const auto marks = [&plot](int line) {
    return numbers(plot,
                   "<line class=\"s" + std::to_string(line) + "\" x1=\"([0-9.]+)\" x2=\"[0-9.]+\" y1=\"[0-9]+\" y2");
  };
  const std::vector<double> p50 = marks(0), p99 = marks(1), p999 = marks(2), max = marks(3);
  for (const auto &of : {p50, p99, p999, max})
    ASSERT_EQ(of.size(), 2u) << "a row without times has no marks" << plot;
  EXPECT_LT(p50[0], p999[0]);
  EXPECT_EQ(p50[0], p99[0]);
  EXPECT_NEAR(p999[0] - p99[0], max[0] - p999[0], 5) << "a decade each, to the width of a bucket";
  EXPECT_EQ(p50[1], max[0]);
  EXPECT_NE(plot.find(">slow &lt;1&gt;</text>"), std::string::npos);
  EXPECT_NE(plot.find(">none</text>"), std::string::npos);
  EXPECT_NE(plot.find(">p99.9</text>"), std::string::npos);
}

TEST(TimesPlot, ShowsASingleRequestBesideManyAndStaysInItsRow) {
  const std::string plot = times_plot({row("taken", {{0, 20'000}, {7, 5}, {1'000'000, 1}, {UINT64_MAX, 1}})});
  const std::regex polygon("<polygon class=\"filled\" points=\"([^\"]*)\"");
  std::smatch found;
  ASSERT_TRUE(std::regex_search(plot, found, polygon));
  const std::vector<double> heights = numbers(found[1], ",([0-9.]+)");
  const auto [top, bottom] = std::ranges::minmax(heights);
  EXPECT_EQ(bottom - top, 36) << "the most requests, and none";
  EXPECT_EQ(std::ranges::count_if(heights, [&](double y) { return y > top && y < bottom; }), 4)
      << "two bars of one request each";
  for (const double x : numbers(found[1], "([0-9.]+),"))
    EXPECT_TRUE(x >= 74 && x <= 736) << x;
  EXPECT_EQ(plot.find("nan"), std::string::npos);
  EXPECT_EQ(plot.find("inf"), std::string::npos);
}

TEST(TimesPlot, IsNothingWithoutTimes) {
  EXPECT_EQ(times_plot({}), "");
  EXPECT_EQ(times_plot({row("none", {})}), "");
  EXPECT_NE(times_plot({row("zero", {{0, 1}})}), "") << "a time of 0 ns is one";
}

} // namespace
} // namespace cudaq::realtime::tools
