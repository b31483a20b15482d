// SPDX-License-Identifier: Apache-2.0
// The main job: recorded surface-code shots through a ring, a host dispatcher and a decoder, every answer checked.
#pragma once

#include "tools/common/machine.h"
#include "tools/common/report.h"
#include "tools/services/ring_service.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace cudaq::qec::realtime {
struct shot_set;
}

namespace cudaq::realtime::tools {

struct demo_options {
  std::optional<unsigned> distance; ///< none: 13, or 3 without PyMatching
  std::string noise = "0.005";
  std::uint64_t shots = 20000;      ///< per pass
  double duration_s = 0;            ///< > 0: per pass, instead of shots
  std::optional<double> cadence_us; ///< none: two passes; 0: as fast as it goes; else one shot each so often
  std::uint32_t slots = 64;
  std::uint32_t workers = 0;
  thread_cores cores;
  unsigned client_threads = 0; ///< 0: decide by the number of cores
  std::string wait = "auto";
  bool in_place = false;
  std::string decoder = "auto";
  std::string device = "cpu"; ///< or "gpu": a kernel decodes, with the lookup decoder
  int gpu = 0;
  std::string data_folder;
  std::uint64_t seed = 0;
  double timeout_s = 10;
};

/// Who decodes instead of the host dispatcher.
struct decode_place {
  std::string text; ///< "by a kernel on NVIDIA H200"
  /// A dispatcher that serves kDecodeFunctionId, on a ring with host views.
  std::function<std::unique_ptr<ring_service>(const cudaq_handler_schema_t &, std::uint32_t slot_bytes)> make;
  std::function<void(const cudaq::qec::realtime::shot_set &)> prepare; ///< once, before the first make
};

/// Returns an exit_code. Throws usage_error and api_error. `place`: NULL for the host dispatcher.
int run_demo(const demo_options &options, const output &out, const decode_place *place = nullptr);

/// --device gpu. Throws, besides, std::runtime_error where there is no GPU or where this build has no device kernels.
int run_demo_on_gpu(const demo_options &options, const output &out);

} // namespace cudaq::realtime::tools
