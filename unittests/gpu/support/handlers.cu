// SPDX-License-Identifier: Apache-2.0
#include "unittests/gpu/support/handlers.h"

#include "cudaq/realtime/daemon/dispatcher/device_ring.cuh"
#include "cudaq/realtime/daemon/dispatcher/kernel_types.h"
#include "cudaq/realtime/daemon/dispatcher/rpc_types.h"
#include "cudaq/realtime/detail/base/flag_word.h"
#include "unittests/gpu/support/checked_device.cuh"

#include <utility>

namespace cudaq::realtime::test {
namespace {

__device__ checked_record *checked_records;

/// The threads that run a cooperative handler: the rank of this thread, their number, and a barrier.
struct whole_grid {
  __device__ static std::uint32_t rank() { return blockIdx.x * blockDim.x + threadIdx.x; }
  __device__ static std::uint32_t count() { return gridDim.x * blockDim.x; }
  __device__ static void sync() { CooperativeKernel::sync(); }
};

template <class T>
__device__ T read_payload(const void *input) {
  T value;
  std::memcpy(&value, input, sizeof(value));
  return value;
}

/// For payloads of whole 8-byte words.
template <class Threads>
__device__ int echo(const void *input, void *output, std::uint32_t arg_len, std::uint32_t max_result_len,
                    std::uint32_t *result_len) {
  const auto *in = static_cast<const std::uint64_t *>(input);
  auto *out = static_cast<std::uint64_t *>(output);
  const std::uint32_t words = (arg_len < max_result_len ? arg_len : max_result_len) / sizeof(*in);
  for (std::uint32_t i = Threads::rank(); i < words; i += Threads::count())
    out[i] = in[i];
  *result_len = arg_len;
  return 0;
}

template <class Threads>
__device__ int reverse(const void *input, void *output, std::uint32_t arg_len, std::uint32_t max_result_len,
                       std::uint32_t *result_len) {
  const auto *in = static_cast<const std::uint8_t *>(input);
  auto *out = static_cast<std::uint8_t *>(output);
  for (std::uint32_t i = Threads::rank(); i < arg_len && i < max_result_len; i += Threads::count())
    out[i] = in[arg_len - 1 - i];
  *result_len = arg_len;
  return 0;
}

template <class Threads>
__device__ int flip(const void *input, void *output, std::uint32_t arg_len, std::uint32_t max_result_len,
                    std::uint32_t *result_len) {
  const auto *in = static_cast<const std::uint8_t *>(input);
  auto *out = static_cast<std::uint8_t *>(output);
  if (arg_len > max_result_len)
    return -1;
  for (std::uint32_t i = Threads::rank(); i < arg_len; i += Threads::count())
    out[i] = static_cast<std::uint8_t>(~in[i]);
  Threads::sync(); // the next loop reads bytes that other threads wrote
  for (std::uint32_t i = Threads::rank(); i < arg_len / 2; i += Threads::count()) {
    const std::uint8_t low = out[i];
    out[i] = out[arg_len - 1 - i];
    out[arg_len - 1 - i] = low;
  }
  *result_len = arg_len;
  return 0;
}

template <class Threads>
__device__ int describe(const void *input, void *output, std::uint32_t arg_len, std::uint32_t max_result_len,
                        std::uint32_t *result_len) {
  auto *out = static_cast<std::uint8_t *>(output);
  constexpr std::uint32_t kThreadsAt = offsetof(handler_view, threads);
  if (max_result_len < sizeof(handler_view))
    return -1;
  if (Threads::rank() == 0) {
    const auto in_at = reinterpret_cast<std::uint64_t>(input), out_at = reinterpret_cast<std::uint64_t>(output);
    const bool apart = in_at + arg_len <= out_at || out_at + max_result_len <= in_at;
    const handler_view view{arg_len, max_result_len, 0, apart ? 0u : 1u};
    std::memcpy(out, &view, sizeof(view));
  }
  Threads::sync();
  for (std::uint32_t turn = 0; turn < Threads::count(); ++turn) { // no atomics, because the output need not be aligned
    if (Threads::rank() == turn) {
      const std::uint32_t so_far = read_payload<std::uint32_t>(out + kThreadsAt) + 1;
      std::memcpy(out + kThreadsAt, &so_far, sizeof(so_far));
    }
    Threads::sync();
  }
  *result_len = sizeof(handler_view);
  return 0;
}

template <class Threads>
__device__ int own_status(const void *input, void *, std::uint32_t arg_len, std::uint32_t, std::uint32_t *result_len) {
  *result_len = 0;
  return arg_len < sizeof(std::int32_t) ? 0 : read_payload<std::int32_t>(input);
}

template <class Threads>
__device__ int claims_too_much(const void *, void *, std::uint32_t, std::uint32_t max_result_len,
                               std::uint32_t *result_len) {
  *result_len = max_result_len + 1;
  return 0;
}

template <class Threads>
__device__ int count(const void *input, void *output, std::uint32_t arg_len, std::uint32_t max_result_len,
                     std::uint32_t *result_len) {
  *result_len = sizeof(std::uint32_t);
  if (arg_len < sizeof(std::uint64_t) || max_result_len < sizeof(std::uint32_t) || Threads::rank() != 0)
    return 0;
  const std::uint32_t before = atomicAdd(reinterpret_cast<std::uint32_t *>(read_payload<std::uint64_t>(input)), 1u);
  std::memcpy(output, &before, sizeof(before));
  return 0;
}

template <class Threads>
__device__ int meet(const void *input, void *, std::uint32_t arg_len, std::uint32_t, std::uint32_t *result_len) {
  *result_len = 0;
  if (Threads::rank() != 0)
    return 0;
  if (arg_len < sizeof(meet_request))
    return -1;
  const auto request = read_payload<meet_request>(input);
  auto *calls = reinterpret_cast<std::uint32_t *>(request.calls);
  atomicAdd(calls, 1u);
  const long long begin = clock64();
  while (atomicAdd(calls, 0u) < request.wanted)
    if (clock64() - begin > static_cast<long long>(request.max_cycles))
      return 1;
  return 0;
}

template <class Threads>
__device__ int wait_for_word(const void *input, void *, std::uint32_t arg_len, std::uint32_t,
                             std::uint32_t *result_len) {
  *result_len = 0;
  if (Threads::rank() != 0)
    return 0;
  if (arg_len < sizeof(wait_request))
    return -1;
  const auto request = read_payload<wait_request>(input);
  const auto *word = reinterpret_cast<const std::uint32_t *>(request.word);
  const long long begin = clock64();
  while (detail::load_acquire(*word) == 0)
    if (clock64() - begin > static_cast<long long>(request.max_cycles))
      return 1;
  return 0;
}

template <class Threads>
__device__ int trap(const void *, void *, std::uint32_t, std::uint32_t, std::uint32_t *) {
  asm volatile("trap;");
  return 0;
}

template <class Threads, std::uint32_t K>
__device__ int checked(const void *input, void *output, std::uint32_t arg_len, std::uint32_t max_result_len,
                       std::uint32_t *result_len) {
  return check_traffic<Threads>(checked_records + K, K + 1, input, output, arg_len, max_result_len, result_len);
}

template <class Threads, std::uint32_t... K>
__device__ void write_addresses(void **out, std::integer_sequence<std::uint32_t, K...>) {
  const DeviceRPCFunction all[] = {
      reverse<Threads>,      flip<Threads>, describe<Threads>,      own_status<Threads>, claims_too_much<Threads>,
      count<Threads>,        meet<Threads>, wait_for_word<Threads>, echo<Threads>,       trap<Threads>,
      checked<Threads, K>...};
  static_assert(sizeof(all) / sizeof(all[0]) == kHandlers);
  for (std::uint32_t h = 0; h < kHandlers; ++h)
    out[h] = reinterpret_cast<void *>(all[h]);
}

template <class Threads>
__global__ void addresses_kernel(void **out) {
  write_addresses<Threads>(out, std::make_integer_sequence<std::uint32_t, kCheckedFunctions>{});
}

__global__ void other_kernel(int *out) { *out = 42; }

__global__ void broken_kernel(int *out) { *out = 0; }

__global__ void waiting_kernel(volatile int *shutdown_flag) {
  const long long begin = clock64();
  while (detail::load_acquire(*shutdown_flag) == 0)
    if (clock64() - begin > 40'000'000'000ll)
      return;
}

__global__ void wait_for_answer_kernel(device_ring<> ring, std::uint64_t ns, std::uint32_t *out) {
  *out = 1 + static_cast<std::uint32_t>(ring.wait_answer(0, device_deadline(ns)));
}

} // namespace

cudaError_t handler_addresses(bool grid, void **out, cudaStream_t stream) {
  if (const cudaError_t error = preload_kernels(addresses_kernel<one_thread>, addresses_kernel<whole_grid>,
                                                broken_kernel, waiting_kernel, wait_for_answer_kernel))
    return error;
  void **out_dev = nullptr;
  if (const cudaError_t error = cudaMallocAsync(&out_dev, kHandlers * sizeof(void *), stream))
    return error;
  if (grid)
    addresses_kernel<whole_grid><<<1, 1, 0, stream>>>(out_dev);
  else
    addresses_kernel<one_thread><<<1, 1, 0, stream>>>(out_dev);
  cudaError_t error = cudaGetLastError();
  if (error == cudaSuccess)
    error = cudaMemcpyAsync(out, out_dev, kHandlers * sizeof(void *), cudaMemcpyDeviceToHost, stream);
  cudaFreeAsync(out_dev, stream);
  return error == cudaSuccess ? cudaStreamSynchronize(stream) : error;
}

cudaError_t use_checked_records(checked_record *records_dev, cudaStream_t stream) {
  const cudaError_t error =
      cudaMemcpyToSymbolAsync(checked_records, &records_dev, sizeof(records_dev), 0, cudaMemcpyHostToDevice, stream);
  return error == cudaSuccess ? cudaStreamSynchronize(stream) : error;
}

cudaError_t preload_other_kernel() { return preload_kernels(other_kernel); }

cudaError_t launch_other_kernel(int *out_dev, cudaStream_t stream) {
  other_kernel<<<1, 1, 0, stream>>>(out_dev);
  return cudaGetLastError();
}

cudaError_t launch_wait_for_answer(const cudaq_ringbuffer_t &ring, std::uint32_t num_slots, std::uint64_t ns,
                                   std::uint32_t *out_dev, cudaStream_t stream) {
  wait_for_answer_kernel<<<1, 1, 0, stream>>>(device_ring<>(ring, num_slots), ns, out_dev);
  return cudaGetLastError();
}

void launch_too_many_threads(volatile uint64_t *, volatile uint64_t *, uint8_t *, uint8_t *, size_t, size_t,
                             cudaq_function_entry_t *, size_t, volatile int *, uint64_t *, size_t, uint32_t, uint32_t,
                             cudaStream_t stream) {
  broken_kernel<<<1, 4096, 0, stream>>>(nullptr);
}

void launch_nothing(volatile uint64_t *, volatile uint64_t *, uint8_t *, uint8_t *, size_t, size_t,
                    cudaq_function_entry_t *, size_t, volatile int *, uint64_t *, size_t, uint32_t, uint32_t,
                    cudaStream_t) {}

cudaError_t launch_refused(const cudaq_dispatch_launch_params_t *params) {
  return params->struct_size == sizeof(*params) ? cudaErrorInvalidConfiguration : cudaErrorInvalidValue;
}

void launch_own_kernel(volatile uint64_t *, volatile uint64_t *, uint8_t *, uint8_t *, size_t, size_t,
                       cudaq_function_entry_t *, size_t, volatile int *shutdown_flag, uint64_t *, size_t, uint32_t,
                       uint32_t, cudaStream_t stream) {
  waiting_kernel<<<1, 32, 0, stream>>>(shutdown_flag);
}

} // namespace cudaq::realtime::test
