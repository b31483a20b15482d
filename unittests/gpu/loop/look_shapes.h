// SPDX-License-Identifier: Apache-2.0
// Regular dispatch kernels that look at the flags of their ring in other ways than the library's. Plain C++.
#pragma once

#include "cudaq/realtime/daemon/dispatcher/dispatch_kernel_launch.h"

#include <cstdint>
#include <span>

namespace cudaq::realtime::test {

/// `flags`: most flags that a look reads while no request is there. `looks`: empty looks in a row, before the loop does
/// anything else.
struct look_shape {
  std::uint32_t flags, looks;
  cudaq_dispatch_launch_fn_v2_t launch; ///< for a dispatcher with FIFO ordering that has its ring alone
};

/// Each shape once; the library's is the first.
std::span<const look_shape> look_shapes();

} // namespace cudaq::realtime::test
