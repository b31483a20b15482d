// SPDX-License-Identifier: Apache-2.0
// The command line of cudaq-realtime: each subcommand declares its options in its own folder.
#include "tools/command_line/commands.h"
#include "tools/command_line/refusal.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
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
  cudaq-realtime playback              the host of an FPGA player, which `emulate --control-port` can be
  cudaq-realtime serve --schema        the decoding server: decoders for requests that come over a transport
  cudaq-realtime route --schema        many servers: spreads the requests of one transport over them
  cudaq-realtime top --counters PATH   a running server: rates, latencies, queues, errors
  cudaq-realtime latency               round trips of the library, and of the floor on the same two cores
  cudaq-realtime bench device          the device path, and what the GPU and the bus allow
  cudaq-realtime bench graph           graphs as handlers, launched by the CPU and by the GPU, and bare graph launches
  cudaq-realtime bench pipeline        the QEC pipeline, and its engine and its matcher alone
  cudaq-realtime compare A.json B.json two or more reports: ratios, their noise, and a verdict
  cudaq-realtime help demo             options and examples of a subcommand; also demo --help

Exit status:)";

// For a user who types the program's name and nothing else.
constexpr const char *kFirstSteps =
    R"(cudaq-realtime is a ring buffer and RPC dispatcher between a quantum control system and its decoders.

  cudaq-realtime demo              decodes surface-code shots through the ring, and checks every answer
  cudaq-realtime doctor            tells whether this machine is ready, and what to change
  cudaq-realtime latency --quick   measures round trips against a floor on the same two cores
  cudaq-realtime help              all subcommands; `cudaq-realtime help demo`: options and examples of one

)";

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
  tools::add_playback(app, chosen);
  tools::add_serve(app, chosen);
  tools::add_route(app, chosen);
  tools::add_top(app, chosen);
#endif
  tools::add_latency(app, chosen);
  tools::add_bench(app, chosen);
  tools::add_compare(app, chosen);
  tools::add_doctor(app, chosen);
  tools::add_info(app, chosen);
  tools::add_completion(app, chosen);
  tools::add_man(app, chosen);
  tools::add_help(app, chosen);
}

/// --json is among the words. For a command line that cannot be parsed.
bool names_json(int argc, char **argv) {
  return std::any_of(argv, argv + argc,
                     [](std::string_view word) { return word == "--json" || word.starts_with("--json="); });
}

/// Runs the subcommand. An exception becomes a message and an exit status.
int run_chosen(const tools::chosen_command &chosen, const tools::output &out) {
  try {
    out.open_files();
    if (!chosen.after_dashes.empty() && !chosen.takes_words)
      throw tools::usage_error("the subcommand takes no words after --: " + chosen.after_dashes.front());
    for (const std::string &note : chosen.notes)
      tools::print_refusal(chosen.output.command, note);
    return chosen.run(out);
  } catch (const tools::usage_error &e) {
    return out.refuse(e.what(), tools::kExitUsage);
  } catch (const tools::check_failed &e) {
    return out.refuse(e.what(), tools::kExitCheckFailed);
  } catch (const std::exception &e) {
    return out.refuse(e.what(), tools::kExitRefused);
  }
}

int parse_and_run(int argc, char **argv) {
  CLI::App app("a ring buffer and RPC dispatcher between a quantum control system and its decoders", "cudaq-realtime");
  std::string footer = kProgramFooter;
  for (const auto &[status, text] : tools::kExitMeanings)
    footer += fmt::format("\n  {}  {}", status, text);
  app.footer(footer);
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
  if (argc == 1)
    tools::print_error("{}", kFirstSteps);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success &help_or_version) {
    return app.exit(help_or_version);
  } catch (const CLI::ParseError &e) {
    const tools::refusal why = tools::explain(app, e);
    chosen.output.command = why.command;
    chosen.output.json = names_json(argc, argv);
    chosen.output.json_file.clear(); // which word is the file is not certain
    const int status = tools::output(chosen.output).refuse(why.reason, tools::kExitUsage);
    tools::print_error("{}\n", why.hint);
    return status;
  }
  return run_chosen(chosen, tools::output(chosen.output));
}

/// Output that stdout could not take is lost, so `status` must then be an error.
int with_all_written(int status) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0)
    return status;
  tools::print_refusal("", std::string("stdout cannot be written: ") + std::strerror(errno));
  return status == tools::kExitOk ? int{tools::kExitRefused} : status;
}

} // namespace

int main(int argc, char **argv) {
  try {
    return with_all_written(parse_and_run(argc, argv));
  } catch (const std::exception &e) {
    tools::print_refusal("", e.what());
    return tools::kExitRefused;
  }
}
