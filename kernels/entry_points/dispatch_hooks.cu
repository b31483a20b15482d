// SPDX-License-Identifier: Apache-2.0
// The unified kernel over the device hooks of a transport. The hooks are defined by the program, or by
// absent_hooks.cu; the device link decides.
#include "cudaq/realtime/daemon/bridge/device_transport.cuh"
#include "cudaq/realtime/daemon/dispatcher/upstream_interface.h"
#include "cudaq/realtime/detail/loop/hook_transport.h"
#include "kernels/entry_points/entry_points.cuh"

namespace cudaq::realtime::detail {
namespace {

static_assert(CUDAQ_DEV_TRANSPORT_STORAGE_BYTES == kHookStorageBytes);

struct linked_hooks {
  __device__ static void *attach(void *storage, void *ctx, volatile int *shutdown) {
    return cudaq_dev_transport_attach(storage, ctx, shutdown);
  }
  __device__ static bool rx_poll(void *session, void **request, void **response) {
    return cudaq_dev_rx_poll(session, request, response) == CUDAQ_RX_DEV_READY;
  }
  __device__ static void tx_publish(void *session, void *response) { cudaq_dev_tx_publish(session, response); }
};

struct hooked {
  using transport = hook_transport<warp_thread_group, linked_hooks>;
  static constexpr std::uint32_t kTrailingBytes = sizeof(transport::shared_state);
  static_assert(alignof(transport::shared_state) == CUDAQ_DEV_TRANSPORT_STORAGE_ALIGN);
  __device__ static transport open(const dispatch_params &p, std::uint8_t *trailing) {
    return {*reinterpret_cast<transport::shared_state *>(trailing), p.transport_ctx, p.caller_shutdown,
            p.ring.slot_size};
  }
};

__global__ void __launch_bounds__(kMaxThreads, 1) dispatch_hooks_kernel(const __grid_constant__ dispatch_params p) {
  extern __shared__ __align__(128) std::uint8_t cudaq_dispatch_memory[];
  serve_in_order<RegularKernel, table_handlers, hooked>(p, cudaq_dispatch_memory);
}

cudaError_t check(const void *transport_ctx, std::size_t tx_stride, const volatile int *shutdown_flag,
                  const launch_report &report) {
  if (transport_ctx == nullptr || shutdown_flag == nullptr)
    return report(cudaErrorInvalidValue, "transport_ctx or shutdown_flag is NULL");
  if (tx_stride < CUDAQ_RPC_HEADER_SIZE || tx_stride % 8 != 0 || tx_stride > UINT32_MAX)
    return report(cudaErrorInvalidValue,
                  "tx_stride_sz (config->slot_size) is %zu, must be a multiple of 8 and at least the 24 bytes of a "
                  "header",
                  tx_stride);
  return cudaSuccess;
}

cudaError_t launch_hooks_kernel(const dispatch_params &params, cudaStream_t stream, const launch_report &report) {
  // More warps help to copy frames that are too long for one.
  const std::uint32_t threads = params.ring.slot_size > kGroupCopyBytes ? 128 : 32;
  dispatch_params copy = params;
  void *arguments[] = {&copy};
  report.will_hold(1);
  return report(
      cudaLaunchKernel(reinterpret_cast<const void *>(dispatch_hooks_kernel), dim3(1), dim3(threads), arguments,
                       kernel_memory(params.ring.slot_size, kInOrderStaging<RegularKernel>) + hooked::kTrailingBytes,
                       stream),
      "launch of a block of %u threads failed", threads);
}

} // namespace

cudaError_t preload_hook_kernels() {
  int device = 0, max_memory = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess)
    error = cudaDeviceGetAttribute(&max_memory, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  if (error == cudaSuccess)
    error = cudaFuncSetAttribute(reinterpret_cast<const void *>(dispatch_hooks_kernel),
                                 cudaFuncAttributeMaxDynamicSharedMemorySize, max_memory);
  return error;
}

} // namespace cudaq::realtime::detail

extern "C" void cudaq_launch_unified_dispatch_device_upstream(void *transport_ctx, size_t tx_stride_sz,
                                                              cudaq_function_entry_t *function_table, size_t func_count,
                                                              volatile int *shutdown_flag, uint64_t *stats,
                                                              cudaStream_t stream) {
  using namespace cudaq::realtime::detail;
  cudaq_dispatch_launch_state_t *state = nullptr;
  if (state_of(cudaq_dispatch_launch_state(), state) != cudaSuccess)
    return;
  const launch_report report{state};
  if (check(transport_ctx, tx_stride_sz, shutdown_flag, report) != cudaSuccess)
    return;
  if (const cudaError_t error = preload_entry_points()) {
    (void)report(error, "loading the kernels: %s", cudaGetErrorString(error));
    return;
  }
  dispatch_params params = state != nullptr ? state->params : dispatch_params{};
  params.ring.slot_size = static_cast<std::uint32_t>(tx_stride_sz);
  params.transport_ctx = transport_ctx;
  const auto with = [&](const dispatch_params &p) { return launch_hooks_kernel(p, stream, report); };
  if (state != nullptr) {
    (void)with(params);
    return;
  }
  if (stats == nullptr)
    return;
  cudaq_dispatch_launch_params_t direct{};
  direct.function_table = function_table, direct.func_count = func_count;
  direct.shutdown_flag = shutdown_flag, direct.stats = stats, direct.stream = stream;
  (void)launch_without_state(direct, params, false, with);
}
