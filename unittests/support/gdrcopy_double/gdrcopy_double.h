// SPDX-License-Identifier: Apache-2.0
// In place of GDRCopy's library, for machines without its kernel module: the functions of its public interface
// (gdrapi.h, version 2) that lib/gpu_memory calls, on the devices of fake_cuda.h, whose memory the CPU has at the same
// address. It checks what the module checks, and counts what is open. It allocates nothing.
#pragma once

#include <cstddef>

namespace cudaq::realtime::test {

struct gdrcopy_double {
  const char *fails = "";   ///< the function that fails from now on: "gdr_map"
  const char *mistake = ""; ///< the last call that the module would refuse, or that leaves something open
  int handles = 0, pins = 0, maps = 0;
  int unmaps = 0, unpins = 0, closes = 0; ///< calls, also those that fail
  std::size_t pinned_bytes = 0;           ///< of the last pin
  unsigned long pinned_at = 0;
};

/// The library exports the only one by the function gdrcopy_double_state.
using gdrcopy_double_function = gdrcopy_double *(*)();

} // namespace cudaq::realtime::test
