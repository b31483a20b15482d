// SPDX-License-Identifier: Apache-2.0
// How every subcommand reports its results: text for people on stdout, JSON for programs on stdout or in a file.
#pragma once

#include "tools/common/latency_histogram.h"
#include "tools/common/run_timeline.h"

#include <cstdint>
#include <cstdio>
#include <fmt/core.h>
#include <functional>
#include <initializer_list>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <ostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cudaq::realtime::tools {

using json = nlohmann::ordered_json;

/// Exit status of the program.
enum exit_code : int {
  kExitOk = 0,
  kExitCheckFailed = 1,   ///< an answer was wrong, lost or given twice, or the run stalled
  kExitUsage = 2,         ///< an option or a file named by one cannot be used
  kExitRefused = 3,       ///< the library or the system refused something
  kExitInterrupted = 130, ///< a signal ended the run before everything was done; what was done passed its checks
};

/// What each status means, for help and man pages.
struct exit_meaning {
  int status;
  const char *text;
};
inline constexpr exit_meaning kExitMeanings[] = {
    {kExitOk, "everything was done, and every check passed"},
    {kExitCheckFailed, "an answer was wrong, lost or given twice, or there was no progress"},
    {kExitUsage, "an option, or a file that an option names, cannot be used"},
    {kExitRefused, "the library or the system refused something"},
    {kExitInterrupted, "Ctrl-C or SIGTERM ended the run before everything was done; what was done is good"},
};

/// An option or a file that the user named cannot be used; the text describes what to do. The program ends with
/// kExitUsage.
class usage_error : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// Ends the program: with kExitRefused if the machine lacks something, else with kExitUsage.
[[noreturn]] inline void refuse(bool machine_lacks, const std::string &text) {
  if (machine_lacks)
    throw std::runtime_error(text);
  throw usage_error(text);
}

/// A check failed: an answer was wrong or lost, or there was no progress. The program ends with kExitCheckFailed.
class check_failed : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

struct output_options {
  bool json = false;
  std::string json_file;   ///< "" or "-": stdout, and no other text is written to stdout
  std::string trace_file;  ///< "": no trace
  std::string html_file;   ///< "": no page
  std::string hgrm_prefix; ///< "": no files; else each histogram is written to <prefix>.<name>.hgrm
  std::string program = "cudaq-realtime";
  std::string command;      ///< words of the subcommand: "bench device"; "" for the program itself
  std::string command_line; ///< as typed, for the report

  /// Program and subcommand, as messages begin.
  [[nodiscard]] std::string name() const { return command.empty() ? program : program + " " + command; }
};

/// How a run ended that ends well.
struct run_end {
  bool signalled = false;         ///< Ctrl-C or SIGTERM
  std::string partial;            ///< what was done before the signal: "51200 of 100000 shots"; "": everything
  bool answers_on_stdout = false; ///< so no text belongs there
};

inline constexpr std::uint64_t kNotKnown = UINT64_MAX;
/// `all`: what was to be done, or kNotKnown. `unit`: in the plural.
run_end ended(bool signalled, std::uint64_t done, std::uint64_t all, const char *unit);

/// Writes a text for people. A stream that is closed, or whose disk is full, ends no run.
void write_text(std::FILE *stream, const std::string &text) noexcept;
template <typename... Args>
void print_error(fmt::format_string<Args...> format, Args &&...args) {
  write_text(stderr, fmt::format(format, std::forward<Args>(args)...));
}

/// Writes a line at once. If it cannot be written, because its reader has ended, the status of the program stays: for
/// lines that are a log.
void write_log_line(std::FILE *stream, const std::string &line) noexcept;
/// Why not all of stdout could be written; "" if it was, or if stdout was closed at the start.
std::string stdout_problem();

/// Writes to stderr without memory and without a stream: for where memory is refused.
void write_parts(std::initializer_list<std::string_view> parts) noexcept;

