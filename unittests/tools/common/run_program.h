// SPDX-License-Identifier: Apache-2.0
// Runs the program cudaq-realtime and captures its output.
#pragma once

#include "unittests/support/program_paths.h"
#include "unittests/support/scratch_folder.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

namespace cudaq::realtime::tools::test {

using realtime::test::read_file;
using realtime::test::scratch_folder;

struct program_result {
  int exit_code = -1; ///< -1: ended by a signal
  std::string out;
  std::string err;
  /// stdout as JSON; a discarded value if it is not valid JSON.
  [[nodiscard]] nlohmann::json json() const { return nlohmann::json::parse(out, nullptr, false); }
};

/// Begins a command of the shell: the program after it ends after 300 s. ctest would end only the test, and the program
/// would continue to use its cores.
inline constexpr char kWithLimit[] = "timeout -k 2 300 ";

/// Runs the program with these arguments, which the shell splits, and with this file as stdin.
inline program_result run_program(const std::string &arguments, const std::filesystem::path &program = CUDAQ_TOOL_PATH,
                                  const std::filesystem::path &input = "/dev/null") {
  const scratch_folder scratch;
  const auto err = scratch.path() / "stderr", out = scratch.path() / "stdout";
  const std::string command = kWithLimit + ("'" + program.string()) + "' " + arguments + " >'" + out.string() +
                              "' 2>'" + err.string() + "' <'" + input.string() + "'";
  const int status = std::system(command.c_str());
  program_result result;
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  result.out = read_file(out);
  result.err = read_file(err);
  return result;
}

/// Runs the program, which must succeed and report this in JSON. Returns the JSON, or a discarded value.
inline nlohmann::json run_good_program(const std::string &arguments,
                                       const std::filesystem::path &program = CUDAQ_TOOL_PATH) {
  const program_result r = run_program(arguments, program);
  EXPECT_EQ(r.exit_code, 0) << arguments << "\n" << r.err;
  auto j = r.json();
  EXPECT_FALSE(j.is_discarded()) << "no JSON: " << r.out;
  if (!j.is_discarded()) {
    EXPECT_EQ(j.at("ok"), true) << arguments;
  }
  return j;
}

inline bool contains(const std::string &text, const std::string &part) { return text.find(part) != std::string::npos; }

/// The value of a word " key=value" of the line; "" if there is none.
inline std::string value_in(const std::string &line, const std::string &key) {
  const std::size_t at = line.find(" " + key + "=");
  return at == std::string::npos ? "" : line.substr(at + key.size() + 2, line.find(' ', at + 1) - at - key.size() - 2);
}

/// This build has decoders that `demo` can run.
inline bool has_decoders() { return run_program("demo --help").exit_code == 0; }

} // namespace cudaq::realtime::tools::test
