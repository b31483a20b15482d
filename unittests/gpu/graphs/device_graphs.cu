// SPDX-License-Identifier: Apache-2.0
#include "unittests/gpu/graphs/device_graphs.h"

#include "cudaq/realtime/daemon/dispatcher/graph_io.cuh"
#include "cudaq/realtime/daemon/dispatcher/kernel_types.h"
#include "cudaq/realtime/daemon/dispatcher/rpc_types.h"
#include "kernels/graphs/one_node_graph.h"
#include "unittests/gpu/support/checked_device.cuh"

namespace cudaq::realtime::test {
namespace {

constexpr std::uint32_t kThreads = 32;
constexpr std::uint64_t kGateNs = 20'000'000'000;

__device__ std::uint64_t now_ns() {
  std::uint64_t ns;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
  return ns;
}
__device__ void wait_ns(std::uint64_t ns) {
  for (const std::uint64_t begin = now_ns(); now_ns() - begin < ns;) {
  }
}
__device__ void wait_for(const std::uint32_t *gate) {
  for (const std::uint64_t begin = now_ns(); detail::load_acquire(*gate) == 0 && now_ns() - begin < kGateNs;) {
  }
}

/// All threads copy; `bytes` is a multiple of 8.
__device__ void copy8(void *to, const void *from, std::uint32_t bytes) {
  for (std::uint32_t i = threadIdx.x; i < bytes / 8; i += kThreads)
    static_cast<std::uint64_t *>(to)[i] = static_cast<const std::uint64_t *>(from)[i];
  __syncwarp();
}

__global__ void answer_kernel(graph_task t) {
  __shared__ __align__(16) std::uint8_t in[kGraphSlotBytes], out[kGraphSlotBytes];
  const auto &io = *static_cast<const GraphIOContextV2 *>(t.io_dev);
  const std::uint8_t *const slot = static_cast<const std::uint8_t *>(io.io.rx_slot);
  if (t.trap != 0)
    __trap();
  if (t.gate != nullptr)
    wait_for(t.gate);
  if (t.wait_ns != 0 && t.slow_every == 1)
    wait_ns(t.wait_ns);
  if (t.silent != 0)
    return;
  copy8(in, slot, sizeof(RPCHeader));
  RPCHeader request; // read once, and the length checked: a hostile peer may write the slot
  std::memcpy(&request, in, sizeof(request));
  __syncwarp();
  const std::uint32_t min_size = kKeyBytes, max_size = t.max_result_len; // what the slot holds
  request.arg_len = request.arg_len < min_size ? min_size : request.arg_len > max_size ? max_size : request.arg_len;
  copy8(in, slot, (sizeof(RPCHeader) + request.arg_len + 7) & ~7u);
  if (threadIdx.x == 0) {
    const std::uint8_t *payload = in + sizeof(RPCHeader);
    std::uint64_t key = 0;
    std::uint32_t sequence = 0, length = 0;
    std::memcpy(&key, payload, sizeof(key));
    std::memcpy(&sequence, payload + kKeyBytes, sizeof(sequence));
    if (t.wait_ns != 0 && t.slow_every > 1 && sequence % t.slow_every == 0)
      wait_ns(t.wait_ns);
    int status = 77;
    if (t.key == kAnyKey || key == t.key)
      status = check_traffic<one_thread>(t.record_dev, t.function_id, payload + kKeyBytes, out + sizeof(RPCResponse),
                                         request.arg_len - kKeyBytes, t.max_result_len, &length);
    *reinterpret_cast<RPCResponse *>(out) = {RPC_MAGIC_RESPONSE, status, length, request.request_id,
                                             request.ptp_timestamp};
  }
  __syncwarp();
  const std::uint32_t answer = sizeof(RPCResponse) + reinterpret_cast<const RPCResponse *>(out)->result_len;
  copy8(io.io.tx_slot, out, (answer + 7) & ~7u);
  if (threadIdx.x != 0)
    return;
  if (t.publishes)
    publish_graph_response(io);
  else
    publish_graph_response(io.io);
  if (t.linger_ns != 0)
    wait_ns(t.linger_ns);
}

} // namespace

cudaError_t preload_graph_kernels() { return preload_kernels(answer_kernel); }

cudaError_t make_graph(const graph_task &task, bool upload, cudaStream_t stream, cudaGraphExec_t *out) {
  graph_task its = task;
  void *arguments[] = {&its};
  cudaKernelNodeParams node{};
  node.func = reinterpret_cast<void *>(answer_kernel);
  node.gridDim = dim3(1);
  node.blockDim = dim3(kThreads);
  node.kernelParams = arguments;
  detail::one_node_graph graph;
  cudaError_t error = graph.set(node, cudaGraphInstantiateFlagDeviceLaunch);
  *out = graph.exec;
  if (graph.graph != nullptr)
    cudaGraphDestroy(graph.graph);
  if (error == cudaSuccess && upload)
    error = cudaGraphUpload(*out, stream);
  return error == cudaSuccess ? cudaStreamSynchronize(stream) : error;
}

} // namespace cudaq::realtime::test
