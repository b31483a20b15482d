// SPDX-License-Identifier: Apache-2.0
// Tags that name a dispatch mode at compile time, for kernels that programs write themselves. The kernels of this
// library do not use them. A file that calls GraphLaunchMode::dispatch needs relocatable device code (nvcc -rdc=true):
// launches from the device do.
#ifndef CUDAQ_REALTIME_DISPATCH_MODES_H
#define CUDAQ_REALTIME_DISPATCH_MODES_H

#include <cuda_runtime_api.h>

namespace cudaq::realtime {

/// The handler is a device function.
struct DeviceCallMode {
#if defined(__CUDACC__)
  /// Calls handler(context, arguments...) and returns what it returns.
  template <class Handler, class Context, class... Arguments>
  static __device__ decltype(auto) dispatch(Handler &&handler, Context &context, Arguments &&...arguments) {
    return static_cast<Handler &&>(handler)(context, static_cast<Arguments &&>(arguments)...);
  }
#endif
};

/// The handler is a graph for launches from the device.
struct GraphLaunchMode {
#if defined(__CUDACC__)
  /// Launches context.graph_exec, if it is not null. Whether the launch worked is not reported.
  template <class Context>
  static __device__ void dispatch(Context &context) {
    if (context.graph_exec != nullptr)
      (void)cudaGraphLaunch(context.graph_exec, cudaStreamGraphFireAndForget);
  }
#endif
};

} // namespace cudaq::realtime

#endif
