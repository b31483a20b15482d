// SPDX-License-Identifier: Apache-2.0
// A JSON file of figures for docs/performance: command, date, machine, and rows of numbers
// whose names have the unit.
#pragma once

#include <cstdio>
#include <ctime>
#include <fstream>
#include <sched.h>
#include <string>
#include <sys/utsname.h>
#include <utility>
#include <vector>

namespace cudaq::realtime::test {

class figures_file {
public:
  using numbers = std::vector<std::pair<std::string, double>>;

  void add(const std::string &row, numbers values) { rows_.emplace_back(row, std::move(values)); }

  /// False: the file cannot be written.
  [[nodiscard]] bool write(const std::string &path, const std::string &command) const {
    std::string text = "{\n \"command\": \"" + escaped(command) + "\",\n \"date\": \"" + today() +
                       "\",\n \"machine\": \"" + escaped(machine()) + "\",\n \"rows\": {";
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      text += (r == 0 ? "\n  \"" : ",\n  \"") + escaped(rows_[r].first) + "\": {";
      for (std::size_t n = 0; n < rows_[r].second.size(); ++n) {
        char number[64];
        std::snprintf(number, sizeof number, "%.9g", rows_[r].second[n].second);
        text += (n == 0 ? "\"" : ", \"") + escaped(rows_[r].second[n].first) + "\": " + number;
      }
      text += "}";
    }
    std::ofstream file(path);
    file << text << "\n }\n}\n";
    file.close();
    return file.good();
  }

private:
  static std::string escaped(const std::string &text) {
    std::string out;
    for (const char c : text)
      if (c == '"' || c == '\\')
        out += std::string("\\") + c;
      else
        out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    return out;
  }
  static std::string today() {
    const std::time_t now = std::time(nullptr);
    std::tm parts{};
    char text[16] = "";
    std::strftime(text, sizeof text, "%Y-%m-%d", gmtime_r(&now, &parts));
    return text;
  }
  static std::string machine() {
    std::string model = "unknown processor";
    std::ifstream cpus("/proc/cpuinfo");
    for (std::string line; std::getline(cpus, line);)
      if (line.starts_with("model name")) {
        model = line.substr(line.find(": ") + 2);
        break;
      }
    cpu_set_t usable;
    const int cores = sched_getaffinity(0, sizeof usable, &usable) == 0 ? CPU_COUNT(&usable) : 0;
    double load = 0;
    std::ifstream("/proc/loadavg") >> load;
    utsname system{};
    uname(&system);
    char numbers[64];
    std::snprintf(numbers, sizeof numbers, ", %d cores, load %.1f, Linux ", cores, load);
    return model + numbers + system.release;
  }

  std::vector<std::pair<std::string, numbers>> rows_;
};

} // namespace cudaq::realtime::test
