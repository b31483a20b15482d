// SPDX-License-Identifier: Apache-2.0
// Plots of a report as SVG, for html_page. Their colours are those of the page, which has light, dark and print ones.
#pragma once

#include "tools/common/latency_histogram.h"
#include "tools/common/run_timeline.h"

#include <string>
#include <vector>

namespace cudaq::realtime::tools {

/// One line of a plot, and its entry in the legend. The histogram must live until the plot is made.
struct plotted_latency {
  std::string name;
  const latency_histogram *histogram;
};

/// What was measured, for axes and tables: `time` of each of `things`.
struct measured_words {
  const char *time = "latency", *things = "requests";
};

/// How many requests took how long: both axes logarithmic, with marks at p50, p99 and p99.9 of the first series. "" if
/// no series has values. Powers of ten are edges of bars. At most four series have colours and dashes of their own.
std::string histogram_plot(const std::vector<plotted_latency> &series, const measured_words &words = {});

/// Latency over percentile. The axis of the percentiles is stretched towards 100 %: 90 %, 99 % and 99.9 % have the same
/// distance.
std::string percentile_plot(const std::vector<plotted_latency> &series, const measured_words &words = {});

/// Mean and longest latency, and the rate, over the time of the run, as steps: the parts take a round time. A part
/// without answers has a rate of 0 and no latency. "" if nothing was recorded.
std::string timeline_plot(const run_timeline &timeline, const measured_words &words = {"latency", "answers"});

/// Parts of a whole, as one bar with a legend. `ns` are mean times.
struct plotted_stage {
  std::string name;
  double ns;
};
std::string stages_plot(const std::vector<plotted_stage> &stages);

/// Times of which each has a row, with a name of about nine letters: the distribution, with p50, p99, p99.9 and the
/// longest one. Both axes are logarithmic, and the same for all rows; times below 10 ns are at the left end. "" without
/// times.
struct plotted_times {
  std::string name;
  detail::time_histogram::snapshot times;
};
std::string times_plot(const std::vector<plotted_times> &rows);

/// Ratios to 1, a row each: a point, its interval and a verdict, on a logarithmic axis. Without an interval low and
/// high are the ratio. Long names are shortened. "worse" and "better" have the colours of a result; the point of any
/// verdict but these and "same" is hollow. "" without ratios.
struct plotted_ratio {
  std::string name;
  double ratio, low, high;
  std::string verdict;
};
std::string ratio_plot(const std::vector<plotted_ratio> &ratios);

/// A rate, and its interval as a vertical line with ends. One that begins at 0 is a bound: a short arrow downwards from
/// its high end. Without an interval low and high are the rate.
struct plotted_rate {
  double x, rate, low, high;
};
/// Curves of the same colour belong together; their dashes differ.
struct plotted_curve {
  std::string name;
  std::size_t colour = 0, dashes = 0;
  std::vector<plotted_rate> points; ///< in the order of x
};
/// Rates over x in a square with a heading. Both axes are logarithmic, with marks at the digits 1 to 9 of each power. A
/// rate of 0 has no point. Intervals of several curves at one x stand beside each other. `label`: of a value of x. ""
/// without points.
std::string curve_plot(const std::vector<plotted_curve> &curves, const std::string &x_title, const std::string &rates,
                       std::string (*label)(double));

/// A place of a code, and by how many standard deviations what happens there differs from what is expected: below 0 it
/// is less. A `sigma` that is not a number: not known.
struct plotted_place {
  double x, y, sigma;
  std::string name; ///< shown when the reader points at it
};
/// The places, in blue where less happens and in red where more happens, the darker the larger the difference, with a
/// frame from 5 standard deviations on. y goes downwards, as rows do. "" without places.
std::string layout_plot(const std::vector<plotted_place> &places);

/// A detector of a shot: its place and its time.
struct plotted_detector {
  double x, y, time;
  bool fired;
  bool removed = false, made = false; ///< by a predecoder: an event that fired, one that did not
};
/// An error of a correction.
struct plotted_error {
  std::vector<std::size_t> detectors; ///< into the list of detectors
  bool flips;                         ///< an observable
};
/// A herald that fired: a detector that says where errors may be. `time`: of a detector.
struct plotted_herald {
  double x, y, time;
  std::string name;
};
/// A correction over the places of a code, a panel for each time. An error is a line between its two detectors, and of
/// more a star; one with a single detector is a short line to the nearest side of the panel, as a model does not say to
/// which side of the code. One that joins two times has a ring at each of its detectors, and a dashed line in the later
/// panel if two of them are at different places. An event that a predecoder has removed is pale, and one that it has
/// made is a ring. A herald is a diamond. y goes downwards. "" without detectors, or if one has no place.
std::string correction_plot(const std::vector<plotted_detector> &detectors, const std::vector<plotted_error> &errors,
                            const std::string &title, const std::vector<plotted_herald> &heralds = {});

/// The first picture of a plot as a file of its own, also for programs that know little of CSS: these show it in light
/// colours, others in dark ones where the reader prefers them. "" without a picture.
std::string svg_file(const std::string &plot);

/// `text` with &, <, > and quotes as HTML needs them.
std::string html_text(const std::string &text);

} // namespace cudaq::realtime::tools
