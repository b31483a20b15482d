// SPDX-License-Identifier: Apache-2.0
#include "tools/command_line/command_options.h"
#include "tools/command_line/commands.h"
#include "tools/man/man_page.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <ostream>

namespace cudaq::realtime::tools {
namespace {

int write_pages(const command_model &program, const std::string &folder, const output &out) {
  json files = json::array();
  for (const command_model *command : all_commands(program)) {
    const std::string path = (std::filesystem::path(folder) / (program_name(*command, '-') + ".1")).string();
    write_file("--folder", path, [&](std::ostream &file) { file << man_page(program, *command); });
    files.push_back(path);
  }
  out.text("{} pages in {}\n", files.size(), folder);
  return out.finish({{"files", files}});
}

} // namespace

void add_man(CLI::App &program, chosen_command &chosen) {
  struct man_options {
    std::vector<std::string> words;
    std::string folder;
  };
  const auto options = std::make_shared<man_options>();
  CLI::App &man = *program.add_subcommand("man", "the help as a page for man(1), in roff");
  man.footer("Examples:\n  cudaq-realtime man demo | man -l -\n"
             "  cudaq-realtime man --folder DIR      all pages: cudaq-realtime.1, cudaq-realtime-demo.1, ...");
  CLI::Option *const words =
      man.add_option("command", options->words, "words of the subcommand; without them: the program itself")
          ->type_name("COMMAND");
  man.add_option("--folder", options->folder, "write the pages of all subcommands into this folder")
      ->type_name("FOLDER")
      ->excludes(words);
  run_when_chosen(man, chosen, [options, &program](const output &out) {
    const command_model model = describe_command_line(program);
    if (!options->folder.empty())
      return write_pages(model, options->folder, out);
    const std::string page = man_page(model, command_named(model, options->words));
    out.raw(page);
    return out.finish({{"page", page}});
  });
}

} // namespace cudaq::realtime::tools
