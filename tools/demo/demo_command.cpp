// SPDX-License-Identifier: Apache-2.0
#include "tools/command_line/command_options.h"
#include "tools/command_line/commands.h"
#include "tools/demo/demo.h"

namespace cudaq::realtime::tools {
namespace {

constexpr const char *kDemoFooter =
    R"(Without --rate there are two passes. The first runs as fast as possible: it measures throughput, and its
latencies are waiting times in the queue. The second runs at about 60 % of that load: it measures latency.

Examples:
  cudaq-realtime demo                                       d13, 20000 shots in each of the two passes
  cudaq-realtime demo --config d7 --rate 50000 --duration 10
                                                            a d7 shot every 20 us, for ten seconds
  cudaq-realtime demo --workers 3 --core-dispatcher 2 --core-workers 3 --core-producer 0 --core-consumer 1
                                                            three decoders in parallel, all threads pinned
  cudaq-realtime demo --config d3 --decoder lookup --in-place --wait block
  cudaq-realtime demo --device gpu                          d3 shots, decoded by a handler in a dispatch kernel
  cudaq-realtime demo --dem model.dem --in shots.b8 --obs_in observables.b8
                                                            own model and shots
  cudaq-realtime demo --json result.json --hgrm result      JSON report, and histograms for HdrHistogram's plotter)";

} // namespace

void add_demo(CLI::App &program, chosen_command &chosen) {
  const auto options = std::make_shared<demo_options>();
  demo_options &o = *options;
  CLI::App &demo = *program.add_subcommand("demo", "decode recorded surface-code shots through the ring");
  demo.footer(kDemoFooter);
  add_distance_options(demo, chosen, o.config, "code of the recorded shots (default d13; d3 without PyMatching)");
  add_noise_option(demo, o.noise);
  add_shots_option(demo, o.shots, "shots to send in each pass; the set is repeated");
  add_duration_option(demo, o.duration_s, "seconds to send in each pass, instead of --shots");
  add_rate_option(demo, chosen, o.rate)
      ->description("shots per second, evenly spaced; 0: as fast as possible (default: a pass of each kind)");
  add_slots_option(demo, o.slots);
  add_workers_option(demo, o.workers,
                     "handler threads, any order; 0: the dispatcher's thread decodes, in order; auto: one for each "
                     "core that is left");
  add_wait_option(demo, o.wait, "how the dispatcher waits; auto: spin if there is a core for each thread");
  demo.add_flag("--in-place", o.in_place, "answers overwrite their requests");
  add_decoder_option(demo, o.decoder, "decoder");
  demo.add_option("--client-threads", o.client_threads,
                  "1: one thread sends and collects; 2: one thread each; 0: automatic")
      ->capture_default_str()
      ->check(CLI::Range(0u, 2u));
  add_device_option(demo, o.device, "where shots are decoded; gpu: in a dispatch kernel, with the lookup decoder");
  add_gpu_option_of_device(demo, o.gpu, o.device);
  add_core_options(demo, o.cores, {"sending thread", "collecting thread", "dispatcher", "first handler thread"});
  add_recorded_shots_options(demo, o.data_folder, o.seed);
  add_own_data_instead_of(demo, o.data, {"--config", "--noise", "--data"});
  add_timeout_option(demo, o.timeout_s, "progress");
  add_html_option(demo, chosen.output);
  add_hgrm_option(demo, chosen.output);
  add_trace_option(demo, chosen.output);
  run_when_chosen(demo, chosen, [options](const output &out) {
    return options->device == "gpu" ? run_demo_on_gpu(*options, out) : run_demo(*options, out);
  });
}

} // namespace cudaq::realtime::tools
