// SPDX-License-Identifier: Apache-2.0
#include "tools/completion/completion.h"
#include "tools/completion/completion_words.h"

#include <fmt/format.h>

namespace cudaq::realtime::tools {
namespace {

// Before the cases: finds the subcommand and the option whose value is typed. Bash makes three words of --name=value.
constexpr const char *kBashBegin = R"(# bash completion of cudaq-realtime, written by: cudaq-realtime completion bash
_cudaq_realtime() {
  local current=${COMP_WORDS[COMP_CWORD]} before='' command='' next words='' values='' files='' i
  if ((COMP_CWORD > 0)); then before=${COMP_WORDS[COMP_CWORD - 1]}; fi
  if [[ $current == '=' ]]; then
    current=''
  elif [[ $before == '=' ]] && ((COMP_CWORD > 1)); then
    before=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  for ((i = 1; i < COMP_CWORD; ++i)); do
    next="${command:+$command }${COMP_WORDS[i]}"
    case $next in
)";

constexpr const char *kBashEnd = R"(  esac
  if [[ $values ]]; then
    words=$values
  elif [[ $files && $current != -* ]]; then
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
    compopt -o filenames 2>/dev/null
    return
  fi
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}
complete -F _cudaq_realtime cudaq-realtime cudaq-realtime-gpu
)";

/// The case of one option: what follows it. "" for a flag.
std::string option_case(const option_model &o) {
  if (o.value.empty() || o.is_argument)
    return "";
  const std::string names = fmt::format("{}", fmt::join(o.names, " | "));
  if (!o.choices.empty())
    return fmt::format("        {}) values={} ;;\n", names, in_quotes(joined_words(o.choices)));
  if (o.takes_path())
    return fmt::format("        {}) files=yes ;;\n", names);
  return fmt::format("        {}) return ;;\n", names); // a number or a name, which only the user knows
}

std::string command_case(const command_model &program, const command_model &command) {
  std::vector<std::string> words;
  std::string options, argument;
  for (const command_model &below : command.commands)
    words.push_back(last_word(below));
  for (const option_model &o : command.options) {
    options += option_case(o);
    if (o.takes_path() && o.is_argument)
      argument = "      files=yes\n";
    if (names_a_command(o))
      for (const command_model *named : all_commands(program))
        words.push_back(last_word(*named));
    if (o.is_argument)
      words.insert(words.end(), o.choices.begin(), o.choices.end());
    else
      words.insert(words.end(), o.names.begin(), o.names.end());
  }
  return fmt::format("    {})\n      words={}\n{}", in_quotes(command.name), in_quotes(joined_words(words)), argument) +
         (options.empty() ? "" : "      case $before in\n" + options + "      esac\n") + "      ;;\n";
}

} // namespace

std::string bash_completion(const command_model &program) {
  std::string script = kBashBegin, names, cases;
  for (const command_model *command : all_commands(program)) {
    if (!command->name.empty())
      names += (names.empty() ? "" : " | ") + in_quotes(command->name);
    cases += command_case(program, *command);
  }
  script += "      " + names + ") command=$next ;;\n    esac\n  done\n  case $command in\n" + cases;
  return script + kBashEnd;
}

} // namespace cudaq::realtime::tools
