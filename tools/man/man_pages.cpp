// SPDX-License-Identifier: Apache-2.0
// A program of the build: it writes a man page for this_program() and for each of its subcommands into a folder.
#include "tools/command_line/program.h"
#include "tools/common/report.h"
#include "tools/man/man_page.h"

#include <CLI/CLI.hpp>
#include <filesystem>

namespace tools = cudaq::realtime::tools;

int main(int argc, char **argv) {
  if (argc != 2) {
    tools::print_error("usage: {} FOLDER\n", argv[0]);
    return tools::kExitUsage;
  }
  try {
    CLI::App app;
    tools::chosen_command chosen;
    tools::declare_program(tools::this_program(), app, chosen);
    const tools::command_model program = tools::describe_command_line(app);
    for (const tools::command_model *command : tools::all_commands(program))
      tools::write_file("FOLDER", std::filesystem::path(argv[1]) / (tools::program_name(*command, '-') + ".1"),
                        [&](std::ostream &file) { file << tools::man_page(program, *command); });
    return tools::kExitOk;
  } catch (const std::exception &e) {
    tools::print_refusal(argv[0], e.what());
    return tools::kExitUsage;
  }
}
