// SPDX-License-Identifier: Apache-2.0
// Offsets of the pointers in a kernel's argument. kernel_accesses.py reads these lines, and includes them in the code
// that it compiles, because PTX has offsets and no names.
#pragma once

#include "cudaq/realtime/detail/kernel_abi/device_params.h"

#include <cstddef>

namespace cudaq::realtime::detail {

static_assert(offsetof(dispatch_params, ring.rx_flags) == 0);
static_assert(offsetof(dispatch_params, ring.tx_flags) == 8);
static_assert(offsetof(dispatch_params, ring.rx_data) == 16);
static_assert(offsetof(dispatch_params, library_shutdown) == 104);
static_assert(offsetof(dispatch_params, caller_shutdown) == 112);
static_assert(offsetof(dispatch_params, caller_stats) == 120);
static_assert(offsetof(dispatch_params, reports) == 128);
static_assert(offsetof(dispatch_params, command) == 136);
static_assert(offsetof(dispatch_params, inbox.entries) == 168);
static_assert(offsetof(dispatch_params, inbox.answers) == 176);

} // namespace cudaq::realtime::detail
