// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cudaq/realtime/detail/kernel_abi/device_params.h"

namespace cudaq::realtime::detail {

/// The setting of cudaq_dispatch_kernel_set_shared_ring_mode, for launches without a dispatcher.
ring_sharing default_sharing();

} // namespace cudaq::realtime::detail
