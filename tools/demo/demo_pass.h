// SPDX-License-Identifier: Apache-2.0
// One pass of the demo: the threads that send and collect (table in demo.h), and the result.
#pragma once

#include "tools/common/latency_histogram.h"
#include "tools/common/run_timeline.h"
#include "tools/services/ring_service.h"
#include "tools/shots/shot_plan.h"
#include "tools/trace/run_trace.h"

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace cudaq::realtime::tools {

struct pass_config {
  std::string label;
  std::uint64_t shots = 0;       ///< requests to send; 0: until duration_ns
  std::uint64_t duration_ns = 0; ///< 0: until all shots are sent
  std::uint64_t cadence_ns = 0;  ///< time from shot to shot; 0: as fast as possible
  std::uint64_t timeout_ns = 0;  ///< longest time without progress
  unsigned client_threads = 1;   ///< 1: one thread sends and collects; 2: one each
  int core_producer = -1, core_consumer = -1;
  std::uint32_t client_spins = 0;                     ///< spins of a client thread before it yields its core
  run_trace *trace = nullptr;                         ///< where each request is recorded
  const std::vector<handled_span> *handled = nullptr; ///< with `trace`: the handler's times by slot
  const std::atomic<bool> *interrupted = nullptr;     ///< set by Ctrl-C: send no more, collect the outstanding answers
};

struct pass_result {
  pass_config config;
  std::uint64_t sent = 0;
  std::uint64_t answered = 0;
  std::uint64_t wall_ns = 0;              ///< from the begin of the pass to the last answer collected
  latency_histogram from_sent;            ///< from writing the frame to seeing the answer
  latency_histogram from_due;             ///< with a cadence: from the scheduled time to seeing the answer
  run_timeline timeline;                  ///< of from_sent
  std::uint64_t out_of_order = 0;         ///< answers collected while an older request had no answer
  std::uint64_t involuntary_switches = 0; ///< of the client's threads; the latencies include that time
  std::uint64_t stalls = 0;               ///< shots whose slot was still taken (backpressure)
  std::uint64_t stalled_ns = 0;           ///< time that the sender waited for slots
  std::uint64_t faults = 0;               ///< answers with a wrong frame, id or timestamp
  std::uint64_t bad_status = 0;           ///< answers with another error status than those of `undecided`
  unanswered_shots undecided;             ///< answers that say that the decoder has none
  std::uint64_t mismatches = 0;     ///< answers with a wrong length, or another correction or status than expected
  std::uint64_t missing = 0;        ///< of mismatches: no correction (`undecided`) where one was expected
  std::uint64_t logical_errors = 0; ///< corrections that differ from the true observables, if these are there
  std::uint64_t golden_logical_errors = 0; ///< the same for the set's predictions of these shots
  std::uint64_t golden_differences = 0;    ///< corrections that differ from the set's prediction
  std::uint64_t leftover_answers = 0;      ///< slots that hold an answer or a marker after the last answer
  bool stalled = false;
  cudaq_dispatcher_stats_t stats{};
  std::uint64_t processed = 0;
  std::vector<std::string> notes;    ///< the first few wrong answers, described
  std::vector<std::string> problems; ///< why the pass failed; empty: it passed
  std::string dump;                  ///< state of client and dispatcher after a stall

  /// Shots without a correction: no answer, an error status, a wrong frame. They are failures of the logical rate.
  [[nodiscard]] std::uint64_t unanswered() const noexcept {
    return sent - answered + faults + bad_status + undecided.total();
  }
  [[nodiscard]] double shots_per_second() const noexcept {
    return wall_ns == 0 ? 0.0 : static_cast<double>(answered) * 1e9 / static_cast<double>(wall_ns);
  }
};

/// Starts the service, runs the pass, stops the service, and compares the counts of client and dispatcher. Blocks until
/// the client's threads have ended. After a stall the service is not stopped.
pass_result run_pass(ring_service &service, const shot_plan &plan, const pass_config &config);

} // namespace cudaq::realtime::tools
