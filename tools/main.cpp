// SPDX-License-Identifier: Apache-2.0
// The command line of cudaq-realtime: options and help only, each subcommand lives in its own file.
#include "tools/bench/bench.h"
#include "tools/services/api_objects.h"
#ifdef CUDAQ_TOOL_HAS_QEC
#include "tools/demo/demo.h"
#endif
#include "tools/info/info.h"
#include "tools/latency/latency.h"
#ifdef CUDAQ_TOOL_HAS_QEC
#include "tools/pipeline/pipeline_gpu.h"
#endif
#include "tools/common/report.h"

#include "cudaq/realtime/version.h"

#include <CLI/CLI.hpp>
#include <string>

namespace tools = cudaq::realtime::tools;

namespace {

constexpr const char *kFooter = R"(Start here:
  cudaq-realtime info                  what this machine can do, and what is missing
  cudaq-realtime demo                  the main job: decode surface-code shots through the ring, every answer checked
  cudaq-realtime pipeline              predecoding and matching as a pipeline of workers, every answer checked
  cudaq-realtime latency               round trips beside the floor of the same two cores
  cudaq-realtime bench device          the device path beside what the GPU and the bus allow
  cudaq-realtime bench graph           graphs that handle requests, launched by the CPU and by the GPU, beside bare launches
  cudaq-realtime bench pipeline        the QEC pipeline around its engine and its matcher
  cudaq-realtime demo --help           options and examples of a subcommand

Exit status: 0 good; 1 an answer was wrong, lost or given twice, or nothing moved; 2 an option or a file cannot be used;
3 the library or the system refused something.)";

constexpr const char *kDemoFooter =
    R"(Without --cadence-us there are two passes: one as fast as it goes (throughput; latency is then the queue), and one at
about 60 % of that load (latency).

Examples:
  cudaq-realtime demo                                       d=13, 20000 shots in each of the two passes
  cudaq-realtime demo --distance 7 --cadence-us 20 --duration 10
                                                            one d=7 shot each 20 us, for ten seconds
  cudaq-realtime demo --workers 3 --core-dispatcher 2 --core-workers 3 --core-producer 0 --core-consumer 1
                                                            three decoders side by side, all threads pinned
  cudaq-realtime demo --distance 3 --decoder lookup --in-place --wait block
  cudaq-realtime demo --device gpu                          d=3 shots, decoded by a handler in a dispatch kernel
  cudaq-realtime demo --json result.json --hgrm result      report for programs, histograms for HdrHistogram's plotter)";

constexpr const char *kPipelineFooter =
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

constexpr const char *kLatencyFooter =
    R"(Floors and cases alternate, round by round, with the client pinned to one core and the server to another:
  floor (a)  two flags and one cache line of payload each way, nothing else
  floor (b)  the same ring, slots and frames, served by a loop that knows every request beforehand
Every payload is random and every reply is checked.

Examples:
  cudaq-realtime latency                     200000 exchanges of each case, in 20 rounds
  cudaq-realtime latency --cores 2,3 --json latency.json --hgrm latency
  cudaq-realtime latency --quick             shows that it works; too short for figures)";

constexpr const char *kBenchFooter =
    R"(Floors and cases alternate, round by round; each floor is the smallest kernel that could do the work, written without the
library. Every payload is random and every reply is checked. It takes an NVIDIA GPU and a build with device kernels.
  P1  closed loop, 8 B echo                 P4  throughput in order           P14  idle: an empty poll
  P2  4096 B, one thread's handler          P5  throughput in any order
  P3  4096 B, cooperative kernel            P6  ring in device memory, a kernel plays the network interface

Examples:
  cudaq-realtime bench device                              all cases, 100000 exchanges of each in 10 rounds
  cudaq-realtime bench device --cases P1,P6 --json bench.json
  cudaq-realtime bench device --curves --json bench.json   besides, how cost grows
  cudaq-realtime bench device --quick                      shows that it works; too short for figures)";

constexpr const char *kGraphFooter =
    R"(Graph workers of the host dispatcher. Floors and cases alternate, round by round; a floor is the same graph, launched by
