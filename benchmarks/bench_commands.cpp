// SPDX-License-Identifier: Apache-2.0
// The subcommands that measure.
#include "benchmarks/bench_commands.h"
#include "benchmarks/common/bench.h"
#include "benchmarks/decoding/bench_decoding.h"
#include "benchmarks/stream/bench_stream.h"
#include "tools/command_line/command_options.h"

#include <random>

namespace cudaq::realtime::tools {
namespace {

constexpr const char *kBenchDeviceFooter =
    R"(Floors and cases alternate in every repetition. Each floor is the smallest kernel that could do the work, written
without the library. Every payload is random and every reply is checked. Needs an NVIDIA GPU and a build with device
kernels.
  echo-8B           closed loop, 8 B echo
  regular-4K        4096 B, one thread's handler: -add-words, -add-words-batched, -last-word
  cooperative-4K    4096 B, cooperative kernel: -1-block, -16-blocks
  fifo-64           throughput in order; also -one-thread, -user
  any-256           throughput in any order
  device-ring-8B    ring in device memory, a kernel acts as the network interface; also device-ring-user
  gpu-memory        requests in GPU memory: -echo-8B, -fifo-64 (also -batches, -one-thread, -user), -cooperative-4K,
                    -last-word-4K
  idle-poll         time of an empty poll

Examples:
  cudaq-realtime-bench device                              all cases, 100000 exchanges of each in 10 repetitions
  cudaq-realtime-bench device --cases echo-8B,device-ring-8B --json bench.json
  cudaq-realtime-bench device --curves --json bench.json   also series: how cost grows with payload, slots, ...
  cudaq-realtime-bench device --quick                      a short check that everything works, no measurement)";

constexpr const char *kBenchGraphFooter =
    R"(Graphs as handlers: as workers of the host dispatcher, and launched by a scheduler on the GPU. Floors and cases
alternate in every repetition. A floor of a worker is the same graph, launched by the measuring thread; a floor of a
scheduler is a minimal scheduler. Every payload is random and every reply is checked. Needs an NVIDIA GPU and a build
with device kernels.
  worker-8B, worker-publishing-8B          one worker; the library or the graph publishes
  worker-copied-4K                         4096 B copied by a pre-launch hook
  scheduler-8B, scheduler-publishing-8B    the same with the scheduler; scheduler-gpu-memory: requests in GPU memory
  workers-64, workers-8-of-70us            as fast as possible

Examples:
  cudaq-realtime-bench graph                               all cases, 100000 exchanges of each in 10 repetitions
  cudaq-realtime-bench graph --curves --json graph.json    also series: 1 to 64 workers, payloads read and copied
  cudaq-realtime-bench graph --quick                       a short check that everything works, no measurement)";

#ifdef CUDAQ_TOOL_HAS_QEC
constexpr const char *kBenchPipelineFooter =
    R"(The time of a request in the QEC pipeline without inference and matching. Needs an NVIDIA GPU, except
decode-stage and host-predecoder.
  passthrough-latency, passthrough-rate    a graph copies the request
  kernel-70us-latency, kernel-70us-rate    the same with a kernel of 70 us
  kernel-70us-buffers                      such a kernel on workers of one buffer and of two
  local-latency, local-rate                the local predecoder in a graph
  many-workers                             8 to 64 workers that launch their graphs themselves
  decode-stage                             the decode stage without the matcher
  staging                                  as the specification stages, own and external ring
  staging-buffers, two-streams             the same with two buffers, on one stream and on two
  resident                                 the local predecoder on blocks that stay on the GPU
  learned-shot, learned-rate               one shot through the network of training/predecoder/weights; many
  learned-pipeline                         requests through the network, and their matching
  relay-bp                                 relay-bp-gpu: a shot with 1 to 128 chains, an iteration and its steps
  host-predecoder                          the same predecoder on the CPU

Examples:
  cudaq-realtime-bench pipeline --json pipeline.json --data DIR    d7 to d31; shots in DIR (make_data.py --pipeline)
  cudaq-realtime-bench pipeline --cases decode-stage,host-predecoder    without a GPU)";

