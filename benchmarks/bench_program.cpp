// SPDX-License-Identifier: Apache-2.0
// The subcommands of the program cudaq-realtime-bench.
#include "benchmarks/bench_commands.h"
#include "tools/command_line/commands.h"
#include "tools/command_line/program.h"

namespace cudaq::realtime::tools {
namespace {

constexpr const char *kBenchFooter = R"(Start here:
  cudaq-realtime-bench device          the device path, and what the GPU and the bus allow
  cudaq-realtime-bench graph           graphs as handlers, launched by the CPU and by the GPU, and bare graph launches
  cudaq-realtime-bench pipeline        the QEC pipeline, and its engine and its matcher alone
  cudaq-realtime-bench decoding        logical errors and time of decoders on shots of a model
  cudaq-realtime-bench stream          a stream decoder at the pace of hardware: its lag, its tail
  cudaq-realtime-bench idle            what the number of slots costs a dispatcher that has nothing to do
  cudaq-realtime-bench compare A.json B.json
                                       two or more reports, also those of cudaq-realtime: ratios, noise, a verdict

Exit status:)";

void add_subcommands(CLI::App &app, chosen_command &chosen) {
  add_benchmarks(app, chosen);
  add_compare(app, chosen);
  add_help(app, chosen, "device");
}

} // namespace

const program_description &this_program() {
  static constexpr program_description kProgram{
      "cudaq-realtime-bench", "measures CUDA-Q Realtime, and compares reports", kBenchFooter, "", &add_subcommands};
  return kProgram;
}

} // namespace cudaq::realtime::tools
