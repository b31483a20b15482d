// SPDX-License-Identifier: Apache-2.0
// A transport for the unified kernel: a ring, which a peer on the GPU or on the CPU fills. A provider for a NIC has the
// same three functions, over a receive and a send queue. They are also compiled for the CPU, where a race detector
// checks them.
#pragma once

#include <cuda/atomic>
#include <cudaq/realtime/daemon/dispatcher/dispatch_kernel_launch.h>
#if !defined(__CUDA_ARCH__)
#include <thread>
#endif

namespace example {

/// transport_ctx: in memory of the device.
struct ring_hooks_context {
  cudaq_ringbuffer_t ring; ///< the views of the kernel's side
  std::uint32_t num_slots;
  std::uint32_t next; ///< slot of the next request; a later start goes on there
};

/// In the memory that attach gets.
struct ring_hooks_session {
  ring_hooks_context context; ///< a copy, which is faster to read
  ring_hooks_context *original;
  volatile int *shutdown;
};
static_assert(sizeof(ring_hooks_session) <= 256 && alignof(ring_hooks_session) <= 16);

template <class T>
CUDAQ_REALTIME_HOST_DEVICE cuda::atomic_ref<T, cuda::thread_scope_system> shared(volatile T &word) {
  return cuda::atomic_ref<T, cuda::thread_scope_system>(const_cast<T &>(word));
}

CUDAQ_REALTIME_HOST_DEVICE inline void *ring_attach(void *storage, void *ctx, volatile int *shutdown) {
  auto *const session = static_cast<ring_hooks_session *>(storage);
  session->original = static_cast<ring_hooks_context *>(ctx);
  session->context = *session->original;
  session->shutdown = shutdown;
  return session->context.num_slots == 0 ? nullptr : session;
}

/// False: shutdown. The flag may be across the bus, so it is read at every 256th poll only.
CUDAQ_REALTIME_HOST_DEVICE inline bool ring_poll(void *session, void **request, void **response) {
  auto &s = *static_cast<ring_hooks_session *>(session);
  const cudaq_ringbuffer_t &ring = s.context.ring;
  const std::uint32_t slot = s.context.next;
  for (std::uint32_t polls = 1; shared(ring.rx_flags[slot]).load(cuda::memory_order_acquire) == 0; ++polls) {
    if (polls % 256 == 0 && shared(*s.shutdown).load(cuda::memory_order_relaxed) != 0)
      return false;
#if !defined(__CUDA_ARCH__)
    std::this_thread::yield();
#endif
  }
  *request = ring.rx_data + slot * ring.rx_stride_sz;
  *response = ring.tx_data + slot * ring.tx_stride_sz;
  s.original->next = s.context.next = slot + 1 == s.context.num_slots ? 0 : slot + 1;
  return true;
}

/// First the answer, then the request's flag: in the other order the peer would see a free slot for a moment.
CUDAQ_REALTIME_HOST_DEVICE inline void ring_publish(void *session, void *response) {
  const cudaq_ringbuffer_t &ring = static_cast<ring_hooks_session *>(session)->context.ring;
  const std::size_t slot =
      static_cast<std::size_t>(static_cast<std::uint8_t *>(response) - ring.tx_data) / ring.tx_stride_sz;
  shared(ring.tx_flags[slot]).store(reinterpret_cast<std::uint64_t>(response), cuda::memory_order_release);
  shared(ring.rx_flags[slot]).store(0, cuda::memory_order_release);
}

} // namespace example
