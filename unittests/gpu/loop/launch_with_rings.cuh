// SPDX-License-Identifier: Apache-2.0
// Launches a regular kernel over rings of the program, as a dispatcher would launch the archive's.
#pragma once

#include "cudaq/realtime/daemon/dispatcher/dispatch_kernel.cuh"

namespace cudaq::realtime::test {

template <class Ring>
static __global__ void __launch_bounds__(detail::kMaxThreads, 1)
    kernel_over_ring(const __grid_constant__ detail::dispatch_params p) {
  extern __shared__ __align__(128) std::uint8_t cudaq_dispatch_memory[];
  detail::serve_in_order<RegularKernel, table_handlers, Ring>(p, cudaq_dispatch_memory);
}

/// Posted: with requests in device memory. Near: all threads that touch the ring run on the device.
template <class Posted, class Near>
cudaError_t launch_with_rings(const cudaq_dispatch_launch_params_t &params) {
  cudaq_dispatch_launch_state_t *state = nullptr;
  if (const cudaError_t refused = detail::state_of(params.state, state); refused != cudaSuccess)
    return refused;
  const detail::launch_report report{state};
  const bool alone =
      state != nullptr && !state->params.any_order && state->params.sharing == detail::ring_sharing::alone;
  const detail::ring_access access = alone ? detail::access_of(state->params) : detail::ring_access::system_scope;
  if (access == detail::ring_access::system_scope)
    return report(cudaErrorNotSupported, "a shape serves a dispatcher with FIFO ordering and a ring of its own, with "
                                         "requests in device memory or peers on the same device");
  detail::dispatch_params copy = state->params;
  void *arguments[] = {&copy};
  const auto kernel = access == detail::ring_access::posted ? kernel_over_ring<Posted> : kernel_over_ring<Near>;
  const auto *symbol = reinterpret_cast<const void *>(kernel);
  const std::uint32_t memory = detail::kernel_memory(copy.ring.slot_size, detail::answer_staging::in_order);
  if (const cudaError_t refused =
          cudaFuncSetAttribute(symbol, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(memory)))
    return report(refused, "%u bytes of shared memory", memory);
  report.will_hold(1);
  return report(cudaLaunchKernel(symbol, dim3(1), dim3(params.threads_per_block), arguments, memory, params.stream),
                "launch of %u threads failed", params.threads_per_block);
}

} // namespace cudaq::realtime::test
