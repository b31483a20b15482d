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

void add_help(CLI::App &program, chosen_command &chosen, const char *example) {
  const auto words = std::make_shared<std::vector<std::string>>();
  CLI::App &help =
      *program.add_subcommand("help", fmt::format("options and examples of a subcommand: help {}", example));
  help.footer(fmt::format("Examples:\n  {0} help\n  {0} help {1}\n  {0} help {1} --json      every option as JSON",
                          program.get_name(), example));
  help.add_option("command", *words, "words of the subcommand; without them: all subcommands")->type_name("COMMAND");
  run_when_chosen(help, chosen, [words, &program](const output &out) { return print_help(program, *words, out); });
}

} // namespace cudaq::realtime::tools
