// SPDX-License-Identifier: Apache-2.0
// Drawing for people: a histogram of bars, colours, and progress on stderr.
#pragma once

#include "tools/common/latency_histogram.h"

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace cudaq::realtime::tools {

/// About ten rows on a logarithmic scale, one bar each; the tail above p99.9 is one row of its own. "" without data.
std::string draw_histogram(const latency_histogram &histogram);

/// Number of shots after which a decoding loop reads the clock and shows its progress.
inline constexpr std::uint32_t kShotsPerProgress = 16;

/// The work of a run.
struct progress_plan {
  std::string label;             ///< "pass 1"
  const char *unit = "shots";    ///< the unit of the count
  std::uint64_t total = 0;       ///< 0: not known in advance
  std::uint64_t duration_ns = 0; ///< > 0: the run ends after this time, however many are done
};

/// "pass 1: 45 %, 9000 of 20000 shots, 12.3 k/s, 2 s left". `rate`: per second.
std::string progress_text(const progress_plan &plan, std::uint64_t done, std::uint64_t elapsed_ns, double rate);

/// The progress of a run of more than a second: one line on stderr, which is rewritten ten times a second and removed
/// at the end. Only a terminal gets it.
class progress {
public:
  explicit progress(progress_plan plan);
  ~progress();
  progress(const progress &) = delete;
  progress &operator=(const progress &) = delete;

  /// Shows `done` if it is time for that. The first call is the begin of the run. `total`: that of the plan, if it has
  /// become known only now.
  void show(std::uint64_t done, std::uint64_t now_ns, std::uint64_t total = 0);

private:
  progress_plan plan_;
  const bool terminal_;
  bool shown_ = false;
  std::uint64_t begin_ns_ = 0, last_ns_ = 0, last_done_ = 0;
};

/// The same on a thread of its own, for a run whose threads must not print. Without a terminal there is no thread.
class progress_thread {
public:
  /// `done` is called on that thread.
  progress_thread(progress_plan plan, std::function<std::uint64_t()> done);
  ~progress_thread();
  progress_thread(const progress_thread &) = delete;
  progress_thread &operator=(const progress_thread &) = delete;

private:
  std::mutex mutex_;
  std::condition_variable end_;
  bool ended_ = false;
  std::thread thread_;
};

/// Colours for text whose words have the same meaning without them.
enum class colour : std::uint8_t { good, warning, bad };
/// `text` in this colour, if stdout is a terminal, NO_COLOR is unset or empty, and TERM is set and not "dumb".
std::string coloured(const std::string &text, colour as);

} // namespace cudaq::realtime::tools
