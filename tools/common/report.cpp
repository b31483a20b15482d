// SPDX-License-Identifier: Apache-2.0
#include "tools/common/report.h"

#include "cudaq/realtime/version.h"
#include "tools/common/end_watch.h"
#include "tools/common/machine.h"
#include "tools/common/output_file.h"
#include "tools/common/standard_streams.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

namespace cudaq::realtime::tools {
namespace {

/// Of every report. A subcommand whose fields change their meaning puts a higher number into its own fields.
constexpr int kSchemaVersion = 1;

json machine_json() {
  const machine_info m = read_machine_info();
  return {{"cpu_model", m.cpu_model},
          {"architecture", m.architecture},
          {"kernel", m.kernel},
          {"online_cores", m.online_cores},
          {"allowed_cores", allowed_cores()},
          {"numa_nodes", m.numa_nodes},
          {"virtual_machine", m.virtual_machine},
          {"governor", m.governor},
          {"load_average", read_line("/proc/loadavg")}};
}

} // namespace

void write_text(std::FILE *stream, const std::string &text) noexcept {
  std::fwrite(text.data(), 1, text.size(), stream); // of stdout, the end of the program looks for an error
}

void write_log_line(std::FILE *stream, const std::string &line) noexcept {
  write_text(stream, line);
  std::fflush(stream);
  std::clearerr(stream);
}

std::string stdout_problem() {
  if (standard_streams::was_closed(STDOUT_FILENO) || (std::fflush(stdout) == 0 && std::ferror(stdout) == 0))
    return "";
  return std::string("stdout cannot be written: ") + std::strerror(errno);
}

run_end ended(bool signalled, std::uint64_t done, std::uint64_t all, const char *unit) {
  if (!signalled || done == all)
    return {signalled, ""};
  std::string noun = unit;
  if ((all == kNotKnown ? done : all) == 1 && noun.ends_with('s'))
    noun.pop_back();
  return {true, all == kNotKnown ? fmt::format("{} {}", done, noun) : fmt::format("{} of {} {}", done, all, noun)};
}

/// A reader of one sees the other: a terminal, `2>&1`.
bool are_stdout_and_stderr_one_file() {
  struct stat out {
  }, err{};
  return fstat(STDOUT_FILENO, &out) == 0 && fstat(STDERR_FILENO, &err) == 0 && out.st_dev == err.st_dev &&
         out.st_ino == err.st_ino;
}

void write_parts(std::initializer_list<std::string_view> parts) noexcept {
  for (const std::string_view part : parts)
    (void)!write(STDERR_FILENO, part.data(), part.size());
}

void print_refusal(const std::string &name, const std::string &reason) noexcept {
  try {
    print_error("{}: {}\n", name, reason);
  } catch (const std::exception &) { // no memory for the line
    write_parts({name, ": ", reason, "\n"});
  }
}

void write_file(const char *option, const std::string &path, const std::function<void(std::ostream &)> &write) {
  std::ofstream file(path);
  write(file);
  file.close();
  if (!file)
    throw usage_error(fmt::format("{}: cannot write {}", option, path));
}

struct output::opened_files {
  std::optional<output_file> json, html, trace;
  std::map<std::string, output_file> hgrm; ///< by the name of the histogram
};

output::output(output_options options)
    : options_(std::move(options)), quiet_(options_.json && (options_.json_file.empty() || options_.json_file == "-")),
      files_(std::make_shared<opened_files>()) {
  if (options_.json || !options_.html_file.empty())
    machine_ = std::make_unique<const json>(machine_json());
}

output::~output() = default;

void output::raw(const std::string &s) const {
  if (!quiet_)
    write_text(stdout, s);
}

void output::open_files() const {
  const auto open = [](std::optional<output_file> &file, const char *option, const std::string &path) {
    if (!path.empty())
      file.emplace(option, path);
  };
  if (quiet_ && standard_streams::was_closed(STDOUT_FILENO))
    throw usage_error("--json writes to stdout, which is closed; name a file: --json FILE");
  open(files_->json, "--json", options_.json && !quiet_ ? options_.json_file : "");
  open(files_->html, "--html", options_.html_file);
  open(files_->trace, "--trace", options_.trace_file);
  if (!options_.hgrm_prefix.empty()) // for a subcommand that does not say before the work what it will write
    output_file("--hgrm", options_.hgrm_prefix + ".hgrm");
}

void output::write_trace(const std::function<void(std::ostream &)> &trace) const {
  if (files_->trace)
    files_->trace->write(trace);
}

void output::open_hgrm(const std::vector<std::string> &names) const {
  if (options_.hgrm_prefix.empty())
    return;
  for (const std::string &name : names)
    files_->hgrm.try_emplace(name, "--hgrm", fmt::format("{}.{}.hgrm", options_.hgrm_prefix, name));
}

json output::report_of(const json &body, const std::string &problem, int status, bool interrupted) const {
  json all = {{"schema_version", kSchemaVersion},
              {"tool", options_.program},
              {"command", options_.command},
              {"version", program_version()},
              {"date", utc_date()},
              {"command_line", options_.command_line},
              {"machine", machine_ == nullptr ? json() : *machine_},
              {"ok", status == kExitOk},
              {"exit_status", status},
              {"error", status == kExitOk ? json() : json(problem)},
              {"interrupted", interrupted}};
  all.update(body);
  return all;
}

void output::write_report(const json &report) const {
  if (!options_.json || reported_)
    return;
  reported_ = true;
  // File names and messages may hold any bytes; the report must be valid JSON nevertheless.
  const std::string text = report.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
  if (quiet_) {
    write_text(stdout, text);
    return;
  }
  if (!files_->json) // refused before the files were opened
    files_->json.emplace("--json", options_.json_file);
  files_->json->write([&](std::ostream &file) { file << text; });
}

int output::finish(json body, const std::string &problem, int status, const run_end &end,
                   const html_writer &html) const {
  std::string why = problem;
  int code = problem.empty() ? int{kExitOk} : status;
  if (!end.partial.empty()) {
    const std::string partial = "interrupted after " + end.partial;
    if (!end.answers_on_stdout && !are_stdout_and_stderr_one_file()) // else what is printed to stderr is enough
      raw("\n" + partial + "\n");
    code = problem.empty() ? int{kExitInterrupted} : code;
    why += (problem.empty() ? "" : "; ") + partial;
  }
  if (code == kExitOk && !quiet_)
    if (why = stdout_problem(); !why.empty())
      code = kExitRefused;
  if (code != kExitOk)
    print_refusal(options_.name(), (code == kExitInterrupted ? "" : "FAILED: ") + why);
  const json report = report_of(body, why, code, end.signalled);
  write_report(report);
  if (files_->html && html)
    files_->html->write([&](std::ostream &file) { file << html(report); });
  end_watch::report_written(code);
  return code;
}

int output::refuse(const std::string &reason, int status) const noexcept {
  bool has_name = false;
  try {
    const std::string name = options_.name();
    has_name = true;
    print_refusal(name, reason);
    write_report(report_of(json::object(), reason, status, false));
  } catch (const std::exception &) {
    reported_ = true; // there is no place for a message, or the message is that the report cannot be written
    if (!has_name)    // no memory
      write_parts({options_.program, ": ", reason, "\n"});
  }
  return status;
}

void output::write_hgrm(const std::string &name, const latency_histogram &histogram) const {
  if (options_.hgrm_prefix.empty())
    return;
  open_hgrm({name});
  files_->hgrm.at(name).write([&](std::ostream &file) { histogram.write_hgrm(file); });
}

std::string program_version() {
  const std::string_view before = CUDAQ_REALTIME_VERSION_PRERELEASE;
  return fmt::format("{}.{}.{}{}{}", CUDAQ_REALTIME_VERSION_MAJOR, CUDAQ_REALTIME_VERSION_MINOR,
                     CUDAQ_REALTIME_VERSION_PATCH, before.empty() ? "" : "-", before);
}

std::string format_cuda_version(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

std::string format_ns(double ns) {
  const auto scaled = [](double value, const char *unit) {
    const int digits = value < 10 ? 2 : value < 100 ? 1 : 0;
    return fmt::format("{:.{}f} {}", value, digits, unit);
  };
  if (ns < 1000)
    return fmt::format("{:.0f} ns", ns);
  if (ns < 1e6)
    return scaled(ns / 1e3, "us");
  return ns < 1e9 ? scaled(ns / 1e6, "ms") : scaled(ns / 1e9, "s");
}

std::string format_rate(double per_second) {
  if (per_second < 1e4)
    return fmt::format("{:.0f}", per_second);
  return per_second < 1e6 ? fmt::format("{:.1f} k", per_second / 1e3) : fmt::format("{:.2f} M", per_second / 1e6);
}

json latency_json(const latency_histogram &h) {
  const auto measured = [&h](auto ns) { return h.count() == 0 ? json() : json(ns); };
  return {{"count", h.count()},
          {"min", measured(h.min())},
          {"mean", measured(h.mean())},
          {"p50", measured(h.percentile(50))},
          {"p90", measured(h.percentile(90))},
          {"p99", measured(h.percentile(99))},
          {"p99.9", measured(h.percentile(99.9))},
          {"max", measured(h.max())},
          {"percentile_relative_error", latency_histogram::kRelativeError}};
}

json timeline_json(const run_timeline &timeline) {
  json parts = json::array();
  for (std::size_t i = 0; i < timeline.size(); ++i)
    parts.push_back({{"count", timeline[i].count}, {"mean_ns", timeline[i].mean()}, {"max_ns", timeline[i].max}});
  return {{"part_ns", timeline.part_ns()}, {"parts", parts}};
}

std::string latency_line(const latency_histogram &h) {
  if (h.count() == 0)
    return "-";
  const auto at = [&](double percent) { return format_ns(static_cast<double>(h.percentile(percent))); };
  return fmt::format("min {}  p50 {}  p90 {}  p99 {}  p99.9 {}  max {}", format_ns(static_cast<double>(h.min())),
                     at(50), at(90), at(99), at(99.9), format_ns(static_cast<double>(h.max())));
}

} // namespace cudaq::realtime::tools
