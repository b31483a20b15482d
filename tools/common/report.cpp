// SPDX-License-Identifier: Apache-2.0
#include "tools/common/report.h"

#include "cudaq/realtime/version.h"
#include "tools/common/machine.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
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

/// Why `path` cannot be opened for writing; "" if it can. Opens only regular files: opening others may wait or act.
std::string refused_to_write(const std::filesystem::path &path) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (std::filesystem::is_directory(status))
    return "it is a folder";
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
    return access(path.c_str(), W_OK) == 0 ? "" : std::strerror(errno);
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0)
    return std::strerror(errno);
  close(file);
  if (!std::filesystem::exists(status))
    std::filesystem::remove(path, error);
  return "";
}

} // namespace

void check_writable(const char *option, const std::string &path) {
  if (const std::string reason = refused_to_write(path); !reason.empty())
    throw usage_error(fmt::format("{}: cannot write {}: {}", option, path, reason));
}

void print_refusal(const std::string &command, const std::string &reason) {
  fmt::print(stderr, "cudaq-realtime{}{}: {}\n", command.empty() ? "" : " ", command, reason);
}

void write_file(const char *option, const std::string &path, const std::function<void(std::ostream &)> &write) {
  std::ofstream file(path);
  write(file);
  file.close();
  if (!file)
    throw usage_error(fmt::format("{}: cannot write {}", option, path));
}

output::output(output_options options)
    : options_(std::move(options)), quiet_(options_.json && (options_.json_file.empty() || options_.json_file == "-")) {
  if (options_.json || !options_.html_file.empty())
    machine_ = std::make_unique<const json>(machine_json());
}

output::~output() = default;

void output::raw(const std::string &s) const {
  if (!quiet_)
    std::fwrite(s.data(), 1, s.size(), stdout);
}

void output::check_files() const {
  if (options_.json && !quiet_)
    check_writable("--json", options_.json_file);
  if (!options_.html_file.empty())
    check_writable("--html", options_.html_file);
  if (options_.json && !quiet_ && options_.html_file == options_.json_file)
    throw usage_error(fmt::format("--html {}: this is the file of --json", options_.html_file));
  if (!options_.hgrm_prefix.empty())
    check_writable("--hgrm", options_.hgrm_prefix + ".hgrm");
}

json output::report_of(const json &body, const std::string &problem, int status, bool interrupted) const {
  json all = {{"schema_version", kSchemaVersion},
              {"tool", "cudaq-realtime"},
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
    std::fwrite(text.data(), 1, text.size(), stdout);
    return;
  }
  write_file("--json", options_.json_file, [&](std::ostream &file) { file << text; });
}

int output::finish(json body, const std::string &problem, int status, bool interrupted, const html_writer &html) const {
  const int end = problem.empty() ? int{kExitOk} : status;
  if (end != kExitOk)
    print_refusal(options_.command, "FAILED: " + problem);
  const json report = report_of(body, problem, end, interrupted);
  write_report(report);
  if (!options_.html_file.empty() && html)
    write_file("--html", options_.html_file, [&](std::ostream &file) { file << html(report); });
  return end;
}

int output::refuse(const std::string &reason, int status) const noexcept {
  try {
    print_refusal(options_.command, reason);
    write_report(report_of(json::object(), reason, status, false));
  } catch (const std::exception &) {
    reported_ = true; // there is no place for a message, or the message is that the report cannot be written
  }
  return status;
}

void output::write_hgrm(const std::string &name, const latency_histogram &histogram) const {
  if (options_.hgrm_prefix.empty())
    return;
  write_file("--hgrm", fmt::format("{}.{}.hgrm", options_.hgrm_prefix, name),
             [&](std::ostream &file) { histogram.write_hgrm(file); });
}

std::string program_version() {
  return fmt::format("{}.{}.{}", CUDAQ_REALTIME_VERSION_MAJOR, CUDAQ_REALTIME_VERSION_MINOR,
                     CUDAQ_REALTIME_VERSION_PATCH);
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
  return {{"count", h.count()},
          {"min", h.min()},
          {"mean", h.mean()},
          {"p50", h.percentile(50)},
          {"p90", h.percentile(90)},
          {"p99", h.percentile(99)},
          {"p99.9", h.percentile(99.9)},
          {"max", h.max()},
          {"percentile_relative_error", latency_histogram::kRelativeError}};
}

json timeline_json(const run_timeline &timeline) {
  json parts = json::array();
  for (std::size_t i = 0; i < timeline.size(); ++i)
    parts.push_back({{"count", timeline[i].count}, {"mean_ns", timeline[i].mean()}, {"max_ns", timeline[i].max}});
  return {{"part_ns", timeline.part_ns()}, {"parts", parts}};
}

std::string latency_line(const latency_histogram &h) {
  const auto at = [&](double percent) { return format_ns(static_cast<double>(h.percentile(percent))); };
  return fmt::format("min {}  p50 {}  p90 {}  p99 {}  p99.9 {}  max {}", format_ns(static_cast<double>(h.min())),
                     at(50), at(90), at(99), at(99.9), format_ns(static_cast<double>(h.max())));
}

} // namespace cudaq::realtime::tools
