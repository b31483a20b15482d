// SPDX-License-Identifier: Apache-2.0
// `pipeline` from its options to its exit status: loads the shots, makes the stages, runs them, reports.
#include "tools/common/machine.h"
#include "tools/common/shot_plan.h"
#include "tools/pipeline/pipeline_report.h"

#include <algorithm>
#include <cstdio>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace cudaq::realtime::tools {
namespace {

namespace pipe = cudaq::qec::realtime::experimental;
constexpr int kMostWorkersByDefault = 8;

pipe::pipeline_stage_config stage_config(const pipeline_options &o, const qec::decoding_config &config) {
  pipe::pipeline_stage_config c;
  const int cores = static_cast<int>(allowed_cores().size());
  // Dispatcher, consumer and producer need a core each.
  c.num_workers = o.workers != 0 ? o.workers : std::clamp(cores - 3, 1, kMostWorkersByDefault);
  c.num_slots = o.slots;
  c.slot_size = config.slot_size;
  c.cores = {o.cores.dispatcher, o.cores.consumer, o.cores.workers};
  c.memory = o.device == "gpu" ? pipe::ring_memory::mapped : pipe::ring_memory::host;
  c.device_id = o.gpu;
  c.wait = o.wait == "spin"    ? pipe::wait_policy::spin
           : o.wait == "yield" ? pipe::wait_policy::spin_yield
           : o.wait == "block" ? pipe::wait_policy::block
                               : pipe::wait_policy::automatic;
  return c;
}

} // namespace

int run_pipeline(const pipeline_options &o, const output &out, gpu_stage_maker make_gpu_stage) {
  const qec::decoding_config *const config = qec::find_decoding_config(o.config);
  if (config == nullptr)
    throw usage_error(fmt::format("--config {}: unknown configuration", o.config));
  const pipeline_shots shots(*config, o.noise, find_data_folder(o.data_folder), o.engine, o.decoder,
                             o.rule == "plain" ? qec::local_rule::plain : qec::local_rule::guarded, o.seed);
  const pipe::pipeline_stage_config stages = stage_config(o, *config);
  std::unique_ptr<gpu_stage> gpu;
  if (o.device == "gpu")
    gpu = make_gpu_stage(o, shots, stages.num_workers, stages.slot_size);
  print_pipeline_header(out, o, *config, stages, shots, gpu == nullptr ? "" : gpu->staging());
  const pipeline_result result = run_shots(o, stages, shots, gpu.get());
  print_pipeline_result(out, *config, shots, result);
  out.write_hgrm("pipeline", result.from_submit);
  const json report = pipeline_json(o, *config, stages, shots, result);
  write_pipeline_html(o.html_file, report, result);
  out.write_json(report);
  if (result.problems.empty()) {
    out.text("\nok: every shot completed once, every answer equals the offline decode\n");
    return kExitOk;
  }
  if (!result.dump.empty())
    fmt::print(stderr, "state at the stall:\n{}", result.dump);
  fmt::print(stderr, "cudaq-realtime pipeline: FAILED: {}\n", fmt::join(result.problems, "; "));
  return kExitCheckFailed;
}

} // namespace cudaq::realtime::tools
