// SPDX-License-Identifier: Apache-2.0
#include "cudaq/qec/realtime/gpu_services.h"

#include "kernels/qec/device_memory.h"
#include "lib/base/cuda_device.h"
#include "lib/qec/services/service_steps.h"

#include "cudaq/realtime/daemon/dispatcher/graph_capture.h"

#include <utility>

namespace cudaq::qec::realtime::gpu {
namespace {

using experimental::service_queue;

constexpr std::uint32_t kThreads = 256;

__global__ void __launch_bounds__(kThreads) input_kernel(service_queue q) {
  __shared__ int entry;
  const detail::service_frames frames = detail::frames_of(q);
  if (frames.request == nullptr)
    return;
  if (threadIdx.x == 0)
    entry = q.depth == 0 ? 0 : detail::await_entry(q);
  __syncthreads();
  if (entry >= 0)
    detail::copy_input(q, frames.request, threadIdx.x, blockDim.x);
}

__global__ void __launch_bounds__(kThreads) answer_kernel(service_queue q) {
  const detail::service_frames frames = detail::frames_of(q);
  if (frames.request == nullptr)
    return;
  __shared__ std::int32_t status;
  if (threadIdx.x == 0)
    status = detail::status_of(q, frames);
  __syncthreads();
  if (status == 0)
    detail::copy_bytes(frames.answer + CUDAQ_RPC_HEADER_SIZE, q.output, q.output_bytes, threadIdx.x, blockDim.x);
  __syncthreads();
  if (threadIdx.x == 0)
    detail::answer_request(q, frames, status);
}

__global__ void __launch_bounds__(kThreads) entry_kernel(service_queue q) {
  __shared__ int entry;
  const detail::service_frames frames = detail::frames_of(q);
  if (frames.request == nullptr)
    return;
  if (threadIdx.x == 0)
    entry = detail::await_entry(q);
  __syncthreads();
  if (entry < 0) {
    if (threadIdx.x == 0)
      ++*q.refused;
    return;
  }
  detail::copy_bytes(q.outputs + entry * q.output_stride, q.output, q.output_bytes, threadIdx.x, blockDim.x);
  __syncthreads();
  if (threadIdx.x == 0)
    detail::publish_entry(q, frames.request);
}

using cudaq::realtime::detail::device_guard;

struct entered_or_throw : device_guard {
  explicit entered_or_throw(int id) : device_guard(id) { require(error(), "cudaSetDevice"); }
};

/// Each call makes the device current while it runs: the caller, and the services of another device, have their own.
class cuda_device final : public experimental::service_device {
public:
  explicit cuda_device(int id) : id_(id) { const entered_or_throw here(id); }

  shared_memory allocate_shared(std::size_t bytes) override {
    const entered_or_throw here(id_);
    shared_memory made;
    require(cudaHostAlloc(&made.host, bytes, cudaHostAllocMapped | cudaHostAllocPortable), "cudaHostAlloc");
    std::memset(made.host, 0, bytes);
    if (const cudaError_t error = cudaHostGetDevicePointer(&made.device, made.host, 0)) {
      cudaFreeHost(made.host);
      require(error, "cudaHostGetDevicePointer");
    }
    return made;
  }
  void free_shared(const shared_memory &memory) noexcept override {
    const device_guard here(id_);
    cudaFreeHost(memory.host);
  }
  void *allocate(std::size_t bytes) override {
    const entered_or_throw here(id_);
    return device_block(bytes).release();
  }
  void free(void *memory) noexcept override {
    const device_guard here(id_);
    cudaFree(memory);
  }
  cudaError_t enqueue_input(const service_queue &queue, cudaStream_t stream) override {
    const device_guard here(id_);
    if (here.error() != cudaSuccess)
      return here.error();
    input_kernel<<<1, kThreads, 0, stream>>>(queue);
    return cudaGetLastError();
  }
  cudaError_t enqueue_output(const service_queue &queue, cudaStream_t stream) override {
    const device_guard here(id_);
    if (here.error() != cudaSuccess)
      return here.error();
    if (queue.depth == 0)
      answer_kernel<<<1, kThreads, 0, stream>>>(queue);
    else
      entry_kernel<<<1, kThreads, 0, stream>>>(queue);
    return cudaGetLastError();
  }
  cudaGraphExec_t capture(const stream_work &warm_up, const stream_work &work, bool device_launch) override {
    cudaq::realtime::captured_graph graph;
    cudaq::realtime::graph_capture_options options;
    options.device_id = id_;
    options.warm_ups = 1;
    options.device_launch = device_launch;
    bool is_warm = false;
    const auto either = [&](cudaStream_t stream) {
      return std::exchange(is_warm, true) ? work(stream) : warm_up(stream);
    };
    const auto result = cudaq::realtime::capture_graph(graph, either, options);
    if (!result)
      throw std::runtime_error(result.text);
    return graph.release();
  }
  void destroy(cudaGraphExec_t graph) noexcept override {
    const device_guard here(id_);
    cudaGraphExecDestroy(graph);
  }

private:
  const int id_;
};

} // namespace

std::shared_ptr<experimental::service_device> cuda_service_device(int device_id) {
  return std::make_shared<cuda_device>(device_id);
}

} // namespace cudaq::qec::realtime::gpu
