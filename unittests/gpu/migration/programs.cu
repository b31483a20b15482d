// SPDX-License-Identifier: Apache-2.0
#include "unittests/gpu/migration/programs.h"

#include "cudaq/realtime/daemon/dispatcher/dispatch_modes.h"
#include "cudaq/realtime/daemon/dispatcher/kernel_types.h"
#include "cudaq/realtime/daemon/dispatcher/rpc_types.h"
#include "cudaq/realtime/daemon/dispatcher/upstream_interface.h"
#include "cudaq/realtime/detail/base/flag_word.h"

#include <cstring>

namespace cudaq::realtime::migration {
namespace {

static_assert(!RegularKernel::is_cooperative && CooperativeKernel::is_cooperative);
/// As a kernel template of a program waits, whichever kind it gets.
template <class KernelType>
__device__ void wait_as() {
  KernelType::sync();
}
template __device__ void wait_as<RegularKernel>();
template __device__ void wait_as<CooperativeKernel>();

__device__ std::uint32_t first_word(const void *slot) {
  std::uint32_t word;
  memcpy(&word, static_cast<const std::uint8_t *>(slot) + sizeof(RPCHeader), sizeof(word));
  return word;
}

__global__ void silent_kernel(const buffer_context *context, std::uint64_t *runs) {
  auto *const slot = static_cast<std::uint8_t *>(context->buffer);
  const std::uint32_t word = first_word(slot) + 1;
  memcpy(slot + sizeof(RPCHeader), &word, sizeof(word));
  detail::store_release<std::uint64_t>(*runs, *runs + 1);
}

__global__ void mailbox_kernel(void *const *mailbox, std::uint32_t *output, int *ready) {
  *output = 2 * first_word(*mailbox);
  detail::store_release<int>(*ready, 1);
}

__global__ void context_kernel(void *const *mailbox) {
  const auto *const io = static_cast<const GraphIOContext *>(*mailbox);
  const auto request = *static_cast<const RPCHeader *>(io->rx_slot);
  const std::uint32_t word = 2 * first_word(io->rx_slot);
  const RPCResponse response{RPC_MAGIC_RESPONSE, 0, sizeof(word), request.request_id, request.ptp_timestamp};
  memcpy(io->tx_slot, &response, sizeof(response));
  memcpy(io->tx_slot + sizeof(response), &word, sizeof(word));
  detail::store_release<std::uint64_t>(*io->tx_flag, io->tx_flag_value);
}

struct mode_context {
  cudaGraphExec_t graph_exec;
  int base;
};

__device__ int add_one_rpc(const void *input, void *output, std::uint32_t arg_len, std::uint32_t max_result_len,
                           std::uint32_t *result_len) {
  std::uint32_t word;
  if (arg_len < sizeof(word) || max_result_len < sizeof(word))
    return 1;
  memcpy(&word, input, sizeof(word));
  ++word;
  memcpy(output, &word, sizeof(word));
  *result_len = sizeof(word);
  return 0;
}

__device__ int add_one_and_trigger_rpc(const void *input, void *output, std::uint32_t arg_len,
                                       std::uint32_t max_result_len, std::uint32_t *result_len) {
  const int status = add_one_rpc(input, output, arg_len, max_result_len, result_len);
  return status == 0 ? CUDAQ_DISPATCH_STATUS_TRIGGER_GRAPH : status;
}

__global__ void triggered_kernel(const int *gate, std::uint64_t *runs) {
  constexpr long long kMaxCycles = 2'000'000'000;
  const long long begun = clock64();
  while (detail::load_acquire(*gate) == 0 && clock64() - begun < kMaxCycles) {
  }
  detail::store_release<std::uint64_t>(*runs, *runs + 1);
}

__global__ void init_graph_table_kernel(cudaq_function_entry_t *entries, std::uint32_t function_id,
                                        cudaGraphExec_t graph) {
  entries[0] = {};
  entries[0].handler.graph_exec = graph;
  entries[0].function_id = function_id;
  entries[0].dispatch_mode = CUDAQ_DISPATCH_GRAPH_LAUNCH;
  entries[0].schema.num_args = 1;
  entries[0].schema.args[0] = {TYPE_BIT_PACKED, {0}, 4, 32};
}

__global__ void init_device_table_kernel(cudaq_function_entry_t *entries, std::uint32_t function_id, bool triggers) {
  entries[0] = {};
  entries[0].handler.device_fn_ptr =
      triggers ? reinterpret_cast<void *>(&add_one_and_trigger_rpc) : reinterpret_cast<void *>(&add_one_rpc);
  entries[0].function_id = function_id;
  entries[0].dispatch_mode = CUDAQ_DISPATCH_DEVICE_CALL;
}

struct add {
  __device__ int operator()(const mode_context &context, int n) const { return context.base + n; }
};

__global__ void mode_kernel(int *result) {
  mode_context context{nullptr, 40};
  GraphLaunchMode::dispatch(context);
  *result = DeviceCallMode::dispatch(add{}, context, 2);
}

template <class Launch>
cudaError_t instantiate(Launch &&launch, unsigned long long flags, cudaStream_t stream, cudaGraphExec_t *out,
                        bool upload = true) {
  cudaGraph_t graph = nullptr;
  cudaError_t error = cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
  if (error != cudaSuccess)
    return error;
  launch();
  error = cudaStreamEndCapture(stream, &graph);
  if (error == cudaSuccess)
    error = cudaGraphInstantiateWithFlags(out, graph, flags);
  if (error == cudaSuccess && upload)
    error = cudaGraphUpload(*out, stream);
  if (error == cudaSuccess)
    error = cudaStreamSynchronize(stream);
  if (graph != nullptr)
    cudaGraphDestroy(graph);
  return error;
}

cudaError_t finish(cudaStream_t stream) {
  const cudaError_t error = cudaGetLastError();
  return error == cudaSuccess ? cudaStreamSynchronize(stream) : error;
}

__device__ mode_context launched_by_handler;

} // namespace

/// Without a caller: that it compiles and links with the kernels of the library is the test.
/// docs/graph_dispatch_device.md has when CUDA takes its launch.
__device__ int add_one_and_launch_rpc(const void *input, void *output, std::uint32_t arg_len,
                                      std::uint32_t max_result_len, std::uint32_t *result_len) {
  GraphLaunchMode::dispatch(launched_by_handler);
  return add_one_rpc(input, output, arg_len, max_result_len, result_len);
}

cudaError_t make_silent_graph(const buffer_context *context_dev, std::uint64_t *runs_dev, cudaStream_t stream,
                              cudaGraphExec_t *out) {
  return instantiate([&] { silent_kernel<<<1, 1, 0, stream>>>(context_dev, runs_dev); },
                     cudaGraphInstantiateFlagDeviceLaunch, stream, out);
}
cudaError_t make_mailbox_graph(void *const *mailbox_dev, std::uint32_t *output_dev, int *ready_dev, cudaStream_t stream,
                               cudaGraphExec_t *out) {
  return instantiate([&] { mailbox_kernel<<<1, 1, 0, stream>>>(mailbox_dev, output_dev, ready_dev); }, 0, stream, out);
}
cudaError_t make_context_graph(void *const *mailbox_dev, cudaStream_t stream, cudaGraphExec_t *out) {
  return instantiate([&] { context_kernel<<<1, 1, 0, stream>>>(mailbox_dev); }, 0, stream, out);
}
cudaError_t init_graph_table(cudaq_function_entry_t *entries_dev, std::uint32_t function_id, cudaGraphExec_t graph,
                             cudaStream_t stream) {
  init_graph_table_kernel<<<1, 1, 0, stream>>>(entries_dev, function_id, graph);
  return finish(stream);
}
cudaError_t make_triggered_graph(const int *gate_dev, std::uint64_t *runs_dev, bool upload, cudaStream_t stream,
                                 cudaGraphExec_t *out) {
  return instantiate([&] { triggered_kernel<<<1, 1, 0, stream>>>(gate_dev, runs_dev); },
                     cudaGraphInstantiateFlagDeviceLaunch, stream, out, upload);
}
cudaError_t init_device_table(cudaq_function_entry_t *entries_dev, std::uint32_t function_id, cudaStream_t stream,
                              bool triggers) {
  init_device_table_kernel<<<1, 1, 0, stream>>>(entries_dev, function_id, triggers);
  return finish(stream);
}
cudaError_t use_mode_tags(int *result_dev, cudaStream_t stream) {
  mode_kernel<<<1, 1, 0, stream>>>(result_dev);
  return finish(stream);
}

} // namespace cudaq::realtime::migration
