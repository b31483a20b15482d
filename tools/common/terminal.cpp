// SPDX-License-Identifier: Apache-2.0
#include "tools/common/terminal.h"

#include "tools/common/clock.h"
#include "tools/common/report.h"

#include <algorithm>
#include <chrono>
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
constexpr std::uint64_t kBefore = 1'000'000'000; ///< a shorter run shows no progress
constexpr std::uint64_t kInterval = 100'000'000;

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

/// "12 s", "3 min 20 s", "2 h 5 min"
std::string left_text(double seconds) {
  const auto left = static_cast<std::uint64_t>(std::max(0.0, std::ceil(seconds - 1e-6)));
  if (left < 60)
    return fmt::format("{} s", left);
  if (left < 3600)
    return fmt::format("{} min {} s", left / 60, left % 60);
  return fmt::format("{} h {} min", left / 3600, left % 3600 / 60);
}

bool colours_are_used() {
  const char *const forbidden = std::getenv("NO_COLOR"), *const terminal = std::getenv("TERM");
  return isatty(STDOUT_FILENO) == 1 && (forbidden == nullptr || *forbidden == '\0') && terminal != nullptr &&
         *terminal != '\0' && std::string_view(terminal) != "dumb";
}

} // namespace

std::string draw_histogram(const latency_histogram &h) {
  if (h.count() == 0)
    return "";
  const bool utf8 = utf8_locale();
  std::vector<std::uint64_t> edges = row_edges(h);
  edges.push_back(UINT64_MAX);
  std::uint64_t max_count = 1;
  for (std::size_t i = 0; i + 1 < edges.size(); ++i)
    max_count = std::max(max_count, h.count_between(edges[i], edges[i + 1]));
  std::string text;
  for (std::size_t i = 0; i + 1 < edges.size(); ++i) {
    const std::uint64_t n = h.count_between(edges[i], edges[i + 1]);
    const bool tail = i + 2 == edges.size();
    const double cells = static_cast<double>(n) / static_cast<double>(max_count) * static_cast<double>(kBarWidth);
    text += fmt::format("  {:>9}{} {:>9} {}\n", format_ns(static_cast<double>(edges[i])), tail ? '+' : ' ', n,
                        bar(cells, utf8));
  }
  return text;
}

std::string progress_text(const progress_plan &plan, std::uint64_t done, std::uint64_t elapsed_ns, double rate) {
  const auto seconds = [](std::uint64_t ns) { return static_cast<double>(ns) * 1e-9; };
  const double elapsed = seconds(elapsed_ns);
  double part = 0, left = 0;
  if (plan.duration_ns != 0) {
    part = std::min(1.0, elapsed / seconds(plan.duration_ns));
    left = seconds(plan.duration_ns) - elapsed;
  } else if (plan.total != 0) {
    part = std::min(1.0, static_cast<double>(done) / static_cast<double>(plan.total));
    left = part == 0 ? 0 : elapsed / part - elapsed;
  }
  std::string text = plan.label + ":";
  if (plan.duration_ns != 0 || plan.total != 0)
    text += fmt::format(" {:.0f} %,", 100 * part);
  text += fmt::format(" {}{} {}, {}/s", done,
                      plan.total == 0 || plan.duration_ns != 0 ? "" : fmt::format(" of {}", plan.total), plan.unit,
                      rate < 10 ? fmt::format("{:.1f}", rate) : format_rate(rate));
  if (part > 0)
    text += fmt::format(", {} left", left_text(left));
  return text;
}

progress::progress(progress_plan plan) : plan_(std::move(plan)), terminal_(isatty(STDERR_FILENO) == 1) {}

progress::~progress() {
  if (shown_)
    print_error("\r\x1b[K");
}

void progress::show(std::uint64_t done, std::uint64_t now_ns, std::uint64_t total) {
  if (!terminal_)
    return;
  if (total != 0)
    plan_.total = total;
  if (begin_ns_ == 0) {
    begin_ns_ = last_ns_ = now_ns;
    last_done_ = done;
  }
  if (now_ns - last_ns_ < (shown_ ? kInterval : kBefore))
    return;
  const double rate = static_cast<double>(done - last_done_) / (static_cast<double>(now_ns - last_ns_) * 1e-9);
  print_error("\r{}\x1b[K", progress_text(plan_, done, now_ns - begin_ns_, rate));
  std::fflush(stderr);
  shown_ = true;
  last_ns_ = now_ns;
  last_done_ = done;
}

progress_thread::progress_thread(progress_plan plan, std::function<std::uint64_t()> done) {
  if (isatty(STDERR_FILENO) != 1)
    return;
  thread_ = std::thread([this, plan = std::move(plan), done = std::move(done)] {
    progress display(plan);
    std::unique_lock lock(mutex_);
    do
      display.show(done(), now_ns());
    while (!end_.wait_for(lock, std::chrono::nanoseconds(kInterval), [this] { return ended_; }));
  });
}

progress_thread::~progress_thread() {
  if (!thread_.joinable())
    return;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  end_.notify_one();
  thread_.join();
}

std::string coloured(const std::string &text, colour as) {
  static const bool use = colours_are_used();
  static constexpr const char *kCodes[] = {"32", "33", "31"}; // green, yellow, red
  return use ? fmt::format("\x1b[{}m{}\x1b[0m", kCodes[static_cast<int>(as)], text) : text;
}

} // namespace cudaq::realtime::tools
