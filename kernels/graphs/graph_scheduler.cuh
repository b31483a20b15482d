// SPDX-License-Identifier: Apache-2.0
// The kernel of the graph scheduler: the dispatch loop, in executions of limited length. It is the only node of a
// device graph. The runtime allows 120 launches in one execution of a graph, and a relaunch waits for all graphs that
// the execution has launched. So several such graphs ("members") take turns (kernels/graphs/graph_rotation.h):
//
//   wait for the token -> copy the state into shared memory -> warp 0: the loop; warp 1: the poller
//   -> copy the state back -> pass the token -> launch this graph again (tail launch) and end
//
// The next execution begins when this one and all graphs that it has launched have ended.
//
// Life of one request: slot 5 of a ring of 8, function id 0x50, routing key 9, request id 42. Table entries 0 and 1
// have this id and key: they are route 0, with pool 0 (instances 0 and 1). Queue 0 is that of function 0x50, for all
// its keys (with ANY ordering each route has its own queue). Contexts are GraphIOContexts. Member 0 of 8 holds the
// token. Functions without a class are members of graph_scheduler_state.
//
//   step       function                               words after it
//   before                                            cursor 5, held bit 5 = 0; execution 17, launches 40, accepted 0;
//                                                     pool 0: idle 0, 1; taken 0. Instance 0: idle, launch_number 2
//   signalled  producer: slot_ring::signal            rx_flags[5] = address of rx slot 5
//   seen       graph_ring_transport::poll             as before: held bit 5 is 0 and rx_flags[5] is not 0
//   fetched    dispatch_loop::serve_front             header and routing key are in the loop's workspace
//   judged     request_server::examine, judge         {serve, OK, route 0}; graph_handler_set::defers(0) is true
//   accepted   accept                                 held bit 5 = 1; queue 0 is empty, so start(5, 0) is called
//   context    start, launch                          instance 0 is the first idle one. Its context: rx_slot, tx_slot
//                                                     of slot 5, tx_flag = &done_words[0], tx_flag_value = 3
//   launched   launch, device_launcher::launch        instance 0: in_flight, launch_number 3, slot 5, execution 17
//   recorded   start, accept                          pool 0: idle 1; taken 1. launches 41, in_flight 1, accepted 1
//   passed     ring_transport::advance                cursor 6: the loop goes on while the graph runs
//   answered   the graph: publish_graph_response      response frame in tx slot 5, then done_words[0] = 3
//   completed  warp 1: completion_poller::completes   instance 0: completed; then state.completed + 1
//   published  warp 1: completion_poller::finish      tx_flags[5] = address of tx slot 5, then rx_flags[5] = 0,
//                                                     then held bit 5 = 0
//   freed      warp 0: collect, complete, put_back    instance 0: idle. pool 0: idle 1, 0; taken 0. in_flight 0,
//                                                     accepted 0
//
// "published" and "freed" run in parallel: instance 0 may get its next request before rx_flags[5] is cleared. With a
// GraphIOContextV2 the graph sets tx_flags[5] itself, and finish() leaves it alone.
//
// If no instance is idle at "accepted", start() returns `later`, and append() makes slot 5 the last job of queue 0
// (jobs[5] = {kNoGraph, 0}). The request stays in its slot; the cursor goes on. When an instance completes, put_back()
// lists queue 0 again; pump() and start_first() then launch the instance for slot 5 and take the job from the queue. A
// request is also appended if its queue is not empty: within a queue, launches keep the order in which requests were
// accepted. Their answers may overtake each other.
//
// The token, after the 100th launch of execution 17:
//
//   spent      graph_handler_set::execution_ends      launches 100; graph_rotation::successor finds presence[3] = there
//   left       note_execution, serve_graphs           cursor in the state; poller_ends = 1; image copied to the block
//   passed     graph_rotation::pass                   token 0 -> 3. Member 0 relaunches itself; it comes back when all
//                                                     graphs that it launched have ended
//   taken      member 3: graph_rotation::look         presence[3] = away; image copied into its shared memory
//   goes on    begin_execution                        execution 18, launches 0; same cursor
//
// The image holds the records of graphs in flight, so they move with the token. Their completion words are in device
// memory: the poller of member 3 completes them. If no member is there, member 0 goes on to 116 launches, waits until
// its own graphs have completed, relaunches itself and sets the token free.
//
// Threads. This room starts no host thread.
//
//   thread       started by                   owns                           waits                    ends
//   root kernel  scheduler_graphs::launch,    the token, until all members   does not wait            after set_free or
//                not with own_streams         are launched                                            after an error
//   warp 0 of a  the root, or launch on the   with the token: state, cursor, thread 0 polls the       execution_ends
//   member       member's stream; then its    launches                       token; then the loop
//                own relaunch                                                polls the rx flags
//   warp 1       with warp 0                  phase in_flight -> completed,  polls completion words   poller_ends = 1
//                                             publishing, clearing held bits
//   graph        warp 0                       its slot and context, until it as it likes              by itself
//                                             sets its completion word
//
// Streams (graph_launch.cuh): the caller's stream has the root graph, or member 0, and the event of the run's end. With
// own_streams each other member has a stream. own_ is for operations that must not wait for the caller's
// stream: the stop word, the copy of the fault word, freeing memory.
#pragma once