the measuring thread itself. Every payload is random and every reply is checked. It takes an NVIDIA GPU.
  P7a  library publishes     P7b  graph publishes     P7c  4096 B copied by a pre-launch hook
  P12a 64 workers            P12b 8 workers of 70 us

Examples:
  cudaq-realtime bench graph                               all cases, 100000 exchanges of each in 10 rounds
  cudaq-realtime bench graph --curves --json graph.json    besides: 1 to 64 workers, payloads read and copied
  cudaq-realtime bench graph --quick                       shows that it works; too short for figures)";

constexpr char kPipelineBenchFooter[] =
    R"(What a request costs in the QEC pipeline besides inference and matching. P11 and P12 take an NVIDIA GPU.
  P11 latency     P12 rate     P13 decode stage around the matcher's own call

Examples:
  cudaq-realtime bench pipeline --json pipeline.json --data DIR    d7 to d31; DIR has the shots (make_data.py --pipeline)
  cudaq-realtime bench pipeline --cases P13                        without a GPU)";

/// CLI::Range, and no NaN, which compares with nothing and so passes every range.
CLI::Validator number_between(double low, double high) {
  return CLI::Validator(
      [low, high](std::string &text) -> std::string {
        double value = 0;
        if (CLI::detail::lexical_cast(text, value) && value >= low && value <= high)
          return "";
        return fmt::format("{} is not a number from {} to {}", text, low, high);
      },
      fmt::format("FLOAT in [{} - {}]", low, high));
}

void add_output_options(CLI::App &app, tools::output_options &o) {
  app.add_option("--json", o.json_file,
                 "report as JSON: into FILE, or without FILE (or with -) to stdout instead of the text")
      ->expected(0, 1)
      ->type_name("[FILE]");
}

void add_hgrm_option(CLI::App &app, tools::output_options &o) {
  app.add_option("--hgrm", o.hgrm_prefix, "write each histogram to PREFIX.<name>.hgrm (values in ns)")
      ->type_name("PREFIX");
}

#ifdef CUDAQ_TOOL_HAS_QEC
CLI::App &add_demo(CLI::App &app, tools::demo_options &o, tools::output_options &out) {
  CLI::App &demo = *app.add_subcommand("demo", "decode recorded surface-code shots through the ring");
  demo.footer(kDemoFooter);
  demo.add_option("--distance", o.distance, "code distance of the recorded shots (default 13; 3 without PyMatching)");
  demo.add_option("--noise", o.noise, "physical error rate of the recorded shots")->capture_default_str();
  const auto shots = demo.add_option("--shots", o.shots, "shots to send in each pass; the set is cycled")
                         ->capture_default_str()
                         ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 48));
  demo.add_option("--duration", o.duration_s, "seconds to send in each pass, instead of --shots")
      ->excludes(shots)
      ->check(number_between(0.001, 1e6));
  demo.add_option("--cadence-us", o.cadence_us, "one shot each so many microseconds; 0: as fast as it goes")
      ->check(number_between(0, 1e7));
  demo.add_option("--slots", o.slots, "slots of the ring")->capture_default_str()->check(CLI::Range(1u, 1u << 20));
  demo.add_option("--workers", o.workers, "handler threads, any order; 0: the dispatcher decodes itself, in order")
      ->capture_default_str()
      ->check(CLI::Range(0u, 64u));
  demo.add_option("--wait", o.wait, "how the dispatcher waits; auto: spin if there are cores for all threads")
      ->capture_default_str()
      ->check(CLI::IsMember({"auto", "spin", "yield", "block"}));
  demo.add_flag("--in-place", o.in_place, "answers overwrite their requests");
  demo.add_option("--decoder", o.decoder, "decoder")
      ->capture_default_str()
      ->check(CLI::IsMember({"auto", "pymatching", "lookup"}));
  demo.add_option("--client-threads", o.client_threads, "1: one thread sends and collects; 2: one each; 0: decide")
      ->capture_default_str()
      ->check(CLI::Range(0u, 2u));
  demo.add_option("--device", o.device, "who decodes: gpu is a dispatch kernel with the lookup decoder")
      ->capture_default_str()
      ->check(CLI::IsMember({"cpu", "gpu"}));
  demo.add_option("--gpu", o.gpu, "number of the GPU, with --device gpu")
      ->capture_default_str()
      ->check(CLI::Range(0, 255));
  const CLI::Range core(0, 4095);
  demo.add_option("--core-producer", o.core_producer, "core of the sending thread")->check(core);
  demo.add_option("--core-consumer", o.core_consumer, "core of the collecting thread")->check(core);
  demo.add_option("--core-dispatcher", o.core_dispatcher, "core of the dispatcher")->check(core);
  demo.add_option("--core-workers", o.core_workers, "core of the first handler thread; the others follow")->check(core);
  demo.add_option("--data", o.data_folder, "folder of the recorded shots (default: $CUDAQ_REALTIME_DATA, or found)");
  demo.add_option("--seed", o.seed, "order of the shots; 0: as recorded")->capture_default_str();
  demo.add_option("--timeout", o.timeout_s, "seconds without progress before the run is given up")
      ->capture_default_str()
      ->check(number_between(0.01, 1e5));
  add_hgrm_option(demo, out);
  add_output_options(demo, out);
  return demo;
}
#endif

