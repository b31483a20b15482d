// SPDX-License-Identifier: Apache-2.0
#include "tools/commands.h"
#include "tools/common/command_options.h"
#include "tools/pipeline/pipeline_gpu.h"

namespace cudaq::realtime::tools {
namespace {

constexpr const char *kFooter =
    R"(Recorded shots of a surface code go through a ring, an engine and a matcher; every answer is compared with the same
decode done offline. Stages of the latency: A submission to matching (dispatch and engine), B matching, C matching
to the completion handler.

The engine does nothing unless --engine local asks for the built-in predecoder. That rule is not as accurate as matching
alone: with --rule guarded it was measured to make 1.2 to 2.4 times as many logical errors for d 7 to 13 and p 0.001 to
0.003, with --rule plain 2 to 5.5 times as many. The report counts them on the recorded shots.

Examples:
  cudaq-realtime pipeline                                   d7, 20000 shots as fast as it goes
  cudaq-realtime pipeline --config d13 --rate 5000 --workers 4 --json pipeline.json
  cudaq-realtime pipeline --engine local                    with the predecoder, and what it costs
  cudaq-realtime pipeline --engine local --device gpu --html report.html
                                                            the predecoder in graphs on the GPU)";

} // namespace

void add_pipeline(CLI::App &program, chosen_command &chosen) {
  const auto options = std::make_shared<pipeline_options>();
  pipeline_options &o = *options;
  CLI::App &pipeline =
      *program.add_subcommand("pipeline", "predecoding and matching of recorded shots, every answer checked");
  pipeline.footer(kFooter);
  add_choice(pipeline, "--config", o.config, "code and slot size", {"d7", "d13", "d21", "d31", "d13_T104"});
  add_choice(pipeline, "--engine", o.engine,
             "predecoder: passthrough is none, local the built-in rule, which costs accuracy",
             {"local", "passthrough"});
  add_choice(pipeline, "--rule", o.rule,
             "what --engine local matches with the boundary; plain costs still more accuracy", {"guarded", "plain"});
  add_device_option(pipeline, o.device, "where the engine runs");
  pipeline.add_option("--gpu", o.gpu, "number of the GPU")->capture_default_str()->check(CLI::NonNegativeNumber);
  add_choice(pipeline, "--staging", o.staging,
             "how requests get to the GPU's engine: read in the slot, or copied before", {"auto", "mapped", "dma"});
  pipeline.add_option("--html", o.html_file, "write a report with histogram and stages to FILE")->type_name("FILE");
  add_decoder_option(pipeline, o.decoder, "matcher behind it");
  add_noise_option(pipeline, o.noise);
  add_shots_option(pipeline, o.shots, "shots to send; the set is cycled");
  pipeline.add_option("--rate", o.rate, "shots per second; 0: as fast as it goes")
      ->capture_default_str()
      ->check(number_between(0, 1e9));
  pipeline.add_option("--workers", o.workers, "worker threads; 0: one for each core that is left, up to 8")
      ->capture_default_str()
      ->check(CLI::Range(0, 64));
  pipeline.add_option("--slots", o.slots, "slots of the ring")->capture_default_str()->check(CLI::Range(1, 1 << 16));
  add_wait_option(pipeline, o.wait, "how threads wait; auto: spin if there are cores for all of them");
  add_core_options(pipeline, o.cores, {"submitting thread", "consumer", "dispatcher", "first worker"});
  add_recorded_shots_options(pipeline, o.data_folder, o.seed);
  add_timeout_option(pipeline, o.timeout_s, "progress");
  add_hgrm_option(pipeline, chosen.output);
  run_when_chosen(pipeline, chosen,
                  [options](const output &out) { return run_pipeline(*options, out, &make_gpu_stage); });
}

} // namespace cudaq::realtime::tools
