// SPDX-License-Identifier: Apache-2.0
// The lines of `info` about the GPUs of a machine.
#pragma once

#include "tools/info/cuda_probe.h"

namespace cudaq::realtime::tools {

/// One part of the environment. If it is missing: `gives` is what it would allow, and `get` is how to get it.
struct piece {
  std::string name;
  bool present = false;
  std::string detail;
  std::string gives;
  std::string get;
};

piece driver_piece(const cuda_probe &probe);
piece devices_piece(const cuda_probe &probe);
/// What only nvcc compiles.
piece kernels_piece();
/// Rings whose requests lie in GPU memory.
piece requests_piece(const cuda_probe &probe);

} // namespace cudaq::realtime::tools