#ifdef CUDAQ_TOOL_HAS_QEC
CLI::App &add_pipeline(CLI::App &app, tools::pipeline_options &o, tools::output_options &out) {
  CLI::App &pipeline =
      *app.add_subcommand("pipeline", "predecoding and matching of recorded shots, every answer checked");
  pipeline.footer(kPipelineFooter);
  pipeline.add_option("--config", o.config, "code and slot size")
      ->capture_default_str()
      ->check(CLI::IsMember({"d7", "d13", "d21", "d31", "d13_T104"}));
  pipeline
      .add_option("--engine", o.engine,
                  "predecoder: passthrough is none, local the built-in rule, which costs accuracy")
      ->capture_default_str()
      ->check(CLI::IsMember({"local", "passthrough"}));
  pipeline
      .add_option("--rule", o.rule, "what --engine local matches with the boundary; plain costs still more accuracy")
      ->capture_default_str()
      ->check(CLI::IsMember({"guarded", "plain"}));
  pipeline.add_option("--device", o.device, "where the engine runs")
      ->capture_default_str()
      ->check(CLI::IsMember({"cpu", "gpu"}));
  pipeline.add_option("--gpu", o.gpu, "number of the GPU")->capture_default_str()->check(CLI::NonNegativeNumber);
  pipeline
      .add_option("--staging", o.staging, "how requests get to the GPU's engine: read in the slot, or copied before")
      ->capture_default_str()
      ->check(CLI::IsMember({"auto", "mapped", "dma"}));
  pipeline.add_option("--html", o.html_file, "write a report with histogram and stages to FILE")->type_name("FILE");
  pipeline.add_option("--decoder", o.decoder, "matcher behind it")
      ->capture_default_str()
      ->check(CLI::IsMember({"auto", "pymatching", "lookup"}));
  pipeline.add_option("--noise", o.noise, "physical error rate of the recorded shots")->capture_default_str();
  pipeline.add_option("--shots", o.shots, "shots to send; the set is cycled")
      ->capture_default_str()
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 48));
  pipeline.add_option("--rate", o.rate, "shots per second; 0: as fast as it goes")
      ->capture_default_str()
      ->check(number_between(0, 1e9));
  pipeline.add_option("--workers", o.workers, "worker threads; 0: one for each core that is left, up to 8")
      ->capture_default_str()
      ->check(CLI::Range(0, 64));
  pipeline.add_option("--slots", o.slots, "slots of the ring")->capture_default_str()->check(CLI::Range(1, 1 << 16));
  pipeline.add_option("--wait", o.wait, "how threads wait; auto: spin if there are cores for all of them")
      ->capture_default_str()
      ->check(CLI::IsMember({"auto", "spin", "yield", "block"}));
  const CLI::Range core(0, 4095);
  pipeline.add_option("--core-producer", o.core_producer, "core of the submitting thread")->check(core);
  pipeline.add_option("--core-consumer", o.core_consumer, "core of the consumer")->check(core);
  pipeline.add_option("--core-dispatcher", o.core_dispatcher, "core of the dispatcher")->check(core);
  pipeline.add_option("--core-workers", o.core_workers, "core of the first worker; the others follow")->check(core);
  pipeline.add_option("--data", o.data_folder,
                      "folder of the recorded shots (default: $CUDAQ_REALTIME_DATA, or found)");
  pipeline.add_option("--seed", o.seed, "order of the shots; 0: as recorded")->capture_default_str();
  pipeline.add_option("--timeout", o.timeout_s, "seconds without progress before the run is given up")
      ->capture_default_str()
      ->check(number_between(0.01, 1e5));
  add_hgrm_option(pipeline, out);
  add_output_options(pipeline, out);
  return pipeline;
}
#endif

