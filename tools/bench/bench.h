// SPDX-License-Identifier: Apache-2.0
// `bench device` and `bench graph`: every case beside its floor, measured in one run, floors and cases alternating.
#pragma once

#include "tools/common/measured_case.h"
#include "tools/common/report.h"

#include <string>
#include <vector>

namespace cudaq::realtime::tools {

struct bench_options : measuring_options {
  std::vector<std::string> cases; ///< "P1", "P2a", ...; empty: all
  bool curves = false;            ///< how cost grows with payload, slots, functions, blocks, dispatchers
  int gpu = 0;
  std::string data_folder; ///< `bench pipeline`: of the recorded shots
};

/// Returns an exit_code. Throws usage_error, api_error, and std::runtime_error where there is no GPU or where this
/// build has no device kernels.
int run_bench_device(const bench_options &options, const output &out);
/// The same for graph workers of the host path.
int run_bench_graph(const bench_options &options, const output &out);
/// What the QEC pipeline takes around its engine and its matcher. Without a GPU the matcher's part only.
int run_bench_pipeline(const bench_options &options, const output &out);

} // namespace cudaq::realtime::tools
