// SPDX-License-Identifier: Apache-2.0
#include "unittests/gpu/support/wrapped_cuda.h"

#include <atomic>
#include <cstddef>
#include <cuda_runtime_api.h>
#include <string_view>

namespace cudaq::realtime::test {
namespace {

/// A loop that waits makes any number of queries: only the first ones of each name count.
constexpr std::uint32_t kCallsThatCount = 12;

struct state_of_thread {
  bool counts = false;
  std::uint64_t left = 0;       ///< the call that takes it from 1 to 0 fails
  const char *failed = nullptr; ///< a literal
  struct {
    std::string_view name;
    std::uint32_t calls;
  } seen[48];
};
thread_local state_of_thread mine;
std::atomic<long> objects{0};

bool fails(const char *name) {
  if (!mine.counts)
    return false;
  for (auto &one : mine.seen) {
    if (one.name.empty())
      one.name = name;
    if (one.name != name)
      continue;
    if (++one.calls > kCallsThatCount)
      return false;
    break;
  }
  if (mine.left == 0 || --mine.left != 0)
    return false;
  mine.failed = name;
  return true;
}

cudaError_t made(cudaError_t result) {
  objects += result == cudaSuccess;
  return result;
}
cudaError_t freed(cudaError_t result, const char *name) {
  objects -= result == cudaSuccess;
  return fails(name) ? cudaErrorUnknown : result;
}

} // namespace

failing_cuda_call::failing_cuda_call(std::uint64_t n) {
  mine = {};
  mine.left = n;
  mine.counts = true;
}
failing_cuda_call::~failing_cuda_call() { mine.counts = false; }
const char *failing_cuda_call::failed() const { return mine.failed; }

long cuda_objects() { return objects.load(); }

} // namespace cudaq::realtime::test

using cudaq::realtime::test::fails;
using cudaq::realtime::test::freed;
using cudaq::realtime::test::made;

extern "C" {

#define DOES(name, parameters, arguments)                                                                              \
  cudaError_t __real_##name parameters;                                                                                \
  cudaError_t __wrap_##name parameters;                                                                                \
  cudaError_t __wrap_##name parameters { return fails(#name) ? cudaErrorUnknown : __real_##name arguments; }
#define MAKES(name, parameters, arguments)                                                                             \
  cudaError_t __real_##name parameters;                                                                                \
  cudaError_t __wrap_##name parameters;                                                                                \
  cudaError_t __wrap_##name parameters { return fails(#name) ? cudaErrorUnknown : made(__real_##name arguments); }
#define FREES(name, parameters, arguments)                                                                             \
  cudaError_t __real_##name parameters;                                                                                \
  cudaError_t __wrap_##name parameters;                                                                                \
  cudaError_t __wrap_##name parameters { return freed(__real_##name arguments, #name); }

DOES(cudaDeviceGetAttribute, (int *value, cudaDeviceAttr what, int device), (value, what, device))
DOES(cudaEventQuery, (cudaEvent_t event), (event))
DOES(cudaEventRecord, (cudaEvent_t event, cudaStream_t stream), (event, stream))
DOES(cudaFuncGetAttributes, (cudaFuncAttributes * out, const void *function), (out, function))
DOES(cudaFuncSetAttribute, (const void *function, cudaFuncAttribute what, int value), (function, what, value))
DOES(cudaGetDevice, (int *device), (device))
DOES(cudaGraphAddKernelNode,
     (cudaGraphNode_t * out, cudaGraph_t graph, const cudaGraphNode_t *after, std::size_t count,
      const cudaKernelNodeParams *node),
     (out, graph, after, count, node))
DOES(cudaGraphExecKernelNodeSetParams, (cudaGraphExec_t exec, cudaGraphNode_t node, const cudaKernelNodeParams *with),
     (exec, node, with))
DOES(cudaGraphKernelNodeSetParams, (cudaGraphNode_t node, const cudaKernelNodeParams *with), (node, with))
DOES(cudaGraphLaunch, (cudaGraphExec_t exec, cudaStream_t stream), (exec, stream))
DOES(cudaGraphUpload, (cudaGraphExec_t exec, cudaStream_t stream), (exec, stream))
DOES(cudaMemcpyAsync, (void *to, const void *from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream),
     (to, from, bytes, kind, stream))
DOES(cudaOccupancyMaxActiveBlocksPerMultiprocessor,
     (int *blocks, const void *function, int threads, std::size_t memory), (blocks, function, threads, memory))
DOES(cudaPointerGetAttributes, (cudaPointerAttributes * out, const void *at), (out, at))
DOES(cudaSetDevice, (int device), (device))
DOES(cudaStreamQuery, (cudaStream_t stream), (stream))
DOES(cudaStreamSynchronize, (cudaStream_t stream), (stream))
DOES(cudaStreamWaitEvent, (cudaStream_t stream, cudaEvent_t event, unsigned flags), (stream, event, flags))

MAKES(cudaEventCreateWithFlags, (cudaEvent_t * out, unsigned flags), (out, flags))
MAKES(cudaGraphCreate, (cudaGraph_t * out, unsigned flags), (out, flags))
MAKES(cudaGraphInstantiateWithFlags, (cudaGraphExec_t * out, cudaGraph_t graph, unsigned long long flags),
      (out, graph, flags))
MAKES(cudaMallocAsync, (void **out, std::size_t bytes, cudaStream_t stream), (out, bytes, stream))
MAKES(cudaStreamCreateWithFlags, (cudaStream_t * out, unsigned flags), (out, flags))

FREES(cudaEventDestroy, (cudaEvent_t event), (event))
FREES(cudaFreeAsync, (void *memory, cudaStream_t stream), (memory, stream))
FREES(cudaGraphDestroy, (cudaGraph_t graph), (graph))
FREES(cudaGraphExecDestroy, (cudaGraphExec_t exec), (exec))
FREES(cudaStreamDestroy, (cudaStream_t stream), (stream))

} // extern "C"
