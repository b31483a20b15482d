// SPDX-License-Identifier: Apache-2.0
// The graph scheduler's kernel: the dispatch loop on its state, in executions of limited length. It is the one node of
// a device graph; several of these take turns (kernels/graphs/graph_rotation.h).
//
//   wait for the token -> state into shared memory -> warp 0: the loop; warp 1: the poller
//   -> state back -> token to the successor -> relaunch after everything that this execution has launched
#pragma once

#include "cudaq/realtime/detail/loop/dispatch_body.cuh"
#include "kernels/graphs/graph_handlers.h"

namespace cudaq::realtime::detail {

inline constexpr std::uint32_t kSchedulerThreads = 64;

struct device_launcher {
  __device__ static int launch(std::uint64_t exec) {
    return cudaGraphLaunch(reinterpret_cast<cudaGraphExec_t>(exec), cudaStreamGraphFireAndForget);
  }
  __device__ static int relaunch() { return cudaGraphLaunch(cudaGetCurrentGraphExec(), cudaStreamGraphTailLaunch); }
  __device__ static std::uint64_t now_ns() {
    std::uint64_t ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return ns;
  }
};

/// Shared memory beside that of the loop, in front of the image.
struct alignas(128) scheduler_block {
  graph_rotation::call said;
  std::uint32_t poller_ends;
};

CUDAQ_REALTIME_HOST_DEVICE constexpr std::uint32_t scheduler_memory(std::uint32_t slot_size, std::uint32_t image) {
  return round_line(kernel_memory(slot_size, 1)) + static_cast<std::uint32_t>(sizeof(scheduler_block)) + image;
}

__device__ inline void copy_image(std::uint8_t *to, const std::uint8_t *from, std::uint32_t bytes) {
  copy_bytes(to, from, bytes, true, threadIdx.x, kSchedulerThreads);
  __syncthreads();
}

/// Warp 0.
template <class Table, thread_scope Scope>
__device__ execution_result serve_execution(const graph_params &p, std::uint8_t *memory, const Table &table,
                                            const graph_state_view &view, const graph_rotation &rotation) {
  execution_result result;
  graph_scheduler_state<device_launcher> graphs(view, p.dispatch.ring);
  if (warp_thread_group::lane() == 0)
    graphs.begin_execution();
  __syncwarp();
  using handler_set = graph_handler_set<device_launcher>;
  using transport = graph_ring_transport<warp_thread_group, Scope>;
  const handler_set handlers(table, graphs, rotation, p.number, result);
  no_helpers<warp_thread_group> helpers;
  loop_workspace &workspace = make_workspace(memory, 0, p.dispatch.ring.slot_size);
  dispatch_loop<warp_thread_group, transport, handler_set, no_helpers<warp_thread_group>, false> loop(
      p.dispatch, 0, workspace, transport(p.dispatch.ring, view), handlers, helpers);
  loop.run(1);
  return result;
}

template <class Handlers, thread_scope Scope>
__device__ void serve_graphs(const graph_params &p, std::uint8_t *memory) {
  const auto table = Handlers::prepare(p.dispatch, reinterpret_cast<block_memory *>(memory)->index);
  std::uint8_t *const behind = memory + round_line(kernel_memory(p.dispatch.ring.slot_size, 1));
  auto &shared = *reinterpret_cast<scheduler_block *>(behind);
  auto &words = *reinterpret_cast<graph_rotation_words *>(p.block + p.layout.rotation);
  const graph_rotation rotation(words, p.dispatch.reports->fault, p.number, p.members);
  if (threadIdx.x == 0) {
    rotation.arrive();
    while ((shared.said = rotation.look()) == graph_rotation::call::wait) {
    }
    shared.poller_ends = 0;
  }
  __syncthreads();
  if (shared.said == graph_rotation::call::leave)
    return;
  const bool copied = p.layout.shared();
  std::uint8_t *const image = copied ? behind + sizeof(scheduler_block) : p.block;
  if (copied)
    copy_image(image, p.block, p.layout.image_bytes);
  const graph_state_view view(p.layout, image, p.block);
  execution_result result;
  if (threadIdx.x < warp_thread_group::kWidth) {
    result = serve_execution<decltype(table), Scope>(p, memory, table, view, rotation);
    if (threadIdx.x == 0)
      store_release<std::uint32_t, kGraphScope>(shared.poller_ends, std::uint32_t{1});
  } else {
    completion_poller<warp_thread_group, Scope> poller(view, p.dispatch.ring);
    while (warp_thread_group::ballot(load_relaxed(shared.poller_ends) != 0) == 0)
      poller.round();
  }
  __syncthreads();
  if (copied)
    copy_image(p.block, image, p.layout.image_bytes);
  if (threadIdx.x != 0)
    return;
  if (result.why == execution_end::stop)
    return rotation.end(result.gave_up ? result.stranded : 0);
  if (result.why == execution_end::relaunch) // which is on its way
    return rotation.set_free();
  rotation.pass(result.successor);
  if (device_launcher::relaunch() != 0)
    rotation.lose();
}

template <class Handlers, thread_scope Scope>
static __global__ void __launch_bounds__(kSchedulerThreads, 1)
    graph_scheduler_kernel(const __grid_constant__ graph_params p) {
  extern __shared__ __align__(128) std::uint8_t cudaq_dispatch_memory[];
  serve_graphs<Handlers, Scope>(p, cudaq_dispatch_memory);
}

/// Puts all schedulers on the device by one launch. None of them serves before all are launched.
static __global__ void graph_root_kernel(const cudaGraphExec_t *schedulers, std::uint32_t count,
                                         graph_rotation_words *words, std::uint32_t *fault) {
  const graph_rotation rotation(*words, *fault, 0, count);
  for (std::uint32_t k = 0; k < count; ++k)
    if (const cudaError_t error = cudaGraphLaunch(schedulers[k], cudaStreamGraphFireAndForget))
      return rotation.end(error);
  rotation.set_free();
}

} // namespace cudaq::realtime::detail
