// SPDX-License-Identifier: Apache-2.0
#include "tools/common/terminal.h"

#include "tools/common/report.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <unistd.h>
#include <vector>

namespace cudaq::realtime::tools {
namespace {

constexpr std::size_t kRows = 10;
constexpr std::size_t kBarWidth = 46;

bool utf8_locale() {
  for (const char *name : {"LC_ALL", "LC_CTYPE", "LANG"})
    if (const char *value = std::getenv(name); value != nullptr && *value != '\0')
      return std::strstr(value, "UTF-8") != nullptr || std::strstr(value, "utf8") != nullptr;
  return false;
}

/// A bar of `cells` character cells; in a UTF-8 locale with eighths of a cell.
std::string bar(double cells, bool utf8) {
  if (!utf8)
    return std::string(static_cast<std::size_t>(std::lround(cells)), '#');
  static constexpr const char *kParts[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const auto eighths = static_cast<std::size_t>(std::lround(cells * 8));
  std::string text;
  for (std::size_t i = 0; i < eighths / 8; ++i)
    text += "█";
  return text + kParts[eighths % 8];
}

/// At most kRows + 1 boundaries, from the minimum or below to above p99.9, evenly spaced on a logarithmic scale.
std::vector<std::uint64_t> row_edges(const latency_histogram &h) {
  const double low = std::max<double>(1.0, static_cast<double>(h.min()));
  const double high = std::max(low * 1.1, static_cast<double>(h.percentile(99.9)) + 1.0);
  std::vector<std::uint64_t> edges;
  for (std::size_t i = 0; i <= kRows; ++i) {
    const double x = low * std::pow(high / low, static_cast<double>(i) / kRows);
    const auto edge = static_cast<std::uint64_t>(x);
    // At the lower end of a bucket, so that every bucket is in exactly one row.
    const std::uint64_t snapped = latency_histogram::lower_of(latency_histogram::index_of(edge));
    if (edges.empty() || snapped > edges.back())
      edges.push_back(snapped);
  }
  return edges;
}

} // namespace

std::string draw_histogram(const latency_histogram &h) {
  if (h.count() == 0)
    return "";
  const bool utf8 = utf8_locale();
  std::vector<std::uint64_t> edges = row_edges(h);
  edges.push_back(UINT64_MAX);
  std::uint64_t most = 1;
  for (std::size_t i = 0; i + 1 < edges.size(); ++i)
    most = std::max(most, h.count_between(edges[i], edges[i + 1]));
  std::string text;
  for (std::size_t i = 0; i + 1 < edges.size(); ++i) {
    const std::uint64_t n = h.count_between(edges[i], edges[i + 1]);
    const bool tail = i + 2 == edges.size();
    const double cells = static_cast<double>(n) / static_cast<double>(most) * static_cast<double>(kBarWidth);
    text += fmt::format("  {:>9}{} {:>9} {}\n", format_ns(static_cast<double>(edges[i])), tail ? '+' : ' ', n,
                        bar(cells, utf8));
  }
  return text;
}

progress::progress(std::string label, std::uint64_t total, bool enabled)
    : label_(std::move(label)), total_(total), enabled_(enabled), terminal_(isatty(STDERR_FILENO) == 1),
      interval_ns_(terminal_ ? 100'000'000u : 1'000'000'000u) {}

progress::~progress() {
  if (shown_ && terminal_)
    fmt::print(stderr, "\r\x1b[K");
}

void progress::show(std::uint64_t done, std::uint64_t now_ns, const std::string &note) {
  if (begin_ns_ == 0)
    begin_ns_ = last_ns_ = now_ns;
  if (!enabled_ || now_ns - last_ns_ < interval_ns_)
    return;
  const double rate = static_cast<double>(done - last_done_) / (static_cast<double>(now_ns - last_ns_) * 1e-9);
  const std::string percent =
      total_ == 0 ? "" : fmt::format(" {:3.0f} %", 100.0 * static_cast<double>(done) / static_cast<double>(total_));
  fmt::print(stderr, "{}{}:{} {} shots, {} /s{}{}", terminal_ ? "\r" : "", label_, percent, done, format_rate(rate),
             note, terminal_ ? "\x1b[K" : "\n");
  std::fflush(stderr);
  shown_ = true;
  last_ns_ = now_ns;
  last_done_ = done;
}

} // namespace cudaq::realtime::tools
