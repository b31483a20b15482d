// SPDX-License-Identifier: Apache-2.0
#include "tools/command_line/suggestions.h"
#include "tools/commands.h"
#include "tools/common/command_options.h"
#include "tools/help/help.h"

#include <nlohmann/json.hpp>

namespace cudaq::realtime::tools {
namespace {

/// The subcommand that `words` name. Throws usage_error with similar names.
const CLI::App &subcommand_named(const CLI::App &program, const std::vector<std::string> &words) {
  const CLI::App *app = &program;
  for (const std::string &word : words) {
    const auto below = app->get_subcommands([](const CLI::App *) { return true; });
    const auto next = std::ranges::find(below, word, &CLI::App::get_name);
    if (next == below.end()) {
      std::vector<std::string> names;
      for (const CLI::App *s : below)
        names.push_back(s->get_name());
      throw usage_error(fmt::format("there is no subcommand \"{}\".{}", CLI::detail::join(words, " "),
                                    did_you_mean(similar_words(word, names))));
    }
    app = *next;
  }
  return *app;
}

int print_help(const CLI::App &program, const std::vector<std::string> &words, const output &out) {
  const CLI::App &command = subcommand_named(program, words);
  const std::string name = program.get_name() + (words.empty() ? "" : " ") + CLI::detail::join(words, " ");
  out.raw(command.get_formatter()->make_help(&command, name, CLI::AppFormatMode::Normal));
  const command_model model = describe_command_line(program);
  return out.finish({{"help", command_json(*find_command(model, words))}});
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