/// One message on stderr: "<name>: <reason>", with the name of output_options. Without memory, too.
void print_refusal(const std::string &name, const std::string &reason) noexcept;

/// Writes a file that the user named with `option`. Throws usage_error with both names if that fails.
void write_file(const char *option, const std::string &path, const std::function<void(std::ostream &)> &write);

/// Makes a page of a report with all of its fields.
using html_writer = std::function<std::string(const json &report)>;

/// Where a subcommand's result goes. Used by one thread.
class output {
public:
  /// With --json or --html it reads the facts of the machine for the report: create it before a thread is pinned.
  explicit output(output_options options);
  ~output();
  output(const output &) = delete;
  output &operator=(const output &) = delete;

  /// Prints text for people; prints nothing if stdout is used for JSON.
  template <typename... Args>
  void text(fmt::format_string<Args...> format, Args &&...args) const {
    if (!quiet_)
      write_text(stdout, fmt::format(format, std::forward<Args>(args)...));
  }
  void raw(const std::string &s) const;
  /// As text(), by write_log_line.
  template <typename... Args>
  void log(fmt::format_string<Args...> format, Args &&...args) const {
    if (!quiet_)
      write_log_line(stdout, fmt::format(format, std::forward<Args>(args)...));
  }
  /// Opens the files that the options name, before the work. Throws usage_error if one of them cannot be written. A new
  /// file that is not written is removed in the end.
  void open_files() const;
  /// The histograms that the subcommand will write. Call it before the work: it opens their files, as open_files().
  void open_hgrm(const std::vector<std::string> &names) const;
  /// The run is to be recorded for write_trace.
  [[nodiscard]] bool traces() const noexcept { return !options_.trace_file.empty(); }
  void write_trace(const std::function<void(std::ostream &)> &trace) const;
  [[nodiscard]] bool uses_stdout_for_json() const noexcept { return quiet_; }

  /// The end of every subcommand. Writes the report if --json was given: the fields that every report has
  /// (docs/command_line.md), then those of `body`. Without a `problem` it returns kExitOk; after a partial run
  /// kExitInterrupted; and kExitRefused if stdout could not take the text. Otherwise it prints the problem to stderr
  /// and returns `status`. With --html it also writes the page that `html` makes of the report. Throws usage_error if a
  /// file cannot be written.
  int finish(json body, const std::string &problem = "", int status = kExitCheckFailed, const run_end &end = {},
             const html_writer &html = {}) const;
  /// The end of a subcommand that has thrown: prints `reason` to stderr, and writes a report without measurements,
  /// unless one is written already. A report that cannot be written is ignored. Returns `status`.
  int refuse(const std::string &reason, int status) const noexcept;
  void write_hgrm(const std::string &name, const latency_histogram &histogram) const;

private:
  struct opened_files;
  [[nodiscard]] json report_of(const json &body, const std::string &problem, int status, bool interrupted) const;
  void write_report(const json &report) const;

  output_options options_;
  bool quiet_;
  mutable bool reported_ = false; ///< the JSON is written, or its file cannot be written
  std::unique_ptr<const json> machine_;
  std::shared_ptr<opened_files> files_; ///< never shared
};

/// Version of this program: "1.0.0", or "1.0.0-rc1".
std::string program_version();
/// "13.0" from 13000, which is CUDA's form of a version.
std::string format_cuda_version(int version);
/// "734 ns", "12.3 us", "1.50 ms", "2.10 s".
std::string format_ns(double ns);
/// "1234", "27.8 k", "5.90 M".
std::string format_rate(double per_second);

/// count, min, mean, p50, p90, p99, p99.9, max, and the accuracy of the percentiles.
json latency_json(const latency_histogram &histogram);
/// part_ns, and the count, mean and maximum of each part.
json timeline_json(const run_timeline &timeline);
/// "min 40.1 us  p50 ..." on one line.
std::string latency_line(const latency_histogram &histogram);

} // namespace cudaq::realtime::tools
