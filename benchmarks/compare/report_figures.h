// SPDX-License-Identifier: Apache-2.0
// The figures of a report that can be compared with those of another report of the same subcommand.
#pragma once

#include "tools/common/report.h"

#include <string>
#include <vector>

namespace cudaq::realtime::tools {

struct report_figure {
  std::string of;             ///< which part of the report: "pass 1 latency_ns"; "" for the report itself
  std::string what;           ///< "p50", "p99", "p99.9", "max", "rate", "time" or "errors"
  std::string unit;           ///< "ns", "1/s", "cycles", "rounds", or "" for errors
  double value = 0;           ///< of errors: the rate
  double errors = 0;          ///< of "errors": how many
  double shots = 0;           ///< of "errors": of how many shots
  std::vector<double> rounds; ///< the value of each round, if the report has it

  [[nodiscard]] bool higher_is_better() const { return what == "rate"; }
};

/// All figures of the report, in its order. They are found by their form (docs/command_line.md): objects with
/// percentiles, numbers per second, numbers of logical errors.
std::vector<report_figure> figures_of(const json &report);

/// The text of a field, or `otherwise` if the object has no text there.
std::string text_of(const json &object, const char *name, const char *otherwise);

/// Settings and properties of the machine, as "name: value", whose difference may be the reason of another figure.
std::vector<std::pair<std::string, std::string>> conditions_of(const json &report);

} // namespace cudaq::realtime::tools