constexpr const char *kBenchDecodingFooter =
    R"(Shots are sampled from the errors of a detector error model. Every case decodes the same shots: each decoder
alone, and the first decoder after each predecoder. The first decoder alone is the reference of the ratios. Needs no
GPU.

With several models, or --csv, each decoder stops for itself at --shots or --failures. Distance, p and rounds are in the
name of the file: surface_d5_p0.003_r5.dem or d=5,p=0.003,r=5.dem. Started again, it adds what is missing in the CSV.

Examples:
  cudaq-realtime-bench decoding --dem tools/data/surface_z_d[357]_p*.dem --shots 100000 --failures 100 \
    --csv counts.csv --html curve.html         rates over p, a line a distance; again with more shots: only the new ones
  cudaq-realtime-bench decoding --csv counts.csv --svg curve.svg                draws counts, also those of sinter
  cudaq-realtime-bench decoding --dem tools/data/surface_z_d7_p0.003.dem --predecoder local
  cudaq-realtime-bench decoding --dem tools/data/surface_z_d7_p0.003.dem --errors 4 --shots 1000000
  cudaq-realtime-bench decoding --dem tools/data/surface_z_d3_p0.003.dem --decoder pymatching lookup
  cudaq-realtime-bench decoding --dem model.dem --readout readout.txt         with soft values and flags, and without
  cudaq-realtime-bench decoding --dem tools/data/bp_osd/bicycle_72_r6_p0.003.dem --decoder relay-bp bp-osd \
    --deadlines 50,100,200,500,1000,5000 --html curve.html       logical errors under a deadline, with their plot)";

constexpr const char *kBenchStreamFooter =
    R"(Experiments are sampled from a model with a loop and sent to a stream decoder, one round each cycle. Lag: rounds
that are due and not final. Tail: from the last round to the final correction. Needs no GPU.

Examples:
  cudaq-realtime-bench stream --dem tools/data/surface_loop_d3_p0.004.dem --workers 8
  cudaq-realtime-bench stream --dem model.dem --rounds 10000 --experiments 1000 --random-stops --json stream.json
  cudaq-realtime-bench stream --dem model.dem --cycle-us 0 --workers 4    as fast as it goes)";
#endif

constexpr const char *kBenchIdleFooter =
    R"(Rings of 1, 4, 16, ..., 2^20 slots. In each repetition a dispatcher on the host path starts, has nothing to do,
answers one request, has nothing to do, and is stopped. Neither time should grow with the slots. Needs no GPU.

Examples:
  cudaq-realtime-bench idle --repeats 50 --json idle.json
  cudaq-realtime-bench idle --quick                        a short check that everything works, no measurement)";

/// A subcommand with cases.
struct bench_command {
  const char *name, *what, *footer;
  const char *curves; ///< help of --curves; NULL: the subcommand has no --curves
  bool has_client;    ///< the subcommand has client threads of its own, and floors: --repeats and --cores
  bool has_data;      ///< the subcommand has --data
  int (*run)(const bench_options &, const output &);
};

void add_bench_command(CLI::App &program, const bench_command &c, chosen_command &chosen) {
  const auto options = std::make_shared<bench_options>();
  bench_options &o = *options;
  CLI::App &command = *program.add_subcommand(c.name, c.what);
  command.footer(c.footer);
  command.add_option("--cases", o.cases, "cases to measure, by name or by its first words (regular-4K); default: all")
      ->delimiter(',')
      ->type_name("A,B,...");
  add_exchanges_option(command, o, std::uint64_t{1} << 32);
  if (c.has_client)
    add_repeats_option(command, chosen, o, "repetitions; each measures every floor and every case");
  if (c.curves != nullptr)
    command.add_flag("--curves", o.curves, c.curves);
  add_quick_flag(command, o, c.has_client ? "4000 exchanges in 2 repetitions" : "4000 exchanges");
  add_gpu_option(command, o.gpu);
  if (c.has_client)
    command
        .add_option("--cores", o.cores,
                    "cores of the client threads (default: with four cores or more, all but the first)")
        ->delimiter(',')
        ->type_name("A,B,...")
        ->check(CLI::Range(0, kMaxCores));
  add_random_payload_options(command, o);
  if (c.has_data)
    add_data_option(command, o.data_folder);
  add_html_option(command, chosen.output);
  add_hgrm_option(command, chosen.output);
  run_when_chosen(command, chosen, [options, run = c.run](const output &out) { return run(*options, out); });
}

