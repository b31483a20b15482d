// SPDX-License-Identifier: Apache-2.0
// Runs the program with a terminal as stdout and stderr.
#pragma once

#include "unittests/support/program_paths.h"
#include "unittests/tools/common/run_program.h"

#include <chrono>
#include <csignal>
#include <map>
#include <poll.h>
#include <pty.h>
#include <string>
#include <vector>

namespace cudaq::realtime::tools::test {

struct terminal_result {
  int exit_code = -1; ///< -1: ended by a signal
  std::string text;   ///< all that the terminal got
};

/// What is typed after the terminal got a text.
struct typed_keys {
  std::string after, keys;
};

/// `environment`: variables to set; an empty value removes one. Ends the program after 300 s.
inline terminal_result run_on_terminal(std::vector<std::string> arguments,
                                       const std::map<std::string, std::string> &environment, typed_keys typed = {}) {
  arguments.insert(arguments.begin(), CUDAQ_TOOL_PATH);
  std::vector<char *> argv;
  for (std::string &argument : arguments)
    argv.push_back(argument.data());
  argv.push_back(nullptr);
  int fd = -1;
  const pid_t child = forkpty(&fd, nullptr, nullptr, nullptr);
  if (child < 0)
    throw std::runtime_error("forkpty");
  if (child == 0) {
    for (const auto &[name, value] : environment)
      value.empty() ? unsetenv(name.c_str()) : setenv(name.c_str(), value.c_str(), 1);
    execv(argv[0], argv.data());
    _exit(127);
  }
  terminal_result result;
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(300);
  for (char part[4096];;) {
    pollfd readable{fd, POLLIN, 0};
    if (poll(&readable, 1, 100) > 0) {
      const ssize_t n = read(fd, part, sizeof part); // fails after the end of the program
      if (n <= 0)
        break;
      result.text.append(part, static_cast<std::size_t>(n));
      if (!typed.keys.empty() && contains(result.text, typed.after)) {
        const ssize_t written = ::write(fd, typed.keys.data(), typed.keys.size());
        typed.keys.clear();
        if (written < 0)
          break;
      }
    }
    if (std::chrono::steady_clock::now() > limit)
      kill(child, SIGKILL);
  }
  int status = 0;
  waitpid(child, &status, 0);
  close(fd);
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return result;
}

} // namespace cudaq::realtime::tools::test
