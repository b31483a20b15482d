// SPDX-License-Identifier: Apache-2.0
#include "tools/html/html_plots.h"
#include "tools/html/plot_frame.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <sstream>

namespace cudaq::realtime::tools {
namespace {

/// From here on a difference has its full colour.
constexpr double kFullSigma = 10, kFramedSigma = 5;
constexpr double kEdge = 24, kMaxHeight = 560, kLegend = 40, kMoreLegend = 22, kTitleRow = 18;

/// The least distance above 0 of two values; 1 if there is none.
double spacing_of(std::vector<double> values) {
  std::ranges::sort(values);
  double least = 0;
  for (std::size_t k = 1; k < values.size(); ++k)
    if (const double step = values[k] - values[k - 1]; step > 1e-9 && (least == 0 || step < least))
      least = step;
  return least == 0 ? 1 : least;
}

std::string mark(double x, double y, double radius, double sigma, const std::string &name) {
  const bool is_known = std::isfinite(sigma);
  const double opacity = is_known ? 0.08 + 0.92 * std::min(std::abs(sigma) / kFullSigma, 1.0) : 0;
  return fmt::format(R"svg(<circle cx="{:.1f}" cy="{:.1f}" r="{:.1f}" style="fill:var(--{});fill-opacity:{:.2f};)svg"
                     R"svg(stroke:var(--{});stroke-width:{}{}"><title>{}</title></circle>)svg",
                     x, y, radius, is_known && sigma < 0 ? "c0" : "bad", opacity,
                     is_known && std::abs(sigma) >= kFramedSigma ? "text" : "line",
                     is_known && std::abs(sigma) >= kFramedSigma ? 2.5 : 1, is_known ? "" : ";stroke-dasharray:2 2",
                     html_text(name));
}

/// Panels side by side, all with the same places.
class panels {
public:
  /// `heading`: the height above them.
  panels(const std::vector<plotted_detector> &detectors, double heading) : heading_(heading), detectors_(detectors) {
    std::vector<double> xs, ys;
    for (const plotted_detector &d : detectors) {
      xs.push_back(d.x);
      ys.push_back(d.y);
      number_.emplace(d.time, 0);
    }
    for (std::size_t next = 0; auto &[time, number] : number_)
      number = next++;
    const auto [left, right] = std::ranges::minmax(xs);
    const auto [top, bottom] = std::ranges::minmax(ys);
    left_ = left;
    top_ = top;
    const double spacing = std::min(spacing_of(xs), spacing_of(ys)), across = right - left, down = bottom - top;
    for (columns_ = std::min<std::size_t>(number_.size(), 4);; --columns_) {
      const double room = kWidth / static_cast<double>(columns_) - kBetween - 2 * kEdge;
      scale_ = std::min(kStep / spacing, across == 0 ? kStep : room / across);
      if (columns_ == 1 || scale_ * spacing >= kLeastStep)
        break;
    }
    width_ = scale_ * across + 2 * kEdge;
    height_ = scale_ * down + 2 * kEdge;
    dot_ = std::clamp(0.2 * scale_ * spacing, 1.0, 5.5);
    to_boundary_ = std::min(0.6 * scale_ * spacing, 0.75 * kEdge);
  }

  struct point {
    double x, y;
  };
  [[nodiscard]] std::size_t number_of(std::size_t detector) const { return number_.at(detectors_[detector].time); }
  [[nodiscard]] point in_panel(std::size_t detector) const {
    return in_panel(detectors_[detector].x, detectors_[detector].y);
  }
  [[nodiscard]] point in_panel(double x, double y) const {
    return {kEdge + scale_ * (x - left_), kEdge + scale_ * (y - top_)};
  }
  [[nodiscard]] point at(const plotted_herald &herald) const {
    return moved(in_panel(herald.x, herald.y), number_.at(herald.time));
  }
  [[nodiscard]] point at(std::size_t detector) const { return moved(in_panel(detector), number_of(detector)); }
  /// Beside the nearest side of the panel.
  [[nodiscard]] point outside(std::size_t detector) const {
    point p = in_panel(detector);
    const double to_side[] = {p.x, width_ - p.x, p.y, height_ - p.y};
    switch (std::ranges::min_element(to_side) - to_side) {
    case 0:
      p.x -= to_boundary_;
      break;
    case 1:
      p.x += to_boundary_;
      break;
    case 2:
      p.y -= to_boundary_;
      break;
    default:
      p.y += to_boundary_;
    }
    return moved(p, number_of(detector));
  }
  [[nodiscard]] point moved(point p, std::size_t panel) const {
    return {p.x + kBetween / 2 + static_cast<double>(panel % columns_) * (width_ + kBetween),
            p.y + heading_ + static_cast<double>(panel / columns_) * (height_ + kCaption)};
  }
  [[nodiscard]] double dot() const noexcept { return dot_; }
  [[nodiscard]] double bottom() const {
    return heading_ + static_cast<double>((number_.size() + columns_ - 1) / columns_) * (height_ + kCaption);
  }
  /// Frames with their times.
  [[nodiscard]] std::string frames() const {
    std::string out;
    for (const auto &[time, number] : number_) {
      const point corner = moved({0, 0}, number);
      out += fmt::format(R"(<rect class="frame" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"/>)"
                         R"(<text class="title" x="{:.1f}" y="{:.1f}">t = {:g}</text>)",
                         corner.x, corner.y, width_, height_, corner.x, corner.y + height_ + 15, time);
    }
    return out;
  }

