// SPDX-License-Identifier: Apache-2.0
// How every subcommand reports its results: text for people on stdout, JSON for programs on stdout or in a file.
#pragma once

#include "tools/common/latency_histogram.h"

#include <cstdint>
#include <fmt/core.h>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <ostream>
#include <stdexcept>
#include <string>
#include <utility>

namespace cudaq::realtime::tools {

using json = nlohmann::ordered_json;

/// Exit status of the program.
enum exit_code : int {
  kExitOk = 0,
  kExitCheckFailed = 1, ///< an answer was wrong, lost or given twice, or the run stalled
  kExitUsage = 2,       ///< an option or a file named by one cannot be used
  kExitRefused = 3,     ///< the library or the system refused something
};

/// An option or a file that the user named cannot be used; the text describes what to do. The program ends with
/// kExitUsage.
class usage_error : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

struct output_options {
  bool json = false;
  std::string json_file;    ///< "" or "-": stdout, and no other text is written to stdout
  std::string hgrm_prefix;  ///< "": no files; else each histogram is written to <prefix>.<name>.hgrm
  std::string command_line; ///< as typed, for the report
};

/// Writes a file that the user named with `option`. Throws usage_error with both names if that fails.
void write_file(const char *option, const std::string &path, const std::function<void(std::ostream &)> &write);

class output {
public:
  explicit output(output_options options);

  /// Prints text for people; prints nothing if stdout is used for JSON.
  template <typename... Args>
  void text(fmt::format_string<Args...> format, Args &&...args) const {
    if (!quiet_)
      fmt::print(stdout, format, std::forward<Args>(args)...);
  }
  void raw(const std::string &s) const;
  [[nodiscard]] bool uses_stdout_for_json() const noexcept { return quiet_; }

  /// Writes the report if --json was given. Adds what every report holds: tool, version, date, command line, machine.
  /// Throws usage_error if the file cannot be written.
  void write_json(json body) const;
  void write_hgrm(const std::string &name, const latency_histogram &histogram) const;

private:
  output_options options_;
  bool quiet_;
};

/// Version of this program: "0.1.0".
std::string program_version();
/// "13.0" from 13000, which is CUDA's form of a version.
std::string format_cuda_version(int version);
/// "734 ns", "12.3 us", "1.50 ms", "2.10 s".
std::string format_ns(double ns);
/// "1234", "27.8 k", "5.90 M".
std::string format_rate(double per_second);

/// count, min, mean, p50, p90, p99, p99.9, max, and the accuracy of the percentiles.
json latency_json(const latency_histogram &histogram);
/// "min 40.1 us  p50 ..." on one line.
std::string latency_line(const latency_histogram &histogram);

} // namespace cudaq::realtime::tools
