// SPDX-License-Identifier: Apache-2.0
#include "tools/html/html_plots.h"
#include "tools/html/plot_frame.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace cudaq::realtime::tools {
namespace {

/// From here on a difference has its full colour.
constexpr double kFullSigma = 10, kFramedSigma = 5;
constexpr double kEdge = 24, kMaxHeight = 560, kLegend = 40;

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

} // namespace

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
