// SPDX-License-Identifier: Apache-2.0
#include "tools/common/report.h"

#include "cudaq/realtime/version.h"
#include "tools/common/machine.h"

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

namespace cudaq::realtime::tools {
namespace {

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

void write_file(const char *option, const std::string &path, const std::function<void(std::ostream &)> &write) {
  std::ofstream file(path);
  write(file);
  file.close();
  if (!file)
    throw usage_error(fmt::format("{}: cannot write {}", option, path));
}

output::output(output_options options)
    : options_(std::move(options)), quiet_(options_.json && (options_.json_file.empty() || options_.json_file == "-")) {
}

void output::raw(const std::string &s) const {
  if (!quiet_)
    std::fwrite(s.data(), 1, s.size(), stdout);
}

void output::write_json(json body) const {
  if (!options_.json)
    return;
  json all = {{"tool", "cudaq-realtime"},
              {"version", program_version()},
              {"date", utc_date()},
              {"command_line", options_.command_line},
              {"machine", machine_json()}};
  all.update(body);
  // File names and messages may hold any bytes; the report must be valid JSON nevertheless.
  const std::string text = all.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
  if (quiet_) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    return;
  }
  write_file("--json", options_.json_file, [&](std::ostream &file) { file << text; });
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

std::string latency_line(const latency_histogram &h) {
  const auto at = [&](double percent) { return format_ns(static_cast<double>(h.percentile(percent))); };
  return fmt::format("min {}  p50 {}  p90 {}  p99 {}  p99.9 {}  max {}", format_ns(static_cast<double>(h.min())),
                     at(50), at(90), at(99), at(99.9), format_ns(static_cast<double>(h.max())));
}

} // namespace cudaq::realtime::tools