#include "cudaq/realtime/detail/loop/dispatch_body.cuh"
#include "kernels/graphs/completion_poller.h"
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

/// Shared memory of a scheduler: after that of the loop, before the image.
struct alignas(128) scheduler_block {
  graph_rotation::call call;
  std::uint32_t poller_ends;
};

CUDAQ_REALTIME_HOST_DEVICE constexpr std::uint32_t scheduler_memory(std::uint32_t slot_size, std::uint32_t image) {
  return round_line(kernel_memory(slot_size, answer_staging::one)) +
         static_cast<std::uint32_t>(sizeof(scheduler_block)) + image;
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
  if (warp_thread_group::lane() == 0) {
    graphs.begin_execution();
    rotation.begin(view.state.execution);
  }
  __syncwarp();
  using handler_set = graph_handler_set<device_launcher>;
  using transport = graph_ring_transport<warp_thread_group, Scope>;
  const handler_set handlers(table, graphs, rotation, p.number, result);
  no_helpers<warp_thread_group> helpers;
  loop_workspace &workspace = make_workspace(memory, 0, p.dispatch.ring.slot_size, answer_staging::one);
  dispatch_loop<warp_thread_group, transport, handler_set, no_helpers<warp_thread_group>, false> loop(
      p.dispatch, 0, workspace, transport(p.dispatch.ring, view), handlers, helpers);
  loop.run(1);
  return result;
}

template <class Handlers, thread_scope Scope>
__device__ void serve_graphs(const graph_params &p, std::uint8_t *memory) {
  const auto table = Handlers::prepare(p.dispatch, reinterpret_cast<block_memory *>(memory)->index);
  std::uint8_t *const trailing = memory + round_line(kernel_memory(p.dispatch.ring.slot_size, answer_staging::one));
  auto &shared = *reinterpret_cast<scheduler_block *>(trailing);
  auto &words = *reinterpret_cast<graph_rotation_words *>(p.block + p.layout.rotation);
  const graph_rotation rotation(words, p.dispatch.reports->fault, p.number, p.members);
  if (threadIdx.x == 0) {
    rotation.arrive();
    while ((shared.call = rotation.poll()) == graph_rotation::call::wait) {
    }
    shared.poller_ends = 0;
  }
  __syncthreads();
  if (shared.call == graph_rotation::call::leave)
    return;
  const bool copied = p.layout.shared();
  std::uint8_t *const image = copied ? trailing + sizeof(scheduler_block) : p.block;
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
  if (result.why == execution_end::relaunch) // already launched by execution_ends
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

/// Puts all schedulers on the device with one launch. No member serves before all members are launched.
static __global__ void graph_root_kernel(const cudaGraphExec_t *schedulers, std::uint32_t count,
                                         graph_rotation_words *words, std::uint32_t *fault) {
  const graph_rotation rotation(*words, *fault, 0, count);
  for (std::uint32_t k = 0; k < count; ++k)
    if (const cudaError_t error = cudaGraphLaunch(schedulers[k], cudaStreamGraphFireAndForget))
      return rotation.end(error);
  rotation.set_free();
}

} // namespace cudaq::realtime::detail
