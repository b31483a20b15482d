// SPDX-License-Identifier: Apache-2.0
// `pipeline` from its options to its exit status: loads the shots, makes the stages, runs them, reports.
#include "tools/common/interrupt.h"
#include "tools/common/machine.h"
#include "tools/pipeline/pipeline_report.h"
#include "tools/shots/shot_plan.h"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <optional>

namespace cudaq::realtime::tools {
namespace {

namespace pipe = cudaq::qec::realtime::experimental;
constexpr int kMaxWorkersByDefault = 8;

int num_workers(const pipeline_options &o) {
  constexpr int kOthers = 3; // dispatcher, consumer and producer need a core each
  return o.workers != kAutoWorkers
             ? o.workers
             : std::clamp(static_cast<int>(allowed_cores().size()) - kOthers, 1, kMaxWorkersByDefault);
}

pipe::pipeline_stage_config stage_config(const pipeline_options &o, const qec::decoding_config &config) {
  pipe::pipeline_stage_config c;
  c.num_workers = num_workers(o);
  c.num_slots = static_cast<int>(o.slots);
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

/// Own shots: numbers of the code that are not known are 0. A slot has room for the larger of request and response.
qec::decoding_config own_config(const pipeline_shots &shots) {
  const std::size_t payload = std::max(shots.shots().detection_bytes(), shots.response_bytes());
  constexpr std::size_t kCacheLine = 64; // as in the named configurations, slots are whole lines
  return {shots.shots().name, 0, 0, '-', (CUDAQ_RPC_HEADER_SIZE + payload + kCacheLine - 1) / kCacheLine * kCacheLine};
}

trace_names pipeline_tracks() {
  return {"pipeline", "submitting thread", "consumer", "worker", {"A dispatch and engine", "B matching", "C consumer"}};
}

} // namespace

int run_pipeline(const pipeline_options &o, const output &out, gpu_stage_maker make_gpu_stage) {
  require_cores(o.cores, num_workers(o));
  out.open_hgrm({"pipeline"});
  const qec::decoding_config *const named = qec::find_decoding_config(o.config);
  if (named == nullptr)
    throw usage_error(fmt::format("--config {}: unknown configuration", o.config));
  pipeline_shots shots(o.data.given() ? load_own_shots(o.data)
                                      : load_config_shots(*named, o.noise, find_data_folder(o.data_folder)),
                       o.engine, o.decoder, o.seed);
  const qec::decoding_config own = own_config(shots), &config = o.data.given() ? own : *named;
  const pipe::pipeline_stage_config stages = stage_config(o, config);
  std::unique_ptr<gpu_stage> gpu;
  if (o.device == "gpu")
    gpu = make_gpu_stage(o, shots, stages.num_workers, stages.slot_size);
  shots.decode_offline(gpu == nullptr ? nullptr : gpu->offline_engine());
  print_pipeline_header(out, o, config, stages, shots, gpu == nullptr ? "" : gpu->staging());
  const interrupt_guard guard;
  std::optional<run_trace> trace;
  if (out.traces())
    trace.emplace(o.duration_s != 0 ? 0 : o.shots);
  pipeline_result result = run_shots(o, stages, shots, gpu.get(), trace ? &*trace : nullptr);
  out.write_trace([&](std::ostream &file) { write_trace(file, {{pipeline_tracks(), &*trace}}); });
  if (o.data.predictions.given() && shots.prediction_differences() != 0)
    result.problems.push_back(
        fmt::format("{} of {} answers differ from --predictions", shots.prediction_differences(), shots.shots().shots));
  print_pipeline_result(out, config, shots, result);
  out.write_hgrm("pipeline", result.from_submit);
  const json report = pipeline_json(o, config, stages, shots, result);
  const run_end end = ended(guard.interrupted(), result.submitted, o.duration_s != 0 ? kNotKnown : o.shots, "shots");
  if (result.problems.empty() && end.partial.empty())
    out.text("\n{}\n", result.undecided.verdict(result.submitted, "the offline decode"));
  if (!result.dump.empty())
    print_error("state at the stall:\n{}", result.dump);
  return out.finish(report, fmt::format("{}", fmt::join(result.problems, "; ")), kExitCheckFailed, end,
                    [&](const json &all) { return pipeline_html(all, shots, result); });
}

} // namespace cudaq::realtime::tools
