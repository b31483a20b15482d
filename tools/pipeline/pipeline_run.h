// SPDX-License-Identifier: Apache-2.0
// Recorded shots through the QEC pipeline: every answer is compared with the same decode done offline.
#pragma once

#include "tools/common/latency_histogram.h"
#include "tools/common/machine.h"
#include "tools/common/report.h"
#include "tools/pipeline/pipeline_shots.h"

#include "cudaq/qec/realtime/pipeline.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace cudaq::realtime::tools {

struct pipeline_options {
  std::string config = "d7";
  std::string engine = "passthrough"; ///< no predecoder: the local one makes more logical errors (docs/pipeline.md)
  std::string rule = "guarded";       ///< of the local engine
  std::string device = "cpu";         ///< of the engine
  int gpu = 0;
  std::string staging = "auto";
  std::string html_file; ///< "": none
  std::string decoder = "auto";
  std::string noise = "0.003";
  std::uint64_t shots = 20000;
  double rate = 0; ///< shots per second; 0: as fast as it goes
  int workers = 0; ///< 0: one for each core that is left, 1 to 8
  int slots = 32;
  std::string wait = "auto";
  thread_cores cores;
  std::string data_folder;
  std::uint64_t seed = 0;
  double timeout_s = 10;
};

/// Durations in nanoseconds. Stages: A from the submission to the begin of the CPU stage (dispatch and predecoding), B
/// the CPU stage (matching), C from its end to the completion handler.
struct pipeline_result {
  std::uint64_t submitted = 0, completed = 0, timed_out = 0;
  std::uint64_t wall_ns = 0; ///< first submission to last completion
  latency_histogram from_submit, from_due, stage_a, stage_b, stage_c;
  double sum_of_squares = 0;
  std::uint64_t failed = 0;       ///< completions without success
  std::uint64_t error_status = 0; ///< the decoder's own
  std::uint64_t mismatches = 0;   ///< not the offline answer
  std::uint64_t out_of_turn = 0;  ///< completions of a request that had none due: lost or doubled ones show here
  std::uint64_t backpressure_stalls = 0, stalled_ns = 0;
  std::vector<std::string> problems;
  std::string dump;

  [[nodiscard]] double shots_per_second() const noexcept {
    return wall_ns == 0 ? 0 : static_cast<double>(completed) * 1e9 / static_cast<double>(wall_ns);
  }
  [[nodiscard]] double standard_deviation() const noexcept;
};

/// The engines of a run on the GPU.
class gpu_stage {
public:
  virtual ~gpu_stage() = default;
  /// Of worker `id`; user_context goes to the CPU stage.
  virtual qec::experimental::gpu_worker_resources resources(int id, std::uint32_t function_id, void *user_context) = 0;
  /// How requests get to the engine.
  [[nodiscard]] virtual const char *staging() const = 0;
};
/// Throws what CUDA refuses.
using gpu_stage_maker = std::unique_ptr<gpu_stage> (*)(const pipeline_options &options, const pipeline_shots &shots,
                                                       int workers, std::size_t slot_size);

/// Returns an exit_code. Throws usage_error, and what the pipeline throws.
int run_pipeline(const pipeline_options &options, const output &out, gpu_stage_maker make_gpu_stage);

} // namespace cudaq::realtime::tools
