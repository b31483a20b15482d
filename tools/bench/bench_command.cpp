// SPDX-License-Identifier: Apache-2.0
// `bench` and its subcommands: device, graph, pipeline.
#include "tools/bench/bench.h"
#include "tools/commands.h"
#include "tools/common/command_options.h"

namespace cudaq::realtime::tools {
namespace {

constexpr const char *kBenchDeviceFooter =
    R"(Floors and cases alternate in every round. Each floor is the smallest kernel that could do the work, written
without the library. Every payload is random and every reply is checked. Needs an NVIDIA GPU and a build with device
kernels.
  P1  closed loop, 8 B echo                 P4  throughput in order           P14  idle: an empty poll
  P2  4096 B, one thread's handler          P5  throughput in any order
  P3  4096 B, cooperative kernel            P6  ring in device memory, a kernel acts as the network interface

Examples:
  cudaq-realtime bench device                              all cases, 100000 exchanges of each in 10 rounds
  cudaq-realtime bench device --cases P1,P6 --json bench.json
  cudaq-realtime bench device --curves --json bench.json   also series: how cost grows with payload, slots, ...
  cudaq-realtime bench device --quick                      a short check that everything works, no measurement)";

constexpr const char *kBenchGraphFooter =
    R"(Graphs as handlers: as workers of the host dispatcher (P7, P12), and launched by a scheduler on the GPU (P8).
Floors and cases alternate in every round. A floor of P7 and P12 is the same graph, launched by the measuring thread; a
floor of P8 is a minimal scheduler. Every payload is random and every reply is checked. Needs an NVIDIA GPU and a build
with device kernels.
  P7a  library publishes     P7b  graph publishes     P7c  4096 B copied by a pre-launch hook
  P8a  scheduler publishes   P8b  graph publishes
  P12c 64 workers            P12d 8 workers of 70 us

Examples:
  cudaq-realtime bench graph                               all cases, 100000 exchanges of each in 10 rounds
  cudaq-realtime bench graph --curves --json graph.json    also series: 1 to 64 workers, payloads read and copied
  cudaq-realtime bench graph --quick                       a short check that everything works, no measurement)";

#ifdef CUDAQ_TOOL_HAS_QEC
constexpr const char *kBenchPipelineFooter =
    R"(The time of a request in the QEC pipeline without inference and matching. P11 and P12 need an NVIDIA GPU.
  P11 latency     P12 rate     P13 decode stage without the matcher

Examples:
  cudaq-realtime bench pipeline --json pipeline.json --data DIR    d7 to d31; shots in DIR (make_data.py --pipeline)
  cudaq-realtime bench pipeline --cases P13                        without a GPU)";
#endif

/// One subcommand of `bench`.
struct bench_command {
  const char *name, *what, *footer;
  const char *curves; ///< help of --curves; NULL: the subcommand has no --curves
  bool has_data;      ///< the subcommand has --data
  int (*run)(const bench_options &, const output &);
};

void add_bench_command(CLI::App &bench, const bench_command &c, chosen_command &chosen) {
  const auto options = std::make_shared<bench_options>();
  bench_options &o = *options;
  CLI::App &command = *bench.add_subcommand(c.name, c.what);
  command.footer(c.footer);
  command.add_option("--cases", o.cases, "cases to measure, by id (P2a) or group (P2); default: all")
      ->delimiter(',')
      ->type_name("P1,P2,...");
  add_rounds_options(command, o, std::uint64_t{1} << 32);
  if (c.curves != nullptr)
    command.add_flag("--curves", o.curves, c.curves);
  add_quick_flag(command, o);
  command.add_option("--gpu", o.gpu, "number of the GPU")->capture_default_str()->check(CLI::Range(0, 255));
  add_client_cores_option(command, o,
                          "cores of the client threads (default: with four cores or more, all but the first)")
      ->type_name("A,B,...");
  add_random_payload_options(command, o);
  run_when_chosen(command, chosen, [options, run = c.run](const output &out) { return run(*options, out); });
  // After --json, to keep its place in the help.
  if (c.has_data)
    command.add_option("--data", o.data_folder, "folder of the recorded shots")->type_name("DIR");
}

} // namespace

void add_bench(CLI::App &program, chosen_command &chosen) {
  CLI::App &bench =
      *program.add_subcommand("bench", "benchmarks with a GPU, compared with floors: bench device --help");
  bench.require_subcommand(1);
  add_bench_command(bench,
                    {"device", "the device path, compared with its floors", kBenchDeviceFooter,
                     "also measure series over payload, slots, functions, blocks, dispatchers", false,
                     &run_bench_device},
                    chosen);
  add_bench_command(bench,
                    {"graph", "graphs launched by the host path and by the GPU, compared with their floors",
                     kBenchGraphFooter, "also measure series over 1 to 64 workers and over payloads", false,
                     &run_bench_graph},
                    chosen);
#ifdef CUDAQ_TOOL_HAS_QEC
  add_bench_command(bench,
                    {"pipeline", "the QEC pipeline without its engine and its matcher", kBenchPipelineFooter, nullptr,
                     true, &run_bench_pipeline},
                    chosen);
#endif
}

} // namespace cudaq::realtime::tools
