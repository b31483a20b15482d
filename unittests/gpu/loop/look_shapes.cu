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

#include "unittests/gpu/loop/launch_with_rings.cuh"

namespace cudaq::realtime::test {
namespace {

template <std::uint32_t Flags, std::uint32_t Looks, class Base>
struct shaped_ring {
  struct transport : Base {
    using Base::Base;
    static constexpr std::uint32_t kFlags = Flags, kLooks = Looks;
  };
  __device__ static transport open(const detail::dispatch_params &p, std::uint8_t *) { return {p.ring, p.first_slot}; }
};

template <std::uint32_t Flags, std::uint32_t Looks>
cudaError_t launch_shape(const cudaq_dispatch_launch_params_t *params) {
  using group = detail::warp_thread_group;
  return launch_with_rings<shaped_ring<Flags, Looks, detail::posted_ring_transport<group>>,
                           shaped_ring<Flags, Looks, detail::ring_transport<group, detail::thread_scope_device>>>(
      *params);
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
