// SPDX-License-Identifier: Apache-2.0
// The demo: sends recorded surface-code shots through a ring, a dispatcher and a decoder, and checks every answer.
//
// Threads of one pass:
//
//   thread            started by          owns                              waits                    ends
//   main              the system          the passes, the progress display  sleeps 20 ms at a time   with the program
//   sender            client_threads      shot_sender: fills the slots      spins, then yields       after all shots
//   collector         client_threads      answer_collector: checks answers  spins, then yields       after all answers
//   dispatcher, pool  ring_service.start  the slots while they are served   options.wait_policy      ring_service.stop
//
// With --client-threads 1 one thread is sender and collector. Sender and collector also end at a stall: no progress for
// --timeout, or an exception of the other one. With --device gpu a kernel takes the place of the dispatcher's threads.
#pragma once

#include "tools/common/machine.h"
#include "tools/common/report.h"
#include "tools/services/ring_service.h"
#include "tools/shots/own_data.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace cudaq::realtime::tools {

struct demo_options {
  std::string config; ///< "": d13, or d3 without PyMatching or with the lookup decoder
  std::string noise = "0.005";
  std::uint64_t shots = 20000; ///< in each pass
  double duration_s = 0;       ///< > 0: duration of each pass, instead of shots
  std::optional<double> rate;  ///< shots per second. Not set: two passes; 0: as fast as possible
  std::uint32_t slots = 64;
  int workers = 0; ///< kAutoWorkers: one for each core that is left
  thread_cores cores;
  unsigned client_threads = 0; ///< 0: the number of cores decides
  std::string wait = "auto";
  bool in_place = false;
  std::string decoder = "auto";
  std::string device = "cpu"; ///< "cpu", or "gpu": a kernel decodes with the lookup decoder
  int gpu = 0;
  std::string data_folder;
  own_data data; ///< instead of a named set
  std::uint64_t seed = 0;
  double timeout_s = 10;
};

/// A dispatcher that decodes instead of the host dispatcher.
struct decode_place {
  std::string text; ///< "by a kernel on GPU 0 (NVIDIA H200)"
  /// Makes a dispatcher that serves kDecodeFunctionId, with a ring that the host can read and write.
  std::function<std::unique_ptr<ring_service>(const cudaq_handler_schema_t &, std::uint32_t slot_bytes)> make;
  std::function<void(const cudaq::qec::realtime::shot_set &)> prepare; ///< called once, before the first make
};

/// Returns an exit_code. Throws usage_error and api_error. `place`: NULL means the host dispatcher.
int run_demo(const demo_options &options, const output &out, const decode_place *place = nullptr);

/// The demo with --device gpu. Also throws std::runtime_error if there is no GPU, or if this build has no device
/// kernels.
int run_demo_on_gpu(const demo_options &options, const output &out);

} // namespace cudaq::realtime::tools
