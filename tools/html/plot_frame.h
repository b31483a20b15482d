// SPDX-License-Identifier: Apache-2.0
// What plots with axes have in common: the drawing area, grid lines and labels, and the names of lines.
#pragma once

#include "tools/html/plot_axis.h"

#include <string>
#include <vector>

namespace cudaq::realtime::tools {

// The drawing area, in the units of the SVG.
inline constexpr double kWidth = 760, kHeight = 300;
inline constexpr double kLeft = 74, kRight = 736, kTop = 26, kBottom = 246;
inline constexpr double kSquareTop = 40, kSquareBottom = kSquareTop + kRight - kLeft; ///< of a square with a heading
inline constexpr double kLegendRow = 18;
inline constexpr double kCharacter = 7; ///< width of a character, rounded up
inline constexpr std::size_t kColours = 4;

extern const char *const kLightColours, *const kDarkColours; ///< as properties of CSS
extern const char *const kPlotStyle;                         ///< CSS with these

/// The class with colour and dashes of line 0, 1, ...
std::string line_class(std::size_t number);
std::string polyline(const std::string &css, const std::string &points);

/// A picture whose text for readers of the screen is `what`.
std::string svg(const std::string &what, double height, const std::string &content);
/// From where to where the drawing area goes.
struct plot_height {
  double top = kTop, bottom = kBottom;
};
/// Grid lines, labels and the title of an axis.
std::string horizontal(const plot_axis &x, const std::vector<axis_tick> &ticks, const std::string &title,
                       plot_height of = {});
std::string vertical(const plot_axis &y, const std::vector<axis_tick> &ticks, const std::string &title,
                     plot_height of = {});
std::vector<axis_tick> ticks(const plot_axis &axis, std::size_t max_count, std::string (*label)(double));

struct named_line {
  std::string name, css; ///< CSS: classes
};
/// A plot with its axes and lines, and below it the names of the lines, each after a sample. They fill as many rows as
/// they need; a name that is longer than a row is cut. Each line has a colour and dashes of its own, so that both of
/// two equal lines are seen.
std::string plot(const std::string &what, const std::string &content, const std::vector<named_line> &lines,
                 plot_height of = {});

} // namespace cudaq::realtime::tools
