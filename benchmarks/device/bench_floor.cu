// SPDX-License-Identifier: Apache-2.0
// The floor kernels of `device`, and the kernel that acts as the network interface.
#include "benchmarks/device/bench_poll.cuh"
#include "tools/common/random_words.h"

#include "cudaq/realtime/daemon/dispatcher/kernel_types.h"

namespace cudaq::realtime::tools {
namespace {

constexpr auto kSystem = cuda::thread_scope_system;
constexpr auto kDevice = cuda::thread_scope_device;
constexpr std::uint32_t kFrameVectors = 2; ///< 16-byte words of a frame with 8 bytes of payload

/// One block; it serves the slots in ring order. Counting: flags count up and are not cleared. Frame: the slots are
/// read and written. RxFirst: for a producer that looks at tx alone; a late rx = 0 would wipe out its next signal.
template <bool Counting, bool Frame, bool RxFirst = false>
__global__ void __launch_bounds__(1024)
    in_order_floor_kernel(raw_ring ring, std::uint32_t vectors, kernel_control control) {
  const bool leads = threadIdx.x == 0;
  kernel_watch watch(control);
  std::uint32_t slot = 0;
  std::uint64_t lap = 1;
  const auto ready = [&lap](std::uint64_t flag) { return Counting ? flag == lap : flag != 0; };
  for (;;) {
    bool go = leads && watch.wait<kSystem>(ring.rx_flags[slot], ready);
    if (Frame) {
      go = __syncthreads_or(go);
      if (go)
        answer_frame<5>(rx_frame(ring, slot), tx_frame(ring, slot), vectors); // 1024 threads: 64 KiB and a header
      __syncthreads();
    }
    if (!go)
      break;
    if (leads) {
      if (RxFirst)
        store_flag<kSystem>(ring.rx_flags[slot], 0);
      store_flag<kSystem>(ring.tx_flags[slot], Counting ? lap : reinterpret_cast<std::uint64_t>(tx_frame(ring, slot)));
      if (!Counting && !RxFirst)
        store_flag<kSystem>(ring.rx_flags[slot], 0);
    }
    slot = slot + 1 == ring.slots ? 0 : slot + 1;
    lap += slot == 0 ? 1 : 0;
  }
  if (leads)
    watch.report(0, 0);
}

/// Thread i serves slot i: 32 bytes in, 32 bytes out.
__global__ void lane_per_slot_floor_kernel(raw_ring ring, kernel_control control) {
  const std::uint32_t slot = blockIdx.x * blockDim.x + threadIdx.x;
  if (slot >= ring.slots)
    return;
  kernel_watch watch(control);
  const uint4 *const rx = rx_frame(ring, slot);
  uint4 *const tx = tx_frame(ring, slot);
  for (bool serving = true; serving;) {
    if (load_flag<kSystem>(ring.rx_flags[slot]) != 0) {
      const uint4 head = rx[0], rest = rx[1];
      tx[0] = as_response(head);
      tx[1] = rest;
      store_flag<kSystem>(ring.tx_flags[slot], reinterpret_cast<std::uint64_t>(tx));
      store_flag<kSystem>(ring.rx_flags[slot], 0);
      watch.worked();
    } else {
      serving = !watch.idle();
    }
    __syncwarp(); // so that all lanes poll together again
  }
  if (slot == 0)
    watch.report(0, 0);
}

__device__ std::uint64_t join(std::uint32_t low, std::uint32_t high) { return std::uint64_t{high} << 32 | low; }

/// One thread. The tx flag holds a word of the slot, so it cannot be sent before the slot is read. Frames: the answer
/// is a frame, for which the release of the flag waits.
template <bool Frames, cuda::thread_scope Scope = kDevice>
__global__ void ping_pong_floor_kernel(raw_ring ring, kernel_control control) {
  kernel_watch watch(control);
  std::uint32_t slot = 0;
  while (watch.wait<Scope>(ring.rx_flags[slot], [](std::uint64_t flag) { return flag != 0; })) {
    const uint4 rest = rx_frame(ring, slot)[1];
    if (Frames) {
      uint4 *const tx = tx_frame(ring, slot);
      tx[0] = as_response(rx_frame(ring, slot)[0]);
      tx[1] = rest;
      store_flag<Scope>(ring.tx_flags[slot], reinterpret_cast<std::uint64_t>(tx));
    } else {
      store_flag<Scope>(ring.tx_flags[slot], join(rest.z, rest.w) | 1);
    }
    store_flag<Scope>(ring.rx_flags[slot], 0);
    slot = slot + 1 == ring.slots ? 0 : slot + 1;
  }
  watch.report(0, 0);
}

template <bool PingPong>
__device__ bool reply_is_right(const raw_ring &ring, std::uint32_t slot, std::uint64_t flag, std::uint64_t n,
                               std::uint64_t payload) {
  if (PingPong)
    return flag == (payload | 1);
  const uint4 head = tx_frame(ring, slot)[0], rest = tx_frame(ring, slot)[1];
  return head.x == CUDAQ_RPC_MAGIC_RESPONSE && head.y == 0 && head.z == sizeof payload &&
         head.w == static_cast<std::uint32_t>(n) && join(rest.x, rest.y) == n && join(rest.z, rest.w) == payload;
}

template <bool PingPong, cuda::thread_scope Scope = kDevice>
__global__ void producer_kernel(raw_ring ring, producer_plan plan, kernel_control control) {
  const auto zero = [](std::uint64_t flag) { return flag == 0; };
  kernel_watch watch(control);
  std::uint32_t slot = 0;
  std::uint64_t n = 0, wrong = 0;
  for (; n < plan.warm_up + plan.exchanges; ++n) {
    if (!watch.wait<Scope>(ring.rx_flags[slot], zero) || !watch.wait<Scope>(ring.tx_flags[slot], zero))
      break;
    const std::uint64_t payload = random_word(plan.seed, n);
    uint4 *const rx = rx_frame(ring, slot);
    rx[0] = {CUDAQ_RPC_MAGIC_REQUEST, plan.function_id, sizeof payload, static_cast<std::uint32_t>(n)};
    rx[1] = {static_cast<std::uint32_t>(n), static_cast<std::uint32_t>(n >> 32), static_cast<std::uint32_t>(payload),
             static_cast<std::uint32_t>(payload >> 32)};
    std::uint64_t reply = 0;
    const auto answered = [&reply](std::uint64_t flag) { return (reply = flag) != 0; };
    const long long t0 = clock64();
    store_flag<Scope>(ring.rx_flags[slot], reinterpret_cast<std::uint64_t>(rx));
    if (!watch.wait<Scope>(ring.tx_flags[slot], answered))
      break;
    const long long t1 = clock64();
    wrong += reply_is_right<PingPong>(ring, slot, reply, n, payload) ? 0 : 1;
    if (n >= plan.warm_up)
      plan.cycles[n - plan.warm_up] = static_cast<std::uint32_t>(t1 - t0);
    store_flag<Scope>(ring.tx_flags[slot], 0);
    slot = slot + 1 == ring.slots ? 0 : slot + 1;
  }
  watch.report(n, wrong);
}

} // namespace

cudaError_t launch_floor(const floor_plan &plan, const cudaq_ringbuffer_t &ring, const kernel_control &control,
                         cudaStream_t stream) {
  static_assert(CUDAQ_RPC_HEADER_SIZE + 8 == kFrameVectors * sizeof(uint4));
  const raw_ring raw = raw_ring::for_device(ring, plan.slots);
  const std::uint32_t vectors = plan.frame_bytes / sizeof(uint4);
  switch (plan.kind) {
  case floor_kind::in_order:
    in_order_floor_kernel<false, true><<<1, plan.threads, 0, stream>>>(raw, vectors, control);
    break;
  case floor_kind::in_order_rx_first:
    in_order_floor_kernel<false, true, true><<<1, plan.threads, 0, stream>>>(raw, vectors, control);
    break;
  case floor_kind::in_order_counting:
    in_order_floor_kernel<true, true><<<1, plan.threads, 0, stream>>>(raw, vectors, control);
    break;
  case floor_kind::flag_only:
    in_order_floor_kernel<true, false><<<1, 1, 0, stream>>>(raw, vectors, control);
    break;
  case floor_kind::lane_per_slot:
    lane_per_slot_floor_kernel<<<plan.blocks, plan.threads, 0, stream>>>(raw, control);
    break;
  case floor_kind::device_ping_pong:
    ping_pong_floor_kernel<false><<<1, 1, 0, stream>>>(raw, control);
    break;
  case floor_kind::device_frames:
    ping_pong_floor_kernel<true><<<1, 1, 0, stream>>>(raw, control);
    break;
  case floor_kind::system_frames:
    ping_pong_floor_kernel<true, kSystem><<<1, 1, 0, stream>>>(raw, control);
    break;
  }
  return cudaGetLastError();
}

cudaError_t launch_producer(const producer_plan &plan, const cudaq_ringbuffer_t &ring, const kernel_control &control,
                            cudaStream_t stream) {
  const raw_ring raw = raw_ring::for_device(ring, plan.slots);
  if (plan.ping_pong)
    producer_kernel<true><<<1, 1, 0, stream>>>(raw, plan, control);
  else if (plan.system_scope)
    producer_kernel<false, kSystem><<<1, 1, 0, stream>>>(raw, plan, control);
  else
    producer_kernel<false><<<1, 1, 0, stream>>>(raw, plan, control);
  return cudaGetLastError();
}

cudaError_t preload_bench_floors() {
  return preload_kernels(in_order_floor_kernel<false, true>, in_order_floor_kernel<false, true, true>,
                         in_order_floor_kernel<true, true>, in_order_floor_kernel<true, false>,
                         lane_per_slot_floor_kernel, ping_pong_floor_kernel<false>, ping_pong_floor_kernel<true>,
                         ping_pong_floor_kernel<true, kSystem>, producer_kernel<true>, producer_kernel<false>,
                         producer_kernel<false, kSystem>);
}

} // namespace cudaq::realtime::tools
