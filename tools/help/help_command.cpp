// SPDX-License-Identifier: Apache-2.0
#include "tools/command_line/command_options.h"
#include "tools/command_line/commands.h"
#include "tools/help/help.h"

#include <nlohmann/json.hpp>

namespace cudaq::realtime::tools {
namespace {

int print_help(const CLI::App &program, const std::vector<std::string> &words, const output &out) {
  const command_model model = describe_command_line(program);
  const command_model &command = command_named(model, words);
  const CLI::App *app = &program;
  for (const std::string &word : words)
    app = app->get_subcommand(word);
  out.raw(app->get_formatter()->make_help(app, program_name(command, ' '), CLI::AppFormatMode::Normal));
  return out.finish({{"help", command_json(command)}});
}

} // namespace

void add_help(CLI::App &program, chosen_command &chosen) {
  const auto words = std::make_shared<std::vector<std::string>>();
  CLI::App &help = *program.add_subcommand("help", "options and examples of a subcommand: help bench device");
  help.footer("Examples:\n  cudaq-realtime help\n  cudaq-realtime help bench device\n"
              "  cudaq-realtime help demo --json      every option as JSON");
  help.add_option("command", *words, "words of the subcommand; without them: all subcommands")->type_name("COMMAND");
  run_when_chosen(help, chosen, [words, &program](const output &out) { return print_help(program, *words, out); });
}

} // namespace cudaq::realtime::tools