private:
  static constexpr double kStep = 36, kLeastStep = 12;
  static constexpr double kBetween = 12, kCaption = 26;
  const double heading_;
  const std::vector<plotted_detector> &detectors_;
  std::map<double, std::size_t> number_; ///< of the panel of each time
  std::size_t columns_ = 1;
  double left_ = 0, top_ = 0, scale_ = 1, width_ = 0, height_ = 0, dot_ = 0, to_boundary_ = 0;
};

/// Of an error that flips an observable, and of the others.
std::string stroke_of(bool flips) { return flips ? "s3 d0 flips" : "s0 d0"; }

std::string line_between(const std::string &css, panels::point from, panels::point to) {
  return fmt::format(R"(<line class="{}" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"/>)", css, from.x, from.y, to.x,
                     to.y);
}

std::string ring_at(const std::string &css, panels::point at, double radius) {
  return fmt::format(R"(<circle class="{} ring" cx="{:.1f}" cy="{:.1f}" r="{:.1f}"/>)", css, at.x, at.y, radius);
}

std::string dot_at(const char *css, panels::point at, double radius, const std::string &name) {
  return fmt::format(R"(<circle class="{}" cx="{:.1f}" cy="{:.1f}" r="{:.1f}"><title>{}</title></circle>)", css, at.x,
                     at.y, radius, name);
}

std::string diamond_at(panels::point at, double radius, const std::string &name) {
  return fmt::format(R"(<path class="s1 d0 ring herald" d="M{0:.1f} {1:.1f}l{2:.1f} {2:.1f}l-{2:.1f} {2:.1f}l-{2:.1f} )"
                     R"(-{2:.1f}z"><title>{3}</title></path>)",
                     at.x, at.y - radius, radius, html_text(name));
}

std::string drawn(const panels &of, const plotted_error &error) {
  const std::string css = stroke_of(error.flips);
  std::map<std::size_t, std::vector<std::size_t>> by_panel;
  for (const std::size_t d : error.detectors)
    by_panel[of.number_of(d)].push_back(d);
  std::string out;
  if (error.detectors.size() == 1)
    return line_between(css, of.at(error.detectors[0]), of.outside(error.detectors[0]));
  for (const auto &[panel, here] : by_panel) {
    if (here.size() == 2)
      out += line_between(css, of.at(here[0]), of.at(here[1]));
    panels::point middle{0, 0};
    for (const std::size_t d : here) {
      middle.x += of.at(d).x / static_cast<double>(here.size());
      middle.y += of.at(d).y / static_cast<double>(here.size());
      if (by_panel.size() > 1)
        out += ring_at(css, of.at(d), of.dot() + 3.5);
    }
    for (const std::size_t d : here)
      if (here.size() > 2)
        out += line_between(css, middle, of.at(d));
  }
  if (error.detectors.size() == 2 && by_panel.size() == 2) {
    const auto &[panel, later] = *by_panel.rbegin();
    const panels::point from = of.moved(of.in_panel(by_panel.begin()->second[0]), panel), to = of.at(later[0]);
    if (std::max(std::abs(from.x - to.x), std::abs(from.y - to.y)) > 0.1)
      out += line_between(error.flips ? "s3 d1 flips" : "s0 d1", from, to);
  }
  return out;
}

/// In rows that are no wider than the plot, if no word is.
std::vector<std::string> rows_of(const std::string &title) {
  constexpr double kBold = 8; // a character of a title
  constexpr auto kLongest = static_cast<std::size_t>((kWidth - 12) / kBold);
  std::vector<std::string> rows{""};
  std::istringstream words(title);
  for (std::string word; words >> word;) {
    if (!rows.back().empty() && rows.back().size() + 1 + word.size() > kLongest)
      rows.emplace_back();
    rows.back() += (rows.back().empty() ? "" : " ") + word;
  }
  return rows;
}

} // namespace

