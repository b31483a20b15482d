// SPDX-License-Identifier: Apache-2.0
// The results of `latency` as text and as JSON, with the ratios to the floors.
#pragma once

#include "tools/common/exchange.h"
#include "tools/common/measured_case.h"
#include "tools/common/report.h"
#include "tools/latency/latency.h"

#include <string>
#include <vector>

namespace cudaq::realtime::tools {

using latency_case = measured_case;

inline constexpr char kTwoFlags0[] = "two_flags_0";
inline constexpr char kTwoFlags32[] = "two_flags_32";
inline constexpr char kRingClosed32[] = "ring_closed_32";
inline constexpr char kHostClosed0[] = "host_call_closed_0";
inline constexpr char kHostClosed32[] = "host_call_closed_32";
inline constexpr char kRingPiped0[] = "ring_pipelined_0";
inline constexpr char kRingPiped32[] = "ring_pipelined_32";
inline constexpr char kHostPiped0[] = "host_call_pipelined_0";
inline constexpr char kHostPiped32[] = "host_call_pipelined_32";
inline constexpr char kTimedClosed0[] = "host_call_timed_closed_0";
inline constexpr char kTimedPiped0[] = "host_call_timed_pipelined_0";
inline constexpr const char *kCaseNames[] = {kTwoFlags0,  kTwoFlags32,  kRingClosed32, kHostClosed0, kHostClosed32,
                                             kRingPiped0, kRingPiped32, kHostPiped0,   kHostPiped32};

struct latency_context {
  int client_core = 0;
  int server_core = 0;
  bool share_core = false; ///< client and server share one core: the figures measure the system's scheduler
  double ns_per_tick = 1;
  double timer_overhead_ns = 0;
  std::uint64_t involuntary_switches = 0; ///< of the client thread, all cases together
};

void print_latency(const output &out, const latency_options &o, const latency_context &context,
                   const std::vector<latency_case> &cases);
std::string latency_html(const json &report, const std::vector<latency_case> &cases);
json latency_json_body(const latency_options &o, const latency_context &context,
                       const std::vector<latency_case> &cases);

} // namespace cudaq::realtime::tools
