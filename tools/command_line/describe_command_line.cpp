// SPDX-License-Identifier: Apache-2.0
// The only place where the command line is read out of the parser.
#include "tools/command_line/command_model.h"

#include <CLI/CLI.hpp>

namespace cudaq::realtime::tools {
namespace {

/// The parser's name of a type is "TYPE", followed by ":" and the rule of each check: "TEXT:{cpu,gpu}".
void read_type(const CLI::Option &option, option_model &o) {
  const std::string type = option.get_type_name();
  const std::size_t colon = type.find(':');
  o.value = type.substr(0, colon);
  if (colon == std::string::npos)
    return;
  o.limits = type.substr(colon + 1);
  if (const std::size_t range = o.limits.find(" in ["); range != std::string::npos) { // "INT in [0 - 255]"
    o.limits = o.limits.substr(range + 5, o.limits.size() - range - 6);
    o.limits.replace(o.limits.find(" - "), 3, " to ");
  }
  if (o.limits.front() != '{' || o.limits.back() != '}')
    return;
  o.choices = CLI::detail::split(o.limits.substr(1, o.limits.size() - 2), ',');
  o.limits.clear();
}

option_model describe(const CLI::Option &option) {
  option_model o;
  o.is_argument = option.get_positional();
  if (o.is_argument)
    o.names.push_back(option.get_name(true));
  for (const std::string &name : option.get_lnames())
    o.names.push_back("--" + name);
  for (const std::string &name : option.get_snames())
    o.names.push_back("-" + name);
  o.text = option.get_description();
  o.standard = option.get_default_str();
  if (option.get_items_expected_max() == 0)
    return o; // a flag
  read_type(option, o);
  o.value_may_miss = option.get_items_expected_min() == 0;
  o.is_list = option.get_items_expected_max() > 1 && option.get_delimiter() == '\0';
  return o;
}

command_model describe(const CLI::App &app, const std::string &program, const std::string &name) {
  command_model command;
  command.program = program;
  command.name = name;
  command.text = app.get_description();
  command.more = app.get_footer();
  for (const CLI::Option *option : app.get_options())
    if (!option->get_group().empty())
      command.options.push_back(describe(*option));
  for (const CLI::App *below : app.get_subcommands([](const CLI::App *s) { return !s->get_group().empty(); }))
    command.commands.push_back(
        describe(*below, program, name.empty() ? below->get_name() : name + " " + below->get_name()));
  return command;
}

} // namespace

command_model describe_command_line(const CLI::App &program) { return describe(program, program.get_name(), ""); }

} // namespace cudaq::realtime::tools