std::string correction_plot(const std::vector<plotted_detector> &detectors, const std::vector<plotted_error> &errors,
                            const std::string &title, const std::vector<plotted_herald> &heralds) {
  constexpr double kFarthest = 1e100; // differences are numbers, too
  if (detectors.empty() || !std::ranges::all_of(detectors, [](const plotted_detector &d) {
        return std::abs(d.x) <= kFarthest && std::abs(d.y) <= kFarthest && std::isfinite(d.time);
      }))
    return "";
  const std::vector<std::string> title_rows = rows_of(title);
  const panels of(detectors, 18 + kTitleRow * static_cast<double>(title_rows.size()));
  std::string out;
  for (std::size_t row = 0; row < title_rows.size(); ++row)
    out += fmt::format(R"(<text class="heading" x="6" y="{}">{}</text>)", 20 + kTitleRow * static_cast<double>(row),
                       html_text(title_rows[row]));
  out += of.frames();
  bool has_dashes = false;
  for (const plotted_error &error : errors) {
    const std::string one = drawn(of, error);
    has_dashes = has_dashes || one.find(" d1") != std::string::npos;
    out += one;
  }
  for (std::size_t d = 0; d < detectors.size(); ++d) {
    const bool fired = detectors[d].fired;
    out += dot_at(!fired                 ? "detector"
                  : detectors[d].removed ? "f1 removed"
                                         : "f1",
                  of.at(d), fired ? of.dot() : 0.5 * of.dot(), fmt::format("D{}", d));
    out += detectors[d].made ? ring_at("s1 d0", of.at(d), of.dot()) : "";
  }
  for (const plotted_herald &herald : heralds)
    out += diamond_at(of.at(herald), of.dot() + 3.5, herald.name);
  double y = of.bottom() + 14;
  const auto label = [&y](double x, const char *text) {
    return fmt::format(R"(<text x="{}" y="{}">{}</text>)", x, y + 4, text);
  };
  out += dot_at("detector", {12, y}, 2.7, "") + label(22, "detector") + dot_at("f1", {94, y}, 5.5, "") +
         label(104, "it fired") + line_between(stroke_of(false), {172, y}, {192, y}) +
         label(198, "error of the correction") + line_between(stroke_of(true), {366, y}, {386, y}) +
         label(392, "it flips an observable") + ring_at(stroke_of(false), {558, y}, 7) +
         label(572, "it joins two times");
  if (has_dashes) {
    y += kMoreLegend;
    out += line_between("s0 d1", {6, y}, {26, y}) +
           label(32, "it moves: from the place of its earlier detector to that of its later one");
  }
  if (!heralds.empty()) {
    y += kMoreLegend;
    out += diamond_at({12, y}, 7, "") + label(26, "a herald fired, at the errors that it means");
  }
  return svg(title, y + 16, out);
}

std::string layout_plot(const std::vector<plotted_place> &places) {
  std::vector<double> xs, ys;
  for (const plotted_place &p : places)
    if (std::isfinite(p.x) && std::isfinite(p.y)) {
      xs.push_back(p.x);
      ys.push_back(p.y);
    }
  if (xs.empty())
    return "";
  const auto [left, right] = std::ranges::minmax(xs);
  const auto [top, bottom] = std::ranges::minmax(ys);
  const double spacing = std::min(spacing_of(xs), spacing_of(ys));
  // Wide codes fill the width, high ones the height; a code of one place is as large as one step of others.
  const double scale =
      std::min({(kWidth - 2 * kEdge) / (right - left + spacing), kMaxHeight / (bottom - top + spacing), 60 / spacing});
  const double radius = std::clamp(0.42 * scale * spacing, 1.5, 20.0);
  const double begin = (kWidth - scale * (right - left)) / 2, height = scale * (bottom - top + spacing) + kEdge;
  std::string marks;
  for (const plotted_place &p : places)
    if (std::isfinite(p.x) && std::isfinite(p.y))
      marks +=
          mark(begin + scale * (p.x - left), kEdge / 2 + scale * (p.y - top + spacing / 2), radius, p.sigma, p.name);
  double x = kWidth / 2 - 260;
  for (const double sigma : {-10.0, -5.0, 0.0, 5.0, 10.0}) {
    marks += mark(x, height + kLegend / 2, 9, sigma, "") +
             fmt::format(R"(<text x="{}" y="{}">{:+g} sigma</text>)", x + 15, height + kLegend / 2 + 4, sigma);
    x += 110;
  }
  return svg("differences from the model at each place of the code", height + kLegend, marks);
}

} // namespace cudaq::realtime::tools
