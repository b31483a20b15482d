// SPDX-License-Identifier: Apache-2.0
// Sends recorded shots through the QEC pipeline, and compares every answer with the same decode done offline.
//
// Threads of a run:
//
//   thread      started by               owns                              waits               ends
//   main        the system               the injector; `sent` and `due`    spins, then yields  with the program
//   dispatcher  realtime_pipeline.start  the ring                          by --wait           realtime_pipeline.stop
//   worker      the same, --workers      its engine and its matcher        by --wait           the same
//   consumer    the same                 histograms and counts of answers  by --wait           the same
#pragma once

#include "tools/common/latency_histogram.h"
#include "tools/common/machine.h"
#include "tools/common/report.h"
#include "tools/common/run_timeline.h"
#include "tools/pipeline/pipeline_shots.h"
#include "tools/shots/own_data.h"
#include "tools/trace/run_trace.h"

#include "cudaq/qec/realtime/pipeline.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace cudaq::realtime::tools {

struct pipeline_options {
  std::string config = "d7";
  std::string engine = "passthrough"; ///< predecoder; "auto" stands for qec::kAutoPredecoder
  std::string device = "cpu";         ///< where the engine runs
  int gpu = 0;
  std::string staging = "auto";
  std::string plan = "shot"; ///< of a network on the GPU
  std::string decoder = "auto";
  std::string noise = "0.003";
  std::uint64_t shots = 20000;
  double duration_s = 0;      ///< > 0: time to send, instead of shots
  double rate = 0;            ///< shots per second; 0: as fast as possible
  int workers = kAutoWorkers; ///< kAutoWorkers: the number of cores minus 3, but 1 to 8
  std::uint32_t slots = 32;
  std::string wait = "auto";
  thread_cores cores;
  std::string data_folder;
  own_data data; ///< instead of a configuration
  std::uint64_t seed = 0;
  double timeout_s = 10;
};

/// Durations in nanoseconds. Stages: A from the submission to the begin of the CPU stage (dispatch and predecoding), B
/// the CPU stage (matching), C from the end of the CPU stage to the completion handler.
struct pipeline_result {
  std::uint64_t submitted = 0, completed = 0, timed_out = 0;
  std::uint64_t wall_ns = 0; ///< from the first submission to the last completion
  latency_histogram from_submit, from_due, stage_a, stage_b, stage_c;
  run_timeline timeline; ///< of from_submit
  double sum_of_squares = 0;
  std::uint64_t failed = 0;       ///< completions without success
  std::uint64_t error_status = 0; ///< completions with another error status than those of `undecided`
  unanswered_shots undecided;     ///< completions that say that the decoder has no answer
  std::uint64_t mismatches = 0;   ///< answers that differ from the offline answer, also in their status
  std::uint64_t out_of_turn = 0;  ///< completions of another request than the expected one: lost, doubled, reordered
  std::uint64_t backpressure_stalls = 0, stalled_ns = 0;
  std::vector<std::string> problems;
  std::string dump;

  [[nodiscard]] double shots_per_second() const noexcept {
    return wall_ns == 0 ? 0 : static_cast<double>(completed) * 1e9 / static_cast<double>(wall_ns);
  }
  [[nodiscard]] double standard_deviation() const noexcept;
};

/// The engines of a run with --device gpu.
class gpu_stage {
public:
  virtual ~gpu_stage() = default;
  /// The resources of worker `id`; `user_context` is passed to the CPU stage.
  virtual qec::experimental::gpu_worker_resources resources(int id, std::uint32_t function_id, void *user_context) = 0;
  /// The engine for the decode offline, if its answers are not bit by bit those of the CPU; null: they are. Throws
  /// std::runtime_error.
  [[nodiscard]] virtual std::unique_ptr<qec::predecoder> offline_engine() { return nullptr; }
  /// Text for people: how requests reach the engine.
  [[nodiscard]] virtual const char *staging() const = 0;
};
/// Makes the engines for `workers` workers. Throws gpu_error, or std::runtime_error, if that fails.
using gpu_stage_maker = std::unique_ptr<gpu_stage> (*)(const pipeline_options &options, const pipeline_shots &shots,
                                                       int workers, std::size_t slot_size);

/// Sends the shots through a pipeline and checks each answer. `gpu` and `trace` may be null; they must outlive the
/// call. Throws usage_error if a core cannot be used, and the exceptions of the pipeline.
pipeline_result run_shots(const pipeline_options &options,
                          const cudaq::qec::realtime::experimental::pipeline_stage_config &config,
                          const pipeline_shots &shots, gpu_stage *gpu, run_trace *trace);

/// Returns an exit_code. Throws usage_error, and the exceptions of the pipeline.
int run_pipeline(const pipeline_options &options, const output &out, gpu_stage_maker make_gpu_stage);

} // namespace cudaq::realtime::tools
