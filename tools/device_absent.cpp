// SPDX-License-Identifier: Apache-2.0
// Replaces everything that needs device kernels in a build without nvcc: each function throws the reason.
#include "tools/bench/bench_plan.h"
#include "tools/demo/demo.h"
#ifdef CUDAQ_TOOL_HAS_QEC
#include "tools/pipeline/pipeline_gpu.h"
#endif

#include <stdexcept>

namespace cudaq::realtime::tools {
namespace {

constexpr char kWhy[] =
    ": this build has no device kernels, because no nvcc (CUDA 12.6 or newer) was found when it was "
    "configured; build it on a machine with nvcc";

} // namespace

int run_bench_device(const bench_options &options, const output &) {
  (void)select_cases(options.cases);
  throw std::runtime_error(std::string("bench device") + kWhy);
}

int run_bench_graph(const bench_options &options, const output &) {
  (void)select_cases(options.cases, all_graph_cases());
  throw std::runtime_error(std::string("bench graph") + kWhy);
}

int run_demo_on_gpu(const demo_options &, const output &) {
  throw std::runtime_error(std::string("demo --device gpu") + kWhy);
}

#ifdef CUDAQ_TOOL_HAS_QEC
int run_bench_pipeline(const bench_options &, const output &) {
  throw std::runtime_error(std::string("bench pipeline") + kWhy);
}

std::unique_ptr<gpu_stage> make_gpu_stage(const pipeline_options &, const pipeline_shots &, int, std::size_t) {
  throw std::runtime_error(std::string("pipeline --device gpu") + kWhy);
}
#endif

} // namespace cudaq::realtime::tools
