// SPDX-License-Identifier: Apache-2.0
// A machine for `doctor` that is not this one, and its report.
#pragma once

#include "unittests/tools/common/run_program.h"

#include <optional>

namespace cudaq::realtime::tools::test {

/// A folder whose sys, proc and dev describe a made-up machine.
class made_up_machine {
public:
  void file(const std::string &path, const std::string &text) {
    const auto at = scratch_.path() / path;
    std::filesystem::create_directories(at.parent_path());
    std::ofstream(at) << text << "\n";
  }
  void link(const std::string &path, const std::string &target) {
    const auto at = scratch_.path() / path;
    std::filesystem::create_directories(at.parent_path());
    std::filesystem::create_symlink(target, at);
  }
  /// For all cores of a small machine: this process may be limited to some of them.
  void each_core(const std::string &path, const std::string &text) {
    for (int core = 0; core < 64; ++core)
      file("sys/devices/system/cpu/cpu" + std::to_string(core) + "/" + path, text);
  }
  program_result doctor(const std::string &options = "") const {
    return run_program("doctor --json --root '" + scratch_.path().string() + "' " + options);
  }
  [[nodiscard]] const std::filesystem::path &path() const { return scratch_.path(); }

private:
  const scratch_folder scratch_;
};

/// "verdict: detail" of a line.
inline std::string line_of(const nlohmann::json &report, const std::string &part, const std::string &name) {
  if (report.is_discarded() || !report.contains("parts") || !report["parts"].contains(part))
    return "no such part";
  for (const auto &f : report["parts"][part])
    if (f.at("name") == name)
      return f.at("verdict").get<std::string>() + ": " + f.at("detail").get<std::string>();
  return "no such line";
}

/// A variable of the environment, for the programs that this test runs.
class environment_variable {
public:
  environment_variable(const char *name, const std::string &value) : name_(name) {
    if (const char *const before = std::getenv(name))
      before_ = before;
    setenv(name, value.c_str(), 1);
  }
  ~environment_variable() {
    if (before_)
      setenv(name_, before_->c_str(), 1);
    else
      unsetenv(name_);
  }
  environment_variable(const environment_variable &) = delete;
  environment_variable &operator=(const environment_variable &) = delete;

private:
  const char *const name_;
  std::optional<std::string> before_;
};

} // namespace cudaq::realtime::tools::test