CLI::App &add_latency(CLI::App &app, tools::latency_options &o, tools::output_options &out) {
  CLI::App &latency = *app.add_subcommand("latency", "round trips of HOST_CALL beside the floor");
  latency.footer(kLatencyFooter);
  latency.add_option("--exchanges", o.exchanges, "exchanges of each case, after warm-up")
      ->capture_default_str()
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 40));
  latency.add_option("--rounds", o.rounds, "rounds in which floors and cases alternate")
      ->capture_default_str()
      ->check(CLI::Range(1u, 10000u));
  latency.add_flag("--quick", o.quick, "4000 exchanges in 2 rounds");
  latency.add_option("--slots", o.slots, "slots of the ring, and requests in flight when pipelined")
      ->capture_default_str()
      ->check(CLI::Range(1u, 1u << 20));
  latency.add_flag("--in-place", o.in_place, "answers overwrite their requests");
  latency.add_option("--cores", o.cores, "client core, server core (default: two of different physical cores)")
      ->delimiter(',')
      ->expected(2)
      ->check(CLI::Range(0, 4095))
      ->type_name("A,B");
  latency.add_option("--seed", o.seed, "of the payloads")->capture_default_str();
  latency.add_option("--timeout", o.timeout_s, "seconds without an answer before the run is given up")
      ->capture_default_str()
      ->check(number_between(0.01, 1e5));
  add_hgrm_option(latency, out);
  add_output_options(latency, out);
  return latency;
}

CLI::App &add_bench(CLI::App &bench, const char *name, const char *what, const char *footer, const char *curves,
                    tools::bench_options &o, tools::output_options &out) {
  CLI::App &device = *bench.add_subcommand(name, what);
  device.footer(footer);
  device.add_option("--cases", o.cases, "cases to measure, by id (P2a) or group (P2); default: all")
      ->delimiter(',')
      ->type_name("P1,P2,...");
  device.add_option("--exchanges", o.exchanges, "exchanges of each case, after warm-up")
      ->capture_default_str()
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 32));
  device.add_option("--rounds", o.rounds, "rounds in which floors and cases alternate")
      ->capture_default_str()
      ->check(CLI::Range(1u, 10000u));
  if (curves != nullptr)
    device.add_flag("--curves", o.curves, curves);
  device.add_flag("--quick", o.quick, "4000 exchanges in 2 rounds");
  device.add_option("--gpu", o.gpu, "number of the GPU")->capture_default_str()->check(CLI::Range(0, 255));
  device.add_option("--cores", o.cores, "cores of the client threads (default: all but the first, if there are four)")
      ->delimiter(',')
      ->check(CLI::Range(0, 4095))
      ->type_name("A,B,...");
  device.add_option("--seed", o.seed, "of the payloads")->capture_default_str();
  device.add_option("--timeout", o.timeout_s, "seconds without an answer before the run is given up")
      ->capture_default_str()
      ->check(number_between(0.01, 1e5));
  add_output_options(device, out);
  return device;
}

std::string joined(int argc, char **argv) {
  std::string line;
  for (int i = 0; i < argc; ++i)
    line += (i == 0 ? "" : " ") + std::string(argv[i]);
  return line;
}

