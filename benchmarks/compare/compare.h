// SPDX-License-Identifier: Apache-2.0
// `compare`: is one run slower or less accurate than another, by more than its noise?
#pragma once

#include "benchmarks/compare/ratio_estimate.h"
#include "benchmarks/compare/report_figures.h"
#include "tools/common/report.h"

#include <cstdint>
#include <string>
#include <vector>

namespace cudaq::realtime::tools {

struct compare_options {
  /// The base, then what is compared with it. Each is a file, or several runs of the same: "a.json,b.json".
  std::vector<std::string> reports;
  double tolerance = 0.1; ///< a difference up to this part counts as the same
  std::vector<std::string> judge = {"p50", "rate", "time", "errors"};
};

/// The runs of one side.
struct compared_runs {
  std::string name; ///< as given
  std::vector<json> reports;
};

/// What the interval says about the difference. Without an interval, the ratio.
enum class comparison : std::uint8_t {
  not_judged,
  worse,     ///< all of it is beyond the tolerance, on the bad side
  better,    ///< the same on the good side
  same,      ///< all of it is within the tolerance
  undecided, ///< a part of it is: more runs or rounds make it narrower
};
/// "worse", "better", "same", "cannot tell"; "" if it is not judged.
const char *comparison_name(comparison c);

struct compared_figure {
  report_figure base, now; ///< their values are those of the ratio: geometric means of runs or rounds, errors of all
  ratio_estimate estimate; ///< now over base
  std::size_t base_values = 1, now_values = 1;
  bool judged = false;
  comparison is = comparison::not_judged;
};

/// The figures that both sides have. One whose value is 0 has no ratio and is left out.
std::vector<compared_figure> compare_runs(const compared_runs &base, const compared_runs &now,
                                          const compare_options &options);

/// Returns an exit_code: kExitCheckFailed if a judged figure is worse. Throws usage_error if a file is not a report of
/// a run that ended well, or if the reports are of different subcommands.
int run_compare(const compare_options &options, const output &out);

} // namespace cudaq::realtime::tools
