// SPDX-License-Identifier: Apache-2.0
#include "tools/command_line/refusal.h"

#include "lib/base/similar_words.h"
#include "tools/command_line/command_model.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fmt/format.h>
#include <vector>

namespace cudaq::realtime::tools {
namespace {

bool has_option(const command_model &command, const std::string &name) {
  return std::ranges::any_of(command.options,
                             [&](const option_model &o) { return std::ranges::find(o.names, name) != o.names.end(); });
}

std::string unknown_option(const command_model &program, const command_model &command, const std::string &word) {
  const std::string name = word.substr(0, word.find('='));
  std::vector<std::string> names, elsewhere;
  for (const option_model &o : command.options)
    if (!o.is_argument)
      names.insert(names.end(), o.names.begin(), o.names.end());
  std::string text = fmt::format("there is no option {}.", name);
  for (const command_model *other : all_commands(program))
    if (!other->name.empty() && has_option(*other, name))
      elsewhere.push_back(other->name);
  if (!elsewhere.empty())
    return text + fmt::format(" It is an option of {}.", fmt::join(elsewhere, ", "));
  if (name == "--once" && has_option(command, "--count"))
    return text + " One reading is --count 1.";
  return text + detail::did_you_mean(detail::similar_words(name, names));
}

std::string unknown_word(const command_model &command, const std::string &word) {
  std::vector<std::string> names;
  for (const command_model &below : command.commands)
    names.push_back(last_word(below));
  if (names.empty())
    return fmt::format("\"{}\" is not an option, and the subcommand takes no more words.", word);
  std::string text = fmt::format("there is no subcommand \"{}\".", word);
  const std::string similar = detail::did_you_mean(detail::similar_words(word, names));
  return text + (similar.empty() ? fmt::format(" There are {}.", fmt::join(names, ", ")) : similar);
}

struct left_over_word {
  const CLI::App *app = nullptr; ///< the subcommand that did not take the word, or the last one if all words are taken
  std::string word;
};

left_over_word first_left_over(const CLI::App &app) {
  if (const auto words = app.remaining(); !words.empty())
    return {&app, words.front()};
  const auto parsed = app.get_subcommands();
  return parsed.empty() ? left_over_word{&app, ""} : first_left_over(*parsed.back());
}

/// The parser leaves out the names of options that the help does not list: the old names.
std::string with_old_name(const CLI::App &command, const std::string &reason) {
  if (!reason.starts_with(": "))
    return reason;
  std::string names;
  for (const CLI::Option *option : command.get_options())
    if (option->get_group().empty() && option->count() != 0)
      names += (names.empty() ? "--" : ", --") + option->get_lnames().front();
  return names + reason;
}

std::string missing_subcommand(const command_model &command) {
  std::vector<std::string> names;
  for (const command_model &below : command.commands)
    names.push_back(below.name);
  return fmt::format("a subcommand is missing: {}.", fmt::join(names, ", "));
}

} // namespace

refusal explain(const CLI::App &program, const CLI::ParseError &error) {
  const auto [last, word] = first_left_over(program);
  std::vector<std::string> words;
  for (const CLI::App *app = last; app->get_parent() != nullptr; app = app->get_parent())
    words.insert(words.begin(), app->get_name());
  const command_model model = describe_command_line(program);
  const command_model &command = command_named(model, words);
  const auto is = [&error](CLI::ExitCodes code) { return error.get_exit_code() == static_cast<int>(code); };
  const bool required = is(CLI::ExitCodes::RequiredError);
  std::string reason = with_old_name(*last, error.what());
  if (!word.empty() && (required || is(CLI::ExitCodes::ExtrasError))) // the misspelt name may be the required option
    reason = word.starts_with('-') ? unknown_option(model, command, word) : unknown_word(command, word);
  else if (required && !command.commands.empty())
    reason = missing_subcommand(command);
  return {command.name, reason, fmt::format("Options and examples: {} --help", program_name(command, ' '))};
}

} // namespace cudaq::realtime::tools