int run(int argc, char **argv) {
  CLI::App app("cudaq-realtime: a ring buffer and RPC dispatcher between a quantum control system and its decoders");
  app.footer(kFooter);
  app.set_version_flag("--version", fmt::format("cudaq-realtime {}.{}.{}", CUDAQ_REALTIME_VERSION_MAJOR,
                                                CUDAQ_REALTIME_VERSION_MINOR, CUDAQ_REALTIME_VERSION_PATCH));
  app.require_subcommand(1);
  tools::output_options out;
  out.command_line = joined(argc, argv);
#ifdef CUDAQ_TOOL_HAS_QEC
  tools::demo_options demo_options;
  CLI::App &demo = add_demo(app, demo_options, out);
  tools::pipeline_options pipeline_options;
  CLI::App &pipeline = add_pipeline(app, pipeline_options, out);
#endif
  tools::latency_options latency_options;
  CLI::App &latency = add_latency(app, latency_options, out);
  tools::bench_options bench_options;
  CLI::App &bench = *app.add_subcommand("bench", "what needs a GPU, beside its floors: bench device --help");
  bench.require_subcommand(1);
  add_bench(bench, "device", "the device path beside its floors", kBenchFooter,
            "besides: payload, slots, functions, blocks, dispatchers, each as a series", bench_options, out);
  CLI::App &bench_graph =
      add_bench(bench, "graph", "graphs launched by the host path and by the GPU beside their floors", kGraphFooter,
                "besides: 1 to 64 workers, and payloads, each as a series", bench_options, out);
#ifdef CUDAQ_TOOL_HAS_QEC
  CLI::App &bench_pipeline = add_bench(bench, "pipeline", "the QEC pipeline around its engine and its matcher",
                                       kPipelineBenchFooter, nullptr, bench_options, out);
  bench_pipeline.add_option("--data", bench_options.data_folder, "folder of the recorded shots")->type_name("DIR");
#endif
  CLI::App &info = *app.add_subcommand("info", "what this build and this machine can do, and how to get the rest");
  info.footer("Examples:\n  cudaq-realtime info\n  cudaq-realtime info --json | python3 -m json.tool");
  add_output_options(info, out);
  if (argc > 1 && argv[1][0] != '-' &&
      app.get_subcommands([&](const CLI::App *s) { return s->check_name(argv[1]); }).empty()) {
    // CLI11 would only say that a subcommand is required.
    fmt::print(stderr, "there is no subcommand \"{}\"\nRun with --help for more information.\n", argv[1]);
    return tools::kExitUsage;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &e) {
    return app.exit(e) == 0 ? tools::kExitOk : tools::kExitUsage;
  }
  const CLI::App *const chosen = bench.parsed() ? bench.get_subcommands().front() : app.get_subcommands().front();
  out.json = chosen->get_option("--json")->count() > 0;
#ifdef CUDAQ_TOOL_HAS_QEC
  if (demo.parsed())
    return demo_options.device == "gpu" ? tools::run_demo_on_gpu(demo_options, tools::output(out))
                                        : tools::run_demo(demo_options, tools::output(out));
  if (pipeline.parsed())
    return tools::run_pipeline(pipeline_options, tools::output(out), &tools::make_gpu_stage);
#endif
  if (latency.parsed())
    return tools::run_latency(latency_options, tools::output(out));
#ifdef CUDAQ_TOOL_HAS_QEC
  if (bench_pipeline.parsed())
    return tools::run_bench_pipeline(bench_options, tools::output(out));
#endif
  if (bench_graph.parsed())
    return tools::run_bench_graph(bench_options, tools::output(out));
  if (bench.parsed())
    return tools::run_bench_device(bench_options, tools::output(out));
  (void)info;
  return tools::run_info(tools::output(out));
}

} // namespace

int main(int argc, char **argv) {
  try {
    return run(argc, argv);
  } catch (const tools::usage_error &e) {
    fmt::print(stderr, "cudaq-realtime: {}\n", e.what());
    return tools::kExitUsage;
  } catch (const std::exception &e) {
    fmt::print(stderr, "cudaq-realtime: {}\n", e.what());
    return tools::kExitRefused;
  }
}
