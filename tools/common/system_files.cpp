// SPDX-License-Identifier: Apache-2.0
#include "tools/common/system_files.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <sys/resource.h>
#include <unistd.h>

namespace cudaq::realtime::tools {

bool system_files::exists(const std::string &path) const {
  std::error_code error;
  return std::filesystem::exists(root_ + path, error);
}

bool system_files::writable(const std::string &path) const { return access((root_ + path).c_str(), R_OK | W_OK) == 0; }

std::string system_files::line(const std::string &path) const {
  std::ifstream in(root_ + path);
  std::string text;
  std::getline(in, text);
  return text;
}

std::vector<std::string> system_files::lines(const std::string &path) const {
  std::ifstream in(root_ + path);
  std::vector<std::string> all;
  for (std::string text; std::getline(in, text);)
    all.push_back(text);
  return all;
}

std::optional<long long> system_files::number(const std::string &path) const {
  const std::string text = line(path);
  long long value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  return parsed.ec == std::errc() ? std::optional(value) : std::nullopt;
}

std::vector<std::string> system_files::names(const std::string &folder) const {
  std::vector<std::string> all;
  std::error_code error;
  for (auto at = std::filesystem::directory_iterator(root_ + folder, error);
       !error && at != std::filesystem::directory_iterator(); at.increment(error))
    all.push_back(at->path().filename().string());
  std::sort(all.begin(), all.end());
  return all;
}

std::string system_files::link(const std::string &path) const {
  std::error_code error;
  return std::filesystem::read_symlink(root_ + path, error).string();
}

long long system_files::free_huge_pages() const {
  for (const std::string &text : lines("/proc/meminfo"))
    if (text.starts_with("HugePages_Free:"))
      return std::atoll(text.c_str() + text.find(':') + 1);
  return 0;
}

std::vector<int> system_files::isolated_cores() const {
  return parse_cpu_list(line("/sys/devices/system/cpu/isolated"));
}

std::optional<double> system_files::cpu_quota() const {
  std::optional<double> least;
  const auto take = [&least](double quota, double period) {
    if (quota > 0 && period > 0)
      least = std::min(least.value_or(quota / period), quota / period);
  };
  for (const std::string &group : lines("/proc/self/cgroup")) { // "0::/a/b", or "3:cpu,cpuacct:/a/b"
    const std::size_t names = group.find(':') + 1, path = group.find(':', names) + 1;
    if (names == 0 || path == 0)
      continue;
    const std::string controllers = "," + group.substr(names, path - names - 1) + ",";
    const bool is_second = controllers == ",,";
    if (!is_second && controllers.find(",cpu,") == std::string::npos)
      continue;
    for (std::string folder = group.substr(path);; folder.resize(folder.find_last_of('/'))) { // up to the root
      const std::string at = (is_second ? "/sys/fs/cgroup" : "/sys/fs/cgroup/cpu") + folder;
      if (is_second) {
        std::istringstream limit(line(at + "/cpu.max")); // "10000 100000", or "max 100000"
        double quota = 0, period = 0;
        if (limit >> quota >> period)
          take(quota, period);
      } else {
        take(static_cast<double>(number(at + "/cpu.cfs_quota_us").value_or(-1)), // -1: none
             static_cast<double>(number(at + "/cpu.cfs_period_us").value_or(0)));
      }
      if (folder.find('/') == std::string::npos)
        break;
    }
  }
  return least;
}

std::string realtime_priority_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_RTPRIO, &limit) != 0 || limit.rlim_cur == 0)
    return "";
  return limit.rlim_cur == RLIM_INFINITY ? "unlimited" : "up to " + std::to_string(limit.rlim_cur);
}

std::vector<int> parse_cpu_list(const std::string &text) {
  std::vector<int> cpus;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    int first = 0;
    const char *const end = part.data() + part.size();
    const auto low = std::from_chars(part.data(), end, first);
    if (low.ec != std::errc())
      continue;
    int last = first;
    if (low.ptr != end && *low.ptr == '-')
      std::from_chars(low.ptr + 1, end, last);
    for (int cpu = first; cpu <= last && cpu - first < 4096; ++cpu)
      cpus.push_back(cpu);
  }
  return cpus;
}

} // namespace cudaq::realtime::tools