void add_bench_idle(CLI::App &program, chosen_command &chosen) {
  const auto options = std::make_shared<bench_options>();
  CLI::App &command =
      *program.add_subcommand("idle", "one request and a stop of an idle dispatcher, by the slots of its ring");
  command.footer(kBenchIdleFooter);
  add_repeats_option(command, chosen, *options, "repetitions for each number of slots");
  add_quick_flag(command, *options, "2 repetitions");
  add_timeout_option(command, options->timeout_s, "an answer");
  add_html_option(command, chosen.output);
  add_hgrm_option(command, chosen.output);
  run_when_chosen(command, chosen, [options](const output &out) { return run_bench_idle(*options, out); });
}

#ifdef CUDAQ_TOOL_HAS_QEC
/// What shots of `decoding` know, and what a list of cases cannot have beside it.
void add_known_options(CLI::App &command, bench_readout_options &known) {
  CLI::Option *const table = command.add_option(
      "--readout", known.readout,
      "a table of soft values and flags, which are drawn: each decoder decodes the shots with them, too");
  table->type_name("FILE");
  add_choice(command, "--soft_kind", known.soft_kind, "f32, or rounded: u8, u4", {"f32", "u8", "u4"})->needs(table);
  command.add_option("--leaked", known.leaked, "the share of flags that is 2, and the share that is 1")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 0.5))
      ->needs(table);
  CLI::Option *const heralds =
      command.add_option("--heralds", known.heralds, "a file of heralds, which fire at random: the same with them");
  heralds->type_name("FILE")->excludes(table);
  command.add_option("--erased", known.erased, "the share of the heralds that fire")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1.0))
      ->needs(heralds);
  for (CLI::Option *const one : {table, heralds})
    for (const char *const other : {"--csv", "--predecoder", "--deadlines", "--flagged"})
      one->excludes(command.get_option(other));
}

void add_bench_decoding(CLI::App &program, chosen_command &chosen) {
  const auto options = std::make_shared<bench_decoding_options>();
  bench_decoding_options &o = *options;
  CLI::App &command = *program.add_subcommand("decoding", "logical errors and time of decoders on shots of a model");
  command.footer(kBenchDecodingFooter);
  command.add_option("--dem", o.dem_files, "detector error models; several, or --csv: rates over p, a line a distance")
      ->type_name("FILE");
  command
      .add_option("--csv", o.csv_file,
                  "counts as sinter has them; a run adds what is missing; without --dem it only draws them")
      ->type_name("FILE");
  command.add_option("--svg", o.svg_file, "the picture of the rates")->type_name("FILE");
  command
      .add_option("--decoder", o.decoders,
                  "decoders, separated by blanks, as in `decode --help`; the first one alone is the reference")
      ->capture_default_str()
      ->check(CLI::Validator(&refuse_decoder_name, "NAME"));
  command.add_option("--predecoder", o.predecoders, "predecoders before the first decoder")
      ->delimiter(',')
      ->capture_default_str()
      ->check(CLI::IsMember({"local", "passthrough", "none"}));
  command
      .add_option("--deadlines", o.deadlines_us,
                  "microseconds: each decoder also decodes all shots with each deadline; use free cores")
      ->delimiter(',')
      ->type_name("US,...")
      ->check(CLI::Range(0.001, 1e9));
  command
      .add_option("--flagged", o.flagged,
                  "shares of the errors, 0 to 1: each decoder also decodes all shots with a list that replaces these")
      ->delimiter(',')
      ->type_name("SHARE,...")
      ->check(CLI::Range(0.0, 1.0));
  add_known_options(command, o.known);
  add_shots_option(command, o.shots, "shots to sample; of each model");
  add_duration_option(command, o.duration_s, "seconds to decode, instead of --shots");
  command.add_option("--failures", o.failures, "stop when the reference has failed so often; 0: do not")
      ->capture_default_str();
  command.add_option("--errors", o.errors, "number of errors in each shot; 0: as the model says")
      ->capture_default_str()
      ->excludes("--readout")
      ->excludes("--heralds");
  const CLI::Option &seed = *command.add_option("--seed", o.seed, "seed of the shots; with --csv a random one, else 1");
  add_threads_option(command, o.threads);
  add_html_option(command, chosen.output);
  run_when_chosen(command, chosen, [options, &seed](const output &out) {
    if (!options->csv_file.empty() && seed.count() == 0) // counts of two files may be added: not those of equal shots
      options->seed = std::random_device()();
    return run_bench_decoding(*options, out);
  });
}

