// SPDX-License-Identifier: Apache-2.0
// The rig of a case: its floor and its dispatcher, each ready to run a round.
#pragma once

#include "benchmarks/common/bench_report.h"
#include "benchmarks/device/bench_session.h"
#include "cudaq/realtime/daemon/dispatcher/device_dispatch.h"
#include "lib/base/expected.h"

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cudaq::realtime::tools {

/// Runs one round of a floor or a case. Between two rounds no kernel of the benchmark runs on the GPU.
using round_runner = std::function<loop_result()>;

struct bench_rig {
  std::size_t floor_payload_bytes = 8;
  std::size_t payload_bytes = 8;
  round_runner floor;
  round_runner ours;
  std::vector<std::pair<std::string, round_runner>> other_floors;
};

/// Starts the dispatcher, runs `body`, stops the dispatcher. If `body` throws exchange_stalled, the dispatcher's state
/// is added to its text.
loop_result dispatcher_round(ring_service &service, const round_runner &body);

/// Measures one point of a curve. Floor and case alternate in every round; the floor may be missing.
curve_point measure_point(const bench_session &session, std::string x, const bench_rig &rig);

/// How a client drives a ring in mapped memory.
enum class drive : std::uint8_t {
  one_by_one,
  full_ring,       ///< a thread sends, another one collects
  full_by_batches, ///< the same; the sender writes up to kBatch requests and signals them together
  full_one_thread, ///< one thread sends by such batches and collects
  full_one_by_one, ///< one thread sends one request, collects one answer, and so on: the loop of a user's first client
  any_order,
};
inline constexpr std::uint32_t kBatch = 32;

/// A dispatcher on a ring in mapped memory with one or more functions of one kind; requests go to the last one.
struct mapped_case {
  device_service_config service;
  bench_handler handler = bench_handler::echo;
  reply_rule rule = reply_rule::echo;
  std::size_t payload_bytes = 8;
  drive how = drive::one_by_one;
};
/// A case with default options, one function, and slots that hold header and payload.
mapped_case make_mapped_case(const bench_session &session, std::uint32_t slots, std::size_t payload_bytes);

/// How the client of a case with many requests in flight drives the ring, by the end of the case's name.
drive drive_of(std::string_view name);

round_runner dispatcher_rounds(bench_session &session, const mapped_case &c);
/// Several running dispatchers, each with a ring of its own. The exchanges of a round are divided among them. The
/// client uses one ring at a time; the other dispatchers are idle meanwhile.
round_runner many_dispatcher_rounds(bench_session &session, const mapped_case &c, std::uint32_t dispatchers);
/// `memory`: of the ring. With requests in device memory the client looks at tx alone.
round_runner floor_rounds(bench_session &session, const floor_plan &plan, std::size_t payload_bytes, drive how,
                          cudaq_memory_kind_t memory = CUDAQ_MEMORY_MAPPED);

/// Slots of a ring as a user allocates it: for the longest frame, not for this one.
inline constexpr std::uint32_t kUserSlotBytes = 8192, kUserDeviceSlotBytes = 4096;

/// A ring in device memory, and a kernel that acts as the network interface. `launch_fn`: as in
/// device_service_config. `as_user`: with large slots, all flags at system scope.
bench_rig make_device_ring_rig(bench_session &session, cudaq_dispatch_launch_fn_v2_t launch_fn = nullptr,
                               bool as_user = false);

/// A floor of one block that reads and writes a frame of `frame_bytes`.
floor_plan in_order_plan(std::uint32_t slots, std::uint32_t frame_bytes);

/// A benchmark: cases with their floors. Making rigs and measuring throw usage_error, api_error, gpu_error and
/// exchange_stalled.
struct bench_suite {
  const char *method; ///< "": the method of `device`
  std::vector<bench_case> cases;
  bench_rig (*make_rig)(bench_session &session, const bench_case &of);
  /// May add notes to the context.
  std::vector<bench_curve> (*measure_curves)(bench_session &session, bench_context &context);
};
/// Measures and reports. A stalled exchange ends the run with kExitCheckFailed. Returns an exit_code.
int run_suite(const bench_suite &suite, const bench_options &options, const output &out);

bench_rig make_rig(bench_session &session, const bench_case &of);
std::vector<bench_curve> measure_curves(bench_session &session, bench_context &context);

// Rings whose requests lie in device memory: bench_device_rx.cpp.
/// Fails if this machine cannot make such a ring.
detail::expected<> check_device_rx(int gpu);
/// The cases that the options choose; without a choice, all, but those in GPU memory only where it can be made.
/// `in_gpu_memory`: the first words of their names.
std::vector<bench_case> cases_with_memory(const bench_options &options, std::span<const bench_case> all,
                                          std::string_view in_gpu_memory);
bench_rig make_device_rx_rig(bench_session &session, std::string_view name);
std::vector<bench_curve> measure_device_rx_curves(bench_session &session);

} // namespace cudaq::realtime::tools
