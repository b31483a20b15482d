// SPDX-License-Identifier: Apache-2.0
#include "tools/completion/completion.h"
#include "tools/completion/completion_words.h"

#include <fmt/format.h>

namespace cudaq::realtime::tools {
namespace {

constexpr const char *kZshEnd = R"(
# As a file of $fpath the script is the function itself; `source` declares it.
if [[ $funcstack[1] == _cudaq-realtime ]]; then
  _cudaq-realtime "$@"
else
  compdef _cudaq-realtime cudaq-realtime cudaq-realtime-gpu
fi
)";

/// A text inside the brackets of an _arguments specification.
std::string in_brackets(const std::string &text) { return replaced(replaced(text, '[', "\\["), ']', "\\]"); }
/// A text between two colons.
std::string in_colons(const std::string &text) { return replaced(text, ':', "\\:"); }

/// ":value:action" after an option or an argument.
std::string value_of(const option_model &o) {
  const std::string action = !o.choices.empty() ? "(" + joined_words(o.choices) + ")" : o.takes_path() ? "_files" : " ";
  return fmt::format("{}{}:{}", o.value_may_miss ? "::" : ":", in_colons(in_brackets(o.value)), action);
}

/// The specifications of one option: one for each of its names.
std::string specifications(const command_model &program, const option_model &o) {
  if (names_a_command(o)) {
    std::vector<std::string> names;
    for (const command_model *named : all_commands(program))
      if (!named->name.empty())
        names.push_back(last_word(*named));
    return fmt::format("    {} \\\n", in_quotes(fmt::format("*:subcommand:({})", joined_words(names))));
  }
  if (o.is_argument)
    return fmt::format("    {} \\\n", in_quotes((o.is_list ? "*" : "1") + value_of(o)));
  std::string text;
  for (const std::string &name : o.names) {
    const std::string others = o.names.size() == 1 ? "" : "(" + joined_words(o.names) + ")";
    const std::string sign = o.value.empty() ? "" : name.starts_with("--") ? "=" : "+";
    text += fmt::format("    {} \\\n", in_quotes(others + name + sign + "[" + in_brackets(o.text) + "]" +
                                                 (o.value.empty() ? "" : value_of(o))));
  }
  return text;
}

std::string function_name(const command_model &command) { return "_" + program_name(command, '-'); }

std::string function_of(const command_model &program, const command_model &command) {
  std::string text = function_name(command) + "() {\n";
  if (!command.commands.empty())
    text += "  local curcontext=$curcontext state\n  local -a line commands\n";
  text += "  _arguments -C \\\n";
  for (const option_model &o : command.options)
    text += specifications(program, o);
  if (command.commands.empty())
    return text + "    && return\n}\n\n";
  text += "    '1: :->command' '*:: :->words' && return\n  commands=(\n";
  std::string cases;
  for (const command_model &below : command.commands) {
    text += "    " + in_quotes(last_word(below) + ":" + below.text) + "\n";
    cases += fmt::format("      {}) {} ;;\n", last_word(below), function_name(below));
  }
  return text + "  )\n  case $state in\n    command) _describe subcommand commands ;;\n    words) case $words[1] in\n" +
         cases + "    esac ;;\n  esac\n}\n\n";
}

} // namespace

std::string zsh_completion(const command_model &program) {
  std::string script = "#compdef cudaq-realtime cudaq-realtime-gpu\n"
                       "# zsh completion of cudaq-realtime, written by: cudaq-realtime completion zsh\n\n";
  for (const command_model *command : all_commands(program))
    script += function_of(program, *command);
  return script + (kZshEnd + 1);
}

} // namespace cudaq::realtime::tools
