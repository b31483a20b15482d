// SPDX-License-Identifier: Apache-2.0
// The unified kernel: receive, dispatch and send in one, behind a transport that the kernel drives by itself. The one
// here is a ring with flags, so that unified mode can be used and tested without a NIC; a NIC's is another type with the
// members of kernels/ring_transport.h and a launch function like this one.
#include "kernels/entry_points.h"

namespace cudaq::realtime::detail {
namespace {

cudaError_t check(const cudaq_unified_ring_context_t &c, std::uint32_t slot_size, const launch_report &report) {
  const cudaq_ringbuffer_t &r = c.ring;
  if (c.struct_size != sizeof(c))
    return report(cudaErrorInvalidValue, "transport_ctx->struct_size is %u, not %zu", c.struct_size, sizeof(c));
  if (r.rx_flags == nullptr || r.tx_flags == nullptr || r.rx_data == nullptr || r.tx_data == nullptr)
    return report(cudaErrorInvalidValue, "transport_ctx->ring: a device view is NULL");
  const auto at = [](const volatile void *p) { return reinterpret_cast<std::uintptr_t>(p); };
  if ((at(r.rx_flags) | at(r.tx_flags) | at(r.rx_data) | at(r.tx_data)) % 8 != 0)
    return report(cudaErrorInvalidValue, "transport_ctx->ring: flags and slots have to be multiples of 8");
  if (c.num_slots == 0 || r.rx_stride_sz % 8 != 0 || r.tx_stride_sz % 8 != 0 || slot_size < CUDAQ_RPC_HEADER_SIZE ||
      slot_size > r.rx_stride_sz || slot_size > r.tx_stride_sz)
    return report(cudaErrorInvalidValue, "transport_ctx: %u slots of %u bytes, strides %zu and %zu", c.num_slots,
                  slot_size, r.rx_stride_sz, r.tx_stride_sz);
  if (r.rx_data == r.tx_data && slot_size > kDeviceStageBytes)
    return report(cudaErrorInvalidValue, "transport_ctx: slots of %u bytes in place; at most %u", slot_size,
                  kDeviceStageBytes);
  return cudaSuccess;
}

} // namespace

cudaError_t preload_unified_kernels() { return preload_dispatch_kernel<RegularKernel, table_handlers>(); }

} // namespace cudaq::realtime::detail

extern "C" void cudaq_launch_unified_ring_kernel(void *transport_ctx, cudaq_function_entry_t *function_table,
                                                 size_t func_count, volatile int *shutdown_flag, uint64_t *stats,
                                                 cudaStream_t stream) {
  using namespace cudaq::realtime::detail;
  cudaq_dispatch_launch_state_t *state = nullptr;
  if (transport_ctx == nullptr || state_of(cudaq_dispatch_launch_state(), state) != cudaSuccess)
    return;
  const auto &context = *static_cast<const cudaq_unified_ring_context_t *>(transport_ctx);
  const cudaq_ringbuffer_t &r = context.ring;
  const std::size_t smaller = r.rx_stride_sz < r.tx_stride_sz ? r.rx_stride_sz : r.tx_stride_sz;
  const std::uint32_t slot_size = context.slot_size != 0 ? context.slot_size : static_cast<std::uint32_t>(smaller);
  if (check(context, slot_size, launch_report{state}) != cudaSuccess)
    return;
  if (const cudaError_t error = preload_archive()) {
    (void)launch_report{state}(error, "loading the kernels: %s", cudaGetErrorString(error));
    return;
  }
  dispatch_params params = state != nullptr ? state->params : dispatch_params{};
  params.ring = {r.rx_flags,
                 r.tx_flags,
                 r.rx_data,
                 r.tx_data,
                 r.rx_stride_sz,
                 r.tx_stride_sz,
                 reinterpret_cast<std::uint64_t>(r.rx_data_host),
                 context.num_slots,
                 slot_size};
  if (params.first_slot >= context.num_slots)
    params.first_slot = 0;
  const auto with = [&](const dispatch_params &p) {
    return launch<cudaq::realtime::RegularKernel, cudaq::realtime::table_handlers>(p, 1, context.threads, stream,
                                                                                   launch_report{state});
  };
  if (state != nullptr) {
    (void)with(params);
    return;
  }
  cudaq_dispatch_launch_params_t direct{};
  direct.function_table = function_table, direct.func_count = func_count;
  direct.shutdown_flag = shutdown_flag, direct.stats = stats, direct.stream = stream;
  (void)launch_without_state(direct, params, false, with);
}
