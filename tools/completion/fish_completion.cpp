// SPDX-License-Identifier: Apache-2.0
#include "tools/completion/completion.h"
#include "tools/completion/completion_words.h"

#include <fmt/format.h>

namespace cudaq::realtime::tools {
namespace {

/// In single quotes, as fish reads it: only a backslash and a quote are special.
std::string in_fish(const std::string &text) { return "'" + replaced(replaced(text, '\\', "\\\\"), '\'', "\\'") + "'"; }

std::string condition(const command_model &command) {
  return "-n " + in_fish("__cudaq_realtime_is '" + command.name + "'");
}

std::string option_line(const command_model &program, const command_model &command, const option_model &o) {
  std::string text = "complete -c cudaq-realtime " + condition(command);
  if (o.is_argument && !names_a_command(o))
    return text + (o.choices.empty() ? " -F\n" : " -a " + in_fish(joined_words(o.choices)) + "\n");
  if (o.is_argument) {
    std::vector<std::string> names;
    for (const command_model *named : all_commands(program))
      if (!named->name.empty())
        names.push_back(last_word(*named));
    return text + " -a " + in_fish(joined_words(names)) + "\n";
  }
  for (const std::string &name : o.names)
    text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  if (!o.value.empty() && !o.value_may_miss)
    text += o.takes_path() ? " -r -F" : " -x";
  if (!o.choices.empty())
    text += " -a " + in_fish(joined_words(o.choices));
  return text + " -d " + in_fish(o.text) + "\n";
}

} // namespace

std::string fish_completion(const command_model &program) {
  std::string names, lines;
  for (const command_model *command : all_commands(program)) {
    if (!command->name.empty())
      names += " " + in_fish(command->name);
    for (const command_model &below : command->commands)
      lines += fmt::format("complete -c cudaq-realtime {} -a {} -d {}\n", condition(*command), last_word(below),
                           in_fish(below.text));
    for (const option_model &o : command->options)
      lines += option_line(program, *command, o);
  }
  return "# fish completion of cudaq-realtime, written by: cudaq-realtime completion fish\n"
         "function __cudaq_realtime_is --description 'the subcommand on the command line is this one'\n"
         "  set -l name\n"
         "  for word in (commandline -opc)[2..-1]\n"
         "    if contains -- (string join -- ' ' $name $word)" +
         names +
         "\n      set -a name $word\n    end\n  end\n  test \"$name\" = \"$argv\"\nend\n\n"
         "complete -c cudaq-realtime -f\n" +
         lines + "complete -c cudaq-realtime-gpu -w cudaq-realtime\n";
}

} // namespace cudaq::realtime::tools
