// SPDX-License-Identifier: Apache-2.0
#include "tools/command_line/command_options.h"
#include "tools/command_line/commands.h"
#include "tools/completion/completion.h"

#include <nlohmann/json.hpp>

namespace cudaq::realtime::tools {
namespace {

constexpr const char *kCompletionFooter =
    R"(The installed program has these scripts in the folders where the shells look for them. For a build tree:

Examples:
  source <(cudaq-realtime completion bash)           for this shell; for all: add the line to ~/.bashrc
  cudaq-realtime completion zsh > ~/.zfunc/_cudaq-realtime
                                                     a folder of $fpath
  cudaq-realtime completion fish > ~/.config/fish/completions/cudaq-realtime.fish)";

} // namespace

void add_completion(CLI::App &program, chosen_command &chosen) {
  const auto shell = std::make_shared<std::string>();
  CLI::App &completion =
      *program.add_subcommand("completion", "a script that completes this command line in bash, zsh or fish");
  completion.footer(kCompletionFooter);
  completion.add_option("shell", *shell, "bash, zsh or fish")
      ->required()
      ->type_name("SHELL")
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  run_when_chosen(completion, chosen, [shell, &program](const output &out) {
    const command_model model = describe_command_line(program);
    const std::string script = *shell == "bash"  ? bash_completion(model)
                               : *shell == "zsh" ? zsh_completion(model)
                                                 : fish_completion(model);
    out.raw(script);
    return out.finish({{"shell", *shell}, {"script", script}});
  });
}

} // namespace cudaq::realtime::tools
