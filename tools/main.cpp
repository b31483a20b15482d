// SPDX-License-Identifier: Apache-2.0
// The command line of cudaq-realtime: each subcommand declares its options in its own folder.
#include "tools/commands.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <string_view>

namespace tools = cudaq::realtime::tools;

namespace {

constexpr const char *kProgramFooter = R"(Start here:
  cudaq-realtime info                  what this machine can do, and what is missing
  cudaq-realtime doctor                what on this machine makes it slow or does not work, and the remedies
  cudaq-realtime demo                  the main use: decode surface-code shots through the ring, check every answer
  cudaq-realtime decode                own shots: detection events in, predicted observables out
  cudaq-realtime pipeline              predecoding and matching as a pipeline of workers, check every answer
  cudaq-realtime emulate               a control system in software: plays syndromes to a server in another process
  cudaq-realtime serve --schema        the decoding server: decoders for requests that come over a transport
  cudaq-realtime latency               round trips of the library, and of the floor on the same two cores
  cudaq-realtime bench device          the device path, and what the GPU and the bus allow
  cudaq-realtime bench graph           graphs as handlers, launched by the CPU and by the GPU, and bare graph launches
  cudaq-realtime bench pipeline        the QEC pipeline, and its engine and its matcher alone
  cudaq-realtime demo --help           options and examples of a subcommand

Exit status: 0 good; 1 an answer was wrong, lost or given twice, or there was no progress; 2 an option or a file cannot
be used; 3 the library or the system refused something.)";

std::string joined(int argc, char **argv) {
  std::string line;
  for (int i = 0; i < argc; ++i)
    line += (i == 0 ? "" : " ") + std::string(argv[i]);
  return line;
}

void add_subcommands(CLI::App &app, tools::chosen_command &chosen) {
#ifdef CUDAQ_TOOL_HAS_QEC
  tools::add_demo(app, chosen);
  tools::add_decode(app, chosen);
  tools::add_pipeline(app, chosen);
  tools::add_emulate(app, chosen);
  tools::add_serve(app, chosen);
#endif
  tools::add_latency(app, chosen);
  tools::add_bench(app, chosen);
  tools::add_doctor(app, chosen);
  tools::add_info(app, chosen);
}

int run(int argc, char **argv) {
  CLI::App app("cudaq-realtime: a ring buffer and RPC dispatcher between a quantum control system and its decoders");
  app.footer(kProgramFooter);
  app.set_version_flag("--version", "cudaq-realtime " + tools::program_version());
  app.require_subcommand(1);
  tools::chosen_command chosen;
  chosen.output.command_line = joined(argc, argv);
  // Before the parser sees them: it takes a -- after an option with an optional value as that option's end.
  const auto dashes = std::find(argv, argv + argc, std::string_view("--"));
  if (dashes != argv + argc)
    chosen.after_dashes.assign(dashes + 1, argv + argc);
  argc = static_cast<int>(dashes - argv);
  add_subcommands(app, chosen);
  if (argc > 1 && argv[1][0] != '-' &&
      app.get_subcommands([&](const CLI::App *s) { return s->check_name(argv[1]); }).empty()) {
    // CLI11's own message is only that a subcommand is required.
    fmt::print(stderr, "there is no subcommand \"{}\"\nRun with --help for more information.\n", argv[1]);
    return tools::kExitUsage;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &e) {
    return app.exit(e) == 0 ? tools::kExitOk : tools::kExitUsage;
  }
  if (!chosen.after_dashes.empty() && !chosen.takes_words)
    throw tools::usage_error("the subcommand takes no words after --: " + chosen.after_dashes.front());
  return chosen.run(tools::output(chosen.output));
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
