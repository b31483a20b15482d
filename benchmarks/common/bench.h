// SPDX-License-Identifier: Apache-2.0
// The benchmarks. `device` and `graph` measure every case and its floor in one run; floors and
// cases alternate.
//
// Threads of the program, and kernels that act like threads:
//
//   who                started by                 owns                          waits           ends
//   measuring thread   is the main thread         the run; in a closed loop     polls           with the program
//                                                 the client side of the ring
//   sender, collector  exchange_full_ring         sending, collecting           polls           after the exchanges
//   any-order clients  exchange_any_order         each a part of the slots      polls           after the exchanges
//   dispatcher         device_service: a kernel,  the server side of the ring   by its options  ring_service.stop
//                      graph_service: a thread
//   floor, producer    controlled_kernel          like dispatcher, like client  polls           its stop, or at a
//                                                                                               deadline
//   pipeline threads   `pipeline`                 see tools/pipeline/pipeline_run.h
//   host dispatcher    `idle`                     the server side of the ring   by its options  ring_service.stop
//
// An exception in one client thread ends the other client threads too; measured_threads::join throws it again.
#pragma once

#include "tools/common/measured_case.h"
#include "tools/common/report.h"

#include <string>
#include <vector>

namespace cudaq::realtime::tools {

struct bench_options : measuring_options {
  std::vector<std::string> cases; ///< names, or their first words; empty: all
  bool curves = false;            ///< also measure series: cost by payload, slots, functions, blocks, dispatchers
  int gpu = 0;
  std::string data_folder; ///< `bench pipeline`: folder of the recorded shots
};

/// The device path. Returns an exit_code. Throws usage_error and api_error, and std::runtime_error if there is no GPU
/// or if this build has no device kernels.
int run_bench_device(const bench_options &options, const output &out);
/// The same for graphs: as workers of the host path, and launched by a scheduler on the GPU.
int run_bench_graph(const bench_options &options, const output &out);
/// The time that the QEC pipeline adds to its engine and its matcher. Without a GPU it measures the matcher's part
/// only.
int run_bench_pipeline(const bench_options &options, const output &out);

/// One request and a stop of an idle dispatcher on the host path, with rings of 1 to 2^20 slots. Needs no GPU. Uses
/// rounds, quick and timeout_s of the options.
int run_bench_idle(const bench_options &options, const output &out);

} // namespace cudaq::realtime::tools
