// SPDX-License-Identifier: Apache-2.0
// A graph of one kernel, whose parameters may change. Host code. It uses the CUDA runtime of the program that
// instantiates the kernel.
#pragma once

#include <cuda_runtime.h>

namespace cudaq::realtime::detail {

/// Handles only. The owner calls destroy(), at a time when no kernel runs that the destruction would wait for.
struct one_node_graph {
  cudaGraph_t graph = nullptr;
  cudaGraphNode_t node = nullptr;
  cudaGraphExec_t exec = nullptr;

  /// Creates the graph with the instantiation's `flags`, or gives an existing one new parameters. Uploads nothing.
  cudaError_t set(const cudaKernelNodeParams &kernel, unsigned flags) {
    if (exec != nullptr)
      return cudaGraphExecKernelNodeSetParams(exec, node, &kernel);
    cudaError_t error = graph == nullptr ? cudaGraphCreate(&graph, 0) : cudaSuccess;
    if (error == cudaSuccess)
      error = node == nullptr ? cudaGraphAddKernelNode(&node, graph, nullptr, 0, &kernel)
                              : cudaGraphKernelNodeSetParams(node, &kernel); // left by a failed attempt
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
