// SPDX-License-Identifier: Apache-2.0
// The benchmarks of a build without nvcc: those that need device kernels end with an error.
#include "benchmarks/common/bench_plan.h"

#include <stdexcept>

namespace cudaq::realtime::tools {
namespace {

[[noreturn]] void refuse(const char *what) {
  throw std::runtime_error(
      fmt::format("{}: this build has no device kernels, because no nvcc (CUDA 12.6 or newer) was found when it was "
                  "configured; build it on a machine with nvcc",
                  what));
}

} // namespace

int run_bench_device(const bench_options &options, const output &) {
  (void)select_cases(options.cases);
  refuse("the device path");
}

int run_bench_graph(const bench_options &options, const output &) {
  (void)select_cases(options.cases, all_graph_cases());
  refuse("graphs as handlers");
}

int run_bench_pipeline(const bench_options &options, const output &) {
  check_pipeline_cases(options.cases);
  refuse("the GPU pipeline");
}

} // namespace cudaq::realtime::tools
