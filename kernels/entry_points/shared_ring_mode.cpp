// SPDX-License-Identifier: Apache-2.0
// The archive's only process-wide setting, as the specification requires. Dispatchers do not read it.
#include "kernels/entry_points/shared_ring_mode.h"

#include "cudaq/realtime/daemon/dispatcher/cudaq_realtime.h"
#include "cudaq/realtime/detail/base/shared_word.h"

namespace cudaq::realtime::detail {

namespace {
shared_word<std::uint32_t> direct_launches_share;
} // namespace

ring_sharing default_sharing() {
  return direct_launches_share.load() != 0 ? ring_sharing::left_in_place : ring_sharing::alone;
}

} // namespace cudaq::realtime::detail

extern "C" cudaError_t cudaq_dispatch_kernel_set_shared_ring_mode(uint32_t enabled) {
  cudaq::realtime::detail::direct_launches_share.store(enabled != 0);
  return cudaSuccess;
}
