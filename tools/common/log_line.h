// SPDX-License-Identifier: Apache-2.0
// Lines of a program that serves for a long time: each says when.
#pragma once

#include "tools/common/report.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>
#include <fmt/format.h>
#include <string_view>
#include <utility>

namespace cudaq::realtime::tools {

/// The present time as ISO 8601 in UTC, with milliseconds: "2026-11-28T17:05:09.031Z".
struct log_time_text {
  std::array<char, 32> text{};
};
inline log_time_text log_time() noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  std::tm utc{};
  gmtime_r(&now.tv_sec, &utc);
  log_time_text out;
  fmt::format_to_n(out.text.data(), out.text.size() - 1, "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
                   utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec,
                   now.tv_nsec / 1'000'000);
  return out;
}

/// A line with its time at the end, written at once and without an allocation: a reload may end for want of memory.
/// `line`: without its end; one of more than 200 characters is cut. As write_log_line for a reader that has ended.
inline void write_event(std::FILE *stream, std::string_view line) noexcept {
  char text[256];
  const auto written = fmt::format_to_n(text, sizeof text, "{} time={}\n", line.substr(0, 200), log_time().text.data());
  std::fwrite(text, 1, std::min(written.size, sizeof text), stream);
  std::fflush(stream);
  std::clearerr(stream);
}

/// A line on stderr: the time, the name of the program, and this text, which ends with a new line.
template <typename... Args>
void print_log(fmt::format_string<Args...> format, Args &&...args) {
  print_error("{} cudaq-realtime: {}", log_time().text.data(), fmt::format(format, std::forward<Args>(args)...));
}

} // namespace cudaq::realtime::tools
