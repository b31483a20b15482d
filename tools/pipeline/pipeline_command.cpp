// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/decoding/predecoder.h"
#include "tools/command_line/command_options.h"
#include "tools/command_line/commands.h"
#include "tools/pipeline/pipeline_gpu.h"

namespace cudaq::realtime::tools {
namespace {

constexpr const char *kPipelineFooter =
    R"(Recorded shots of a surface code go through a ring, an engine and a matcher. Every answer is compared with the
same decode done offline. Stages of the latency: A from submission to matching (dispatch and engine), B matching, C from
matching to the completion handler.

The engine does nothing by default, nor with --predecoder auto. --predecoder local selects the built-in one. It runs
before the decoder pymatching only, and it is a heuristic that is less accurate than matching alone: measured for d 7 to
13 and p 0.001 to 0.003, it makes 1.3 to 2.6 times as many logical errors. The report counts those on the recorded
shots, with and without it.

Examples:
  cudaq-realtime pipeline                                   d7, 20000 shots as fast as possible
  cudaq-realtime pipeline --config d13 --rate 5000 --workers 4 --json pipeline.json
  cudaq-realtime pipeline --dem model.dem --in shots.b8 --obs_in observables.b8
                                                            own model and shots
  cudaq-realtime pipeline --predecoder local                with the predecoder; the report counts logical errors
  cudaq-realtime pipeline --predecoder local --device gpu --html report.html
                                                            the predecoder in graphs on the GPU
  cudaq-realtime pipeline --predecoder resident             the predecoder on blocks that stay on the GPU
  cudaq-realtime pipeline --dem model.dem --in shots.b8 --predecoder model=FILE
                                                            a trained network, on the CPU; --device gpu: on the GPU)";

bool is_model_file(const std::string &word) { return qec::is_learned_predecoder(word); }

/// `--predecoder resident` is short for the local predecoder on a GPU with resident staging.
void place_engine(pipeline_options &o, bool device_given, bool gpu_given) {
  if (o.engine == "resident") {
    if (device_given && o.device != "gpu")
      throw CLI::ValidationError("--device", "the blocks of --predecoder resident are on a GPU");
    if (o.staging != "auto" && o.staging != "resident")
      throw CLI::ValidationError("--staging", "requests reach --predecoder resident by `resident` only");
    o.engine = "local";
    o.device = "gpu";
    o.staging = "resident";
  }
  if (o.plan != "shot" && (o.device != "gpu" || !qec::is_learned_predecoder(o.engine)))
    throw CLI::ValidationError("--plan", "it has no effect without --device gpu and --predecoder model=FILE");
  if (o.staging == "resident" && o.plan != "shot")
    throw CLI::ValidationError("--plan", "resident blocks have a plan of their own, for all workers at a time");
  if (o.device != "gpu" && gpu_given)
    throw CLI::ValidationError("--gpu", "it has no effect without --device gpu");
  if (o.device != "gpu" && o.staging != "auto")
    throw CLI::ValidationError("--staging", "it has no effect without --device gpu");
}

} // namespace

void add_pipeline(CLI::App &program, chosen_command &chosen) {
  const auto options = std::make_shared<pipeline_options>();
  pipeline_options &o = *options;
  CLI::App &pipeline =
      *program.add_subcommand("pipeline", "decode recorded shots by predecoding and matching, check every answer");
  pipeline.footer(kPipelineFooter);
  CLI::Option *const config =
      add_choice(pipeline, "--config", o.config, "code and slot size", {"d7", "d13", "d21", "d31", "d13_T104"});
  add_distance_as_config(pipeline, chosen, o.config, config)->check(CLI::IsMember({7u, 13u, 21u, 31u}));
  const std::vector<std::string> predecoders{"auto", "local", "passthrough", "resident"};
  CLI::Option *const predecoder =
      add_choice(pipeline, "--predecoder", o.engine,
                 "predecoder; passthrough, auto: none; local: the built-in rule, less accurate than matching alone; "
                 "resident: local, on blocks that stay on the GPU; model=FILE: a network",
                 predecoders, &is_model_file, "model=FILE");
  add_renamed(pipeline, chosen, "--engine", predecoder, o.engine)->check(CLI::IsMember(predecoders));
  const CLI::Option *const device = add_device_option(pipeline, o.device, "where the engine runs");
  const CLI::Option *const gpu =
      add_gpu_option(pipeline, o.gpu)->description("number of the GPU, with --device gpu or --predecoder resident");
  add_choice(pipeline, "--staging", o.staging,
             "how requests reach the engine on the GPU: mapped reads the slot, dma copies first, resident writes them "
             "to GPU memory, for blocks that stay there",
             {"auto", "mapped", "dma", "resident"});
  add_choice(pipeline, "--plan", o.plan,
             "how a network on the GPU is divided into blocks: shot, for the least time of one shot; rate, for as many "
             "shots at a time as there are workers; fused and fused-rate, the same in one launch a shot",
             {"shot", "rate", "fused", "fused-rate"});
  add_decoder_option(pipeline, o.decoder, "matcher, after the engine");
  add_noise_option(pipeline, o.noise);
  add_shots_option(pipeline, o.shots, "shots to send; the set is repeated");
  add_duration_option(pipeline, o.duration_s, "seconds to send, instead of --shots");
  add_rate_option(pipeline, chosen, o.rate)->capture_default_str();
  add_workers_option(pipeline, o.workers, "worker threads; auto: one for each core that is left, at most 8");
  add_slots_option(pipeline, o.slots);
  add_wait_option(pipeline, o.wait, "how threads wait; auto: spin if there is a core for each thread");
  add_core_options(pipeline, o.cores, {"submitting thread", "consumer", "dispatcher", "first worker"});
  add_recorded_shots_options(pipeline, o.data_folder, o.seed);
  add_own_data_instead_of(pipeline, o.data, {"--config", "--noise", "--data"});
  add_timeout_option(pipeline, o.timeout_s, "progress");
  add_html_option(pipeline, chosen.output);
  add_hgrm_option(pipeline, chosen.output);
  add_trace_option(pipeline, chosen.output);
  pipeline.parse_complete_callback([&o, &chosen, device, gpu] {
    if (o.workers == 0) {
      chosen.notes.emplace_back("--workers 0 is an old form; write --workers auto");
      o.workers = kAutoWorkers;
    }
    place_engine(o, device->count() != 0, gpu->count() != 0);
  });
  run_when_chosen(pipeline, chosen,
                  [options](const output &out) { return run_pipeline(*options, out, &make_gpu_stage); });
}

} // namespace cudaq::realtime::tools
