// SPDX-License-Identifier: Apache-2.0
// How every subcommand says its results: text for people on stdout, JSON for programs on stdout or in a file.
#pragma once

#include "tools/common/latency_histogram.h"

#include <cstdint>
#include <fmt/core.h>
#include <functional>
#include <nlohmann/json.hpp>
#include <ostream>
#include <stdexcept>
#include <string>
#include <utility>

namespace cudaq::realtime::tools {

using json = nlohmann::ordered_json;

/// Exit status of the program.
enum exit_code : int {
  kExitOk = 0,
  kExitCheckFailed = 1, ///< an answer was wrong, lost or given twice
  kExitUsage = 2,       ///< an option or a file named by one cannot be used
  kExitRefused = 3,     ///< the library or the system refused something
};

/// Something the user named cannot be used; the text says what to do. Ends in kExitUsage.
class usage_error : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

struct output_options {
  bool json = false;
  std::string json_file;    ///< "" or "-": stdout, and then no other text goes there
  std::string hgrm_prefix;  ///< "": none; else each histogram goes to <prefix>.<name>.hgrm
  std::string command_line; ///< as typed, for the report
};

/// Writes a file that the user named with `option`. Throws usage_error, with both names, when that fails.
void write_file(const char *option, const std::string &path, const std::function<void(std::ostream &)> &write);

class output {
public:
  explicit output(output_options options);

  /// Text for people; nothing when stdout belongs to JSON.
  template <typename... Args>
  void text(fmt::format_string<Args...> format, Args &&...args) const {
    if (!quiet_)
      fmt::print(stdout, format, std::forward<Args>(args)...);
  }
  void raw(const std::string &s) const;

  /// Adds what every report carries (tool, version, date, command line, machine), and writes it if it was asked for.
  /// Throws usage_error when the file cannot be written.
  void write_json(json body) const;
  void write_hgrm(const std::string &name, const latency_histogram &histogram) const;

private:
  output_options options_;
  bool quiet_;
};

/// Of this program: "0.1.0".
std::string program_version();
/// "13.0" from 13000, as CUDA counts.
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
