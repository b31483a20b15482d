// SPDX-License-Identifier: Apache-2.0
// The library's loop with a transport that reads the clock between the stages of a request.
#include "unittests/gpu/loop/launch_with_rings.cuh"
#include "unittests/gpu/loop/look_shapes.h"

namespace cudaq::realtime::test {
namespace {

__device__ stage_cycles recorded;

/// Records the requests that are served alone, and those of a look with several. The sums are stored while the next
/// request is read, and after a batch.
template <class Base>
struct staged_transport : Base {
  using Base::Base;
  using typename Base::message;

  __device__ bool poll(std::uint32_t k, message &m) {
    const bool there = Base::poll(k, m);
    seen_ = clock64();
    return there;
  }
  __device__ typename Base::frames front(const message &m) {
    several_ = false;
    returned_ = clock64(); // the last call comes after the handler
    return Base::front(m);
  }
  __device__ std::uint32_t precompute_next() {
    issued_ = clock64();
    if (detail::warp_thread_group::lane() == 0)
      recorded = sums_;
    return Base::precompute_next();
  }
  __device__ void prepare(const message &m) {
    several_ = true;
    Base::prepare(m);
  }
  /// Called before each handler.
  __device__ std::uint32_t number(const message &m) const {
    const long long now = clock64();
    if (several_ && calls_++ == 0)
      first_call_ = now;
    last_call_ = now;
    return Base::number(m);
  }
  __device__ void send(const message &m) {
    const long long begun = clock64();
    Base::send(m);
    if (detail::warp_thread_group::lane() != 0 || calls_ == 0)
      return;
    sums_.batched += calls_;
    ++sums_.batches;
    sums_.to_first_call += first_call_ - seen_;
    sums_.to_last_call += last_call_ - first_call_;
    sums_.to_publication += begun - last_call_;
    sums_.to_published += clock64() - begun;
    calls_ = 0;
    seen_ = clock64(); // a batch may be published in parts
    recorded = sums_;
  }
  __device__ void send_front(const message &m) {
    const long long written = clock64();
    Base::send_front(m);
    ++sums_.requests;
    sums_.to_fetch += issued_ - seen_;
    sums_.to_handler_end += returned_ - issued_;
    sums_.to_frame_stored += written - returned_;
    sums_.to_given_back += clock64() - written;
  }

private:
  long long seen_ = 0, issued_ = 0, returned_ = 0;
  mutable long long first_call_ = 0, last_call_ = 0; // number() is const
  mutable std::uint32_t calls_ = 0;
  bool several_ = false; ///< of a look with several requests
  stage_cycles sums_{};
};

template <class Base>
struct staged_ring {
  using transport = staged_transport<Base>;
  __device__ static transport open(const detail::dispatch_params &p, std::uint8_t *) { return {p.ring, p.first_slot}; }
};

cudaError_t launch_staged(const cudaq_dispatch_launch_params_t *params) {
  return launch_with_rings<staged_ring<detail::posted_ring_transport<detail::warp_thread_group>>,
                           staged_ring<detail::ring_transport<detail::warp_thread_group, detail::thread_scope_device>>>(
      *params);
}

} // namespace

const look_shape &staged_loop() {
  static constexpr look_shape kShape{4, 8, &launch_staged};
  return kShape;
}

cudaError_t read_stages(stage_cycles &out) { return cudaMemcpyFromSymbol(&out, recorded, sizeof out); }

} // namespace cudaq::realtime::test
