/* SPDX-License-Identifier: Apache-2.0 */
// Latency and throughput of numbered requests.
#ifndef CUDAQ_QEC_UTILS_PIPELINE_BENCHMARKS_H
#define CUDAQ_QEC_UTILS_PIPELINE_BENCHMARKS_H

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

namespace cudaq::qec::utils {

/// Each request is submitted by one thread and completed by one thread, and handed from the one to the other. Call
/// start, stop and the results while no request is marked. Times are CLOCK_MONOTONIC, in microseconds.
class pipeline_benchmark {
public:
  using clock = std::chrono::steady_clock;

  pipeline_benchmark(std::string name, std::size_t total_requests)
      : name_(std::move(name)), requests_(total_requests) {}

  void start() { begin_ = end_ = clock::now(); }
  void stop() { end_ = clock::now(); }
  /// An index out of range is ignored.
  void mark_submit(std::size_t request) {
    if (request < requests_.size())
      requests_[request] = {clock::now(), {}, true, false};
  }
  void mark_complete(std::size_t request) {
    if (request < requests_.size()) {
      requests_[request].completed_at = clock::now();
      requests_[request].completed = true;
    }
  }

  /// Latencies are of completed requests only.
  struct stats {
    std::size_t submitted = 0, completed = 0, timed_out = 0;
    double min_us = 0, max_us = 0, mean_us = 0, p50_us = 0, p90_us = 0, p95_us = 0, p99_us = 0, p999_us = 0;
    double stddev_us = 0, total_wall_us = 0, throughput_rps = 0;
  };
  stats compute_stats() const {
    stats s;
    std::vector<double> us;
    for (const record &r : requests_) {
      s.submitted += r.submitted;
      if (r.submitted && r.completed)
        us.push_back(std::chrono::duration<double, std::micro>(r.completed_at - r.submitted_at).count());
    }
    s.completed = us.size();
    s.timed_out = s.submitted - s.completed;
    s.total_wall_us = std::chrono::duration<double, std::micro>(end_ - begin_).count();
    if (us.empty())
      return s;
    std::sort(us.begin(), us.end());
    double sum = 0, squares = 0;
    for (const double t : us)
      sum += t;
    s.mean_us = sum / static_cast<double>(us.size());
    for (const double t : us)
      squares += (t - s.mean_us) * (t - s.mean_us);
    s.stddev_us = std::sqrt(squares / static_cast<double>(us.size()));
    s.min_us = us.front();
    s.max_us = us.back();
    // The smallest latency that is not exceeded by at least this share of all requests.
    const auto at = [&](double percent) {
      const double rank = std::ceil(percent / 100 * static_cast<double>(us.size()) * (1 - 1e-12));
      return us[static_cast<std::size_t>(std::max(1.0, rank)) - 1];
    };
    s.p50_us = at(50);
    s.p90_us = at(90);
    s.p95_us = at(95);
    s.p99_us = at(99);
    s.p999_us = at(99.9);
    s.throughput_rps = s.total_wall_us > 0 ? static_cast<double>(s.completed) * 1e6 / s.total_wall_us : 0;
    return s;
  }
  /// Text for people to read.
  std::string report_text() const {
    const stats s = compute_stats();
    char text[640];
    std::snprintf(text, sizeof(text),
                  "%s: submitted %zu, completed %zu, timed out %zu; %.1f req/s\n"
                  "latency us: min %.1f  p50 %.1f  p90 %.1f  p95 %.1f  p99 %.1f  p99.9 %.1f  max %.1f\n"
                  "            mean %.1f  stddev %.1f  wall %.0f\n",
                  name_.c_str(), s.submitted, s.completed, s.timed_out, s.throughput_rps, s.min_us, s.p50_us, s.p90_us,
                  s.p95_us, s.p99_us, s.p999_us, s.max_us, s.mean_us, s.stddev_us, s.total_wall_us);
    return text;
  }

  /// Prints the text.
  void report(std::ostream &out = std::cout) const { out << report_text() << std::flush; }

private:
  struct record {
    clock::time_point submitted_at, completed_at;
    bool submitted = false, completed = false;
  };
  std::string name_;
  std::vector<record> requests_;
  clock::time_point begin_{}, end_{};
};

using PipelineBenchmark = pipeline_benchmark;

} // namespace cudaq::qec::utils

#endif
