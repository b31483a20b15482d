// SPDX-License-Identifier: Apache-2.0
// The results of `device` and `graph` as text and as JSON.
#pragma once

#include "benchmarks/common/bench_plan.h"
#include "tools/common/measured_case.h"

#include <optional>
#include <string>
#include <vector>

namespace cudaq::realtime::tools {

struct bench_result {
  bench_case of;
  measured_case floor;
  measured_case ours;
  std::vector<measured_case> other_floors; ///< for comparison only
};

/// The ratio of a case to its floor; for bench_metric::rate the case's rate.
ratio_line ratio_of(const bench_result &result);

struct curve_point {
  std::string x;
  measured_case ours;
  std::optional<measured_case> floor;
};

struct bench_curve {
  std::string name;
  std::string what;
  std::string x_name;
  bool rate = false; ///< the figure is exchanges per second, not latency
  std::vector<curve_point> points;
};

struct bench_context {
  std::string method;             ///< "": the method of `device`
  std::vector<std::string> notes; ///< other findings, as sentences
  std::string gpu_name;
  std::string compute_capability;
  std::string driver;          ///< version line of the kernel module; "" if there is none
  int cuda_driver_version = 0; ///< 1000 * major + 10 * minor
  int cuda_runtime_version = 0;
  int multiprocessors = 0;
  int clock_khz = 0;              ///< highest clock, by the device attribute
  double measured_clock_mhz = 0;  ///< clock64 divided by globaltimer in a producer kernel; 0: no case ran one
  std::vector<int> client_cores;  ///< empty: not pinned
  unsigned any_order_threads = 0; ///< client threads of a ring with ANY ordering
  double ns_per_tick = 1;
  double timer_overhead_ns = 0;
  std::uint64_t involuntary_switches = 0; ///< of the measuring thread
};

void print_bench(const output &out, const bench_options &o, const bench_context &context,
                 const std::vector<bench_result> &results, const std::vector<bench_curve> &curves);
json bench_json_body(const bench_options &o, const bench_context &context, const std::vector<bench_result> &results,
                     const std::vector<bench_curve> &curves);

/// The page of --html. `report` has the fields of bench_json_body and those of every report.
std::string bench_html(const json &report, const std::vector<bench_result> &results,
                       const std::vector<bench_curve> &curves);

/// Prints the report, writes JSON, page and histograms, and returns the exit_code.
int report_bench(const output &out, const bench_options &o, const bench_context &context,
                 const std::vector<bench_result> &results, const std::vector<bench_curve> &curves);

/// Number of wrong replies in all results and curves.
std::uint64_t wrong_replies(const std::vector<bench_result> &results, const std::vector<bench_curve> &curves);

} // namespace cudaq::realtime::tools
