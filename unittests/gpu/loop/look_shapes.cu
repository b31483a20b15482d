// SPDX-License-Identifier: Apache-2.0
// The library's loop with two of its constants replaced by those of the transport, for this file only: the loop's own
// headers stay as they are.
#include "unittests/gpu/loop/look_shapes.h"

#include "cudaq/realtime/detail/loop/loop_control.h"
#define kSectorFlags Transport::kFlags
#define kClockPolls Transport::kLooks
#include "cudaq/realtime/detail/loop/dispatch_loop.cuh"
#undef kSectorFlags
#undef kClockPolls

#include "cudaq/realtime/daemon/dispatcher/dispatch_kernel.cuh"

namespace cudaq::realtime::test {
namespace {

template <std::uint32_t Flags, std::uint32_t Looks, detail::thread_scope Scope>
struct shaped_ring {
  struct transport : detail::ring_transport<detail::warp_thread_group, Scope> {
    using base = detail::ring_transport<detail::warp_thread_group, Scope>;
    using base::base;
    static constexpr std::uint32_t kFlags = Flags, kLooks = Looks;
  };
  __device__ static transport open(const detail::dispatch_params &p, std::uint8_t *) { return {p.ring, p.first_slot}; }
};

template <std::uint32_t Flags, std::uint32_t Looks, detail::thread_scope Scope>
__global__ void __launch_bounds__(detail::kMostThreads, 1)
    shaped_kernel(const __grid_constant__ detail::dispatch_params p) {
  extern __shared__ __align__(128) std::uint8_t cudaq_dispatch_memory[];
  detail::serve_in_order<RegularKernel, table_handlers, shaped_ring<Flags, Looks, Scope>>(p, cudaq_dispatch_memory);
}

template <std::uint32_t Flags, std::uint32_t Looks>
cudaError_t launch_shape(const cudaq_dispatch_launch_params_t *params) {
  cudaq_dispatch_launch_state_t *state = nullptr;
  if (const cudaError_t refused = detail::state_of(params->state, state); refused != cudaSuccess)
    return refused;
  const detail::launch_report report{state};
  if (state == nullptr || state->params.any_order || state->params.sharing != detail::ring_sharing::alone)
    return report(cudaErrorNotSupported, "a shape serves a dispatcher with FIFO ordering and a ring of its own");
  detail::dispatch_params copy = state->params;
  void *arguments[] = {&copy};
  const auto kernel = copy.device_scope ? shaped_kernel<Flags, Looks, detail::thread_scope_device>
                                        : shaped_kernel<Flags, Looks, detail::thread_scope_system>;
  const auto *symbol = reinterpret_cast<const void *>(kernel);
  const std::uint32_t memory = detail::kernel_memory(copy.ring.slot_size, 1);
  if (const cudaError_t refused =
          cudaFuncSetAttribute(symbol, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(memory)))
    return report(refused, "%u bytes of shared memory", memory);
  report.will_hold(1);
  return report(cudaLaunchKernel(symbol, dim3(1), dim3(params->threads_per_block), arguments, memory, params->stream),
                "launch of %u threads failed", params->threads_per_block);
}

template <std::uint32_t Flags, std::uint32_t Looks>
constexpr look_shape shape() {
  return {Flags, Looks, &launch_shape<Flags, Looks>};
}

} // namespace

std::span<const look_shape> look_shapes() {
  static constexpr look_shape kShapes[] = {shape<4, 8>(), shape<1, 8>(),  shape<16, 8>(), shape<32, 8>(),
                                           shape<4, 4>(), shape<4, 16>(), shape<4, 32>(), shape<16, 32>()};
  return kShapes;
}

} // namespace cudaq::realtime::test