void add_bench_stream(CLI::App &program, chosen_command &chosen) {
  const auto options = std::make_shared<bench_stream_options>();
  bench_stream_options &o = *options;
  CLI::App &command = *program.add_subcommand("stream", "a stream decoder at the pace of hardware: its lag, its tail");
  command.footer(kBenchStreamFooter);
  command.add_option("--dem", o.dem_file, "detector error model with a loop")->required()->type_name("FILE");
  command.add_option("--decoder", o.decoder, "decoder of each window, as in `decode --help`")
      ->capture_default_str()
      ->check(CLI::Validator(&refuse_decoder_name, "NAME"));
  command.add_option("--commit", o.commit, "rounds that a window makes final; 0: the distance")->capture_default_str();
  command.add_option("--buffer", o.buffer, "other rounds that it looks at; 0: the distance")->capture_default_str();
  command.add_option("--rule", o.rule, "what a round is: time, or index:N")->capture_default_str();
  command.add_option("--mode", o.mode, "windows: automatic, sequential, parallel")
      ->capture_default_str()
      ->check(CLI::IsMember({"automatic", "sequential", "parallel"}));
  command.add_option("--workers", o.workers, "threads that decode; 0: the thread that sends")
      ->capture_default_str()
      ->check(CLI::Range(0, 1024));
  command.add_option("--queue-rounds", o.queue_rounds, "rounds that are kept at most; 0: a default")
      ->capture_default_str();
  command.add_option("--rounds", o.rounds, "rounds of an experiment, with head and tail; up to a whole repetition")
      ->capture_default_str()
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 32));
  command.add_option("--experiments", o.experiments, "experiments, one after another")
      ->capture_default_str()
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 32));
  command.add_flag("--random-stops", o.random_stops, "experiments end after a random number of rounds, at least half");
  command.add_option("--cycle-us", o.cycle_us, "microseconds between rounds; 0: as fast as it goes")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1e6));
  command.add_option("--seed", o.seed, "seed of the experiments")->capture_default_str();
  run_when_chosen(command, chosen, [options](const output &out) { return run_bench_stream(*options, out); });
}
#endif

} // namespace

void add_benchmarks(CLI::App &app, chosen_command &chosen) {
  add_bench_command(app,
                    {"device", "the device path, compared with its floors", kBenchDeviceFooter,
                     "also measure series over payload, slots, functions, blocks, dispatchers", true, false,
                     &run_bench_device},
                    chosen);
  add_bench_command(app,
                    {"graph", "graphs launched by the host path and by the GPU, compared with their floors",
                     kBenchGraphFooter, "also measure series over 1 to 64 workers and over payloads", true, false,
                     &run_bench_graph},
                    chosen);
  add_bench_idle(app, chosen);
#ifdef CUDAQ_TOOL_HAS_QEC
  add_bench_command(app,
                    {"pipeline", "the QEC pipeline without its engine and its matcher", kBenchPipelineFooter, nullptr,
                     false, true, &run_bench_pipeline},
                    chosen);
  add_bench_decoding(app, chosen);
  add_bench_stream(app, chosen);
#endif
}

} // namespace cudaq::realtime::tools
