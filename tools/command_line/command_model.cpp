// SPDX-License-Identifier: Apache-2.0
#include "tools/command_line/command_model.h"

#include "lib/base/similar_words.h"
#include "tools/common/report.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <string_view>

namespace cudaq::realtime::tools {

bool option_model::takes_path() const {
  static constexpr std::array<std::string_view, 6> kPaths = {"FILE", "[FILE]", "PATH", "PREFIX", "FOLDER", "REPORT"};
  return std::ranges::find(kPaths, value) != kPaths.end();
}

const command_model &command_named(const command_model &program, const std::vector<std::string> &words) {
  const command_model *command = &program;
  for (const std::string &word : words) {
    const auto next = std::ranges::find(command->commands, word, &last_word);
    if (next == command->commands.end()) {
      std::vector<std::string> names;
      for (const command_model &below : command->commands)
        names.push_back(last_word(below));
      throw usage_error(fmt::format("there is no subcommand \"{}\".{}", fmt::join(words, " "),
                                    detail::did_you_mean(detail::similar_words(word, names))));
    }
    command = &*next;
  }
  return *command;
}

std::string last_word(const command_model &command) { return command.name.substr(command.name.find_last_of(' ') + 1); }

std::vector<const command_model *> all_commands(const command_model &program) {
  std::vector<const command_model *> all{&program};
  for (const command_model &command : program.commands) {
    const auto below = all_commands(command);
    all.insert(all.end(), below.begin(), below.end());
  }
  return all;
}

std::string program_name(const command_model &command, char separator) {
  std::string name = command.program;
  if (command.name.empty())
    return name;
  name += separator + command.name;
  std::ranges::replace(name, ' ', separator);
  return name;
}

} // namespace cudaq::realtime::tools
