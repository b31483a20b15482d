// SPDX-License-Identifier: Apache-2.0
// Reads the files in which the system describes itself. Tests give a folder with made-up files instead of the root.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace cudaq::realtime::tools {

class system_files {
public:
  explicit system_files(std::string root) : root_(std::move(root)) {}

  [[nodiscard]] bool exists(const std::string &path) const;
  /// The process may read and write it.
  [[nodiscard]] bool writable(const std::string &path) const;
  /// First line; "" if the file cannot be read.
  [[nodiscard]] std::string line(const std::string &path) const;
  [[nodiscard]] std::vector<std::string> lines(const std::string &path) const;
  /// First number of the file; nothing if it has none.
  [[nodiscard]] std::optional<long long> number(const std::string &path) const;
  /// Names in a folder, sorted; empty if it cannot be read.
  [[nodiscard]] std::vector<std::string> names(const std::string &folder) const;
  /// Target of a link; "" if there is none.
  [[nodiscard]] std::string link(const std::string &path) const;

  [[nodiscard]] long long free_huge_pages() const;
  /// Cores that the system gives no work of its own.
  [[nodiscard]] std::vector<int> isolated_cores() const;
  /// Cores' worth of time that the control groups of this process (a container) may use: the least of them, of version
  /// 1 or 2. Nothing without a quota.
  [[nodiscard]] std::optional<double> cpu_quota() const;

private:
  std::string root_;
};

/// The highest real-time priority that this process may set, as text: "up to 99", "unlimited"; "" if it may set none.
std::string realtime_priority_limit();

/// "0-2,8" as {0, 1, 2, 8}; parts that are no numbers are left out.
std::vector<int> parse_cpu_list(const std::string &text);

} // namespace cudaq::realtime::tools
