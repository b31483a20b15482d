// SPDX-License-Identifier: Apache-2.0
// What is built up for a case of `bench device`: its floor and its dispatcher, each ready to run a round.
#pragma once

#include "tools/bench/bench_report.h"
#include "tools/bench/bench_session.h"

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace cudaq::realtime::tools {

/// Rounds of a floor or a case. Nothing runs on the GPU between two rounds.
using round_runner = std::function<loop_result()>;

struct bench_rig {
  std::size_t floor_payload_bytes = 8;
  std::size_t payload_bytes = 8;
  round_runner floor;
  round_runner ours;
  std::vector<std::pair<std::string, round_runner>> other_floors;
};

/// Starts the dispatcher, runs `body`, stops it. The dispatcher's state is added to what a stalled exchange says.
loop_result dispatcher_round(ring_service &service, const round_runner &body);

/// One point of a curve: floor, if there is one, and case alternate like those of a case.
curve_point measure_point(const bench_session &session, std::string x, const bench_rig &rig);

/// How a client drives a ring in mapped memory.
enum class drive : std::uint8_t { one_by_one, full_ring, any_order };

/// A dispatcher on a ring in mapped memory with one or more functions of one kind; requests go to the last one.
struct mapped_case {
  device_service_config service;
  bench_handler handler = bench_handler::echo;
  reply_rule rule = reply_rule::echo;
  std::size_t payload_bytes = 8;
  drive how = drive::one_by_one;
};
/// Defaults, one function, and a slot that holds the payload.
mapped_case make_mapped_case(const bench_session &session, std::uint32_t slots, std::size_t payload_bytes);

round_runner dispatcher_rounds(bench_session &session, const mapped_case &c);
/// Several dispatchers, each with a ring of its own, all running; a share of the round goes to one
/// after the other while the rest are idle.
round_runner many_dispatcher_rounds(bench_session &session, const mapped_case &c, std::uint32_t dispatchers);
round_runner floor_rounds(bench_session &session, const floor_plan &plan, std::size_t payload_bytes, drive how);

/// Frame of `frame_bytes` in and out by one block.
floor_plan in_order_plan(std::uint32_t slots, std::uint32_t frame_bytes);

/// A benchmark of cases beside their floors. What measures throws usage_error, api_error, gpu_error, exchange_stalled.
struct bench_suite {
  const char *command;
  const char *method; ///< "": that of `bench device`
  std::vector<bench_case> cases;
  bench_rig (*make_rig)(bench_session &session, const bench_case &of);
  /// Notes go to the context.
  std::vector<bench_curve> (*measure_curves)(bench_session &session, bench_context &context);
};
/// Measures and reports. Returns an exit_code.
int run_suite(const bench_suite &suite, const bench_options &options, const output &out);

bench_rig make_rig(bench_session &session, const bench_case &of);
std::vector<bench_curve> measure_curves(bench_session &session, bench_context &context);

} // namespace cudaq::realtime::tools
