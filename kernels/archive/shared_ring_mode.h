// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cudaq/realtime/detail/kernel_abi/device_params.h"

namespace cudaq::realtime::detail {

/// What cudaq_dispatch_kernel_set_shared_ring_mode has set, for launches without a dispatcher.
ring_sharing default_sharing();

} // namespace cudaq::realtime::detail
