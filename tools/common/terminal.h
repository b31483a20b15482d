// SPDX-License-Identifier: Apache-2.0
// Drawing for people: a histogram of bars, and progress on stderr.
#pragma once

#include "tools/common/latency_histogram.h"

#include <cstdint>
#include <string>

namespace cudaq::realtime::tools {

/// About ten rows on a logarithmic scale, one bar each; the tail above p99.9 is one row of its own. "" without data.
std::string draw_histogram(const latency_histogram &histogram);

/// On a terminal: one line that is rewritten ten times a second. In a file or a pipe: a new line each second.
class progress {
public:
  /// total 0: the total is not known in advance.
  progress(std::string label, std::uint64_t total, bool enabled);
  ~progress();
  progress(const progress &) = delete;
  progress &operator=(const progress &) = delete;

  /// Prints if the interval has passed since the last time. `note` is appended unchanged.
  void show(std::uint64_t done, std::uint64_t now_ns, const std::string &note);

private:
  std::string label_;
  std::uint64_t total_;
  bool enabled_;
  bool terminal_;
  bool shown_ = false;
  std::uint64_t interval_ns_;
  std::uint64_t begin_ns_ = 0;
  std::uint64_t last_ns_ = 0;
  std::uint64_t last_done_ = 0;
};

} // namespace cudaq::realtime::tools
