// SPDX-License-Identifier: Apache-2.0
// A graph of one kernel. Host code of whoever includes it: its own CUDA runtime, which knows the kernel.
#pragma once

#include <cuda_runtime_api.h>

namespace cudaq::realtime::detail {

/// `flags` are those of the instantiation. Nothing is uploaded.
inline cudaError_t make_one_node_graph(const cudaKernelNodeParams &kernel, unsigned flags, cudaGraphExec_t &out) {
  cudaGraph_t graph = nullptr;
  cudaGraphNode_t node = nullptr;
  cudaError_t error = cudaGraphCreate(&graph, 0);
  if (error == cudaSuccess)
    error = cudaGraphAddKernelNode(&node, graph, nullptr, 0, &kernel);
  if (error == cudaSuccess)
    error = cudaGraphInstantiateWithFlags(&out, graph, flags);
  if (graph != nullptr)
    cudaGraphDestroy(graph);
  return error;
}

} // namespace cudaq::realtime::detail
