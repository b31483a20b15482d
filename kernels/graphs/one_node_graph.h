// SPDX-License-Identifier: Apache-2.0
// A graph of one kernel, whose parameters may change. Host code of whoever instantiates the kernel: its own CUDA
// runtime.
#pragma once

#include <cuda_runtime.h>

namespace cudaq::realtime::detail {

/// Handles only: whoever has them destroys them, at a time when that waits for nobody.
struct one_node_graph {
  cudaGraph_t graph = nullptr;
  cudaGraphNode_t node = nullptr;
  cudaGraphExec_t exec = nullptr;

  /// Makes it, with `flags` of the instantiation, or gives it other parameters. Nothing is uploaded.
  cudaError_t set(const cudaKernelNodeParams &kernel, unsigned flags) {
    if (exec != nullptr)
      return cudaGraphExecKernelNodeSetParams(exec, node, &kernel);
    cudaError_t error = graph == nullptr ? cudaGraphCreate(&graph, 0) : cudaSuccess;
    if (error == cudaSuccess)
      error = node == nullptr ? cudaGraphAddKernelNode(&node, graph, nullptr, 0, &kernel)
                              : cudaGraphKernelNodeSetParams(node, &kernel); // of an attempt that failed
    return error == cudaSuccess ? cudaGraphInstantiateWithFlags(&exec, graph, flags) : error;
  }
  void destroy() const {
    if (exec != nullptr)
      cudaGraphExecDestroy(exec);
    if (graph != nullptr)
      cudaGraphDestroy(graph);
  }
};

} // namespace cudaq::realtime::detail
