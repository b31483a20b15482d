// SPDX-License-Identifier: Apache-2.0
// Launches a kernel from the launch parameters. Host code of the program that instantiates the kernel, with that
// program's CUDA runtime.
#pragma once

#include "cudaq/realtime/detail/kernel_abi/device_table.h"
#include "cudaq/realtime/detail/kernel_abi/launch_state.h"
#include "cudaq/realtime/detail/loop/dispatch_body.cuh"
#include "cudaq/realtime/detail/ring/ring_record.h"
#include "cudaq/realtime/detail/ring/ring_view.h"

#include <algorithm>
#include <cstdio>

namespace cudaq::realtime::detail {

inline constexpr std::uint32_t kMaxThreads = 256; ///< with one-thread handlers: more threads do not make copies faster
inline constexpr std::uint32_t kMaxGridThreads = 512; ///< per block of a cooperative kernel: 128 registers per thread

/// Receives the result of a launch. Without a state only the error code remains.
struct launch_report {
  cudaq_dispatch_launch_state_t *state;

  /// Records the number of blocks that stay resident if the launch succeeds.
  void will_hold(std::uint32_t blocks) const {
    if (state != nullptr)
      state->resident_blocks = blocks;
  }
  template <class... Values>
  cudaError_t operator()(cudaError_t error, const char *format, Values... values) const {
    if (state != nullptr && error != cudaSuccess) {
      state->error = error;
      if constexpr (sizeof...(Values) == 0) // some compilers warn if a text is used as a format
        std::snprintf(state->text, sizeof(state->text), "%s", format);
      else
        std::snprintf(state->text, sizeof(state->text), format, values...);
    }
    return error;
  }
};

/// How a kernel that serves a ring alone accesses it. posted: the requests lie in device memory, and it has laps.
enum class ring_access : std::uint8_t { system_scope, device_scope, posted };
inline ring_access access_of(const dispatch_params &params) {
  return params.ring.lap_offset != 0 ? ring_access::posted
         : params.device_scope       ? ring_access::device_scope
                                     : ring_access::system_scope;
}

/// All kernels among which a launch chooses.
template <class Kernel, class Handlers>
struct kernel_choice {
  using function = void (*)(dispatch_params);
  using any_function = void (*)(dispatch_params, std::uint32_t);

  static function in_order(ring_access access, std::uint32_t threads) {
    switch (access) {
    case ring_access::device_scope:
      return in_order<own_ring<thread_scope_device>>(threads);
    case ring_access::posted:
      return in_order<posted_ring>(threads);
    case ring_access::system_scope:
      break;
    }
    return in_order<own_ring<thread_scope_system>>(threads);
  }
  static function shared([[maybe_unused]] ring_sharing sharing, [[maybe_unused]] std::uint32_t threads) {
    if constexpr (Handlers::kSharesRings)
      return sharing == ring_sharing::routed ? in_order<routed_ring>(threads) : in_order<common_ring>(threads);
    else
      return nullptr;
  }
  static any_function side_by_side(ring_access access) {
    switch (access) {
    case ring_access::device_scope:
      return dispatch_side_by_side_kernel<Handlers, own_ring<thread_scope_device>, kMaxThreads>;
    case ring_access::posted:
      return dispatch_side_by_side_kernel<Handlers, posted_ring, kMaxThreads>;
    case ring_access::system_scope:
      break;
    }
    return dispatch_side_by_side_kernel<Handlers, own_ring<thread_scope_system>, kMaxThreads>;
  }

  /// Loads all kernels and allows each the largest shared memory: after this, no kernel has to be loaded while the
  /// first one runs.
  static cudaError_t preload() {
    int device = 0, max_memory = 0;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess)
      error = cudaDeviceGetAttribute(&max_memory, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    const auto prepare = [&](auto kernel) {
      if (error == cudaSuccess)
        error = cudaFuncSetAttribute(reinterpret_cast<const void *>(kernel),
                                     cudaFuncAttributeMaxDynamicSharedMemorySize, max_memory);
    };
    for (const ring_access access : {ring_access::system_scope, ring_access::device_scope, ring_access::posted}) {
      for (const std::uint32_t threads : {32u, kMaxGridThreads})
        prepare(in_order(access, threads));
      if constexpr (!Kernel::is_cooperative)
        prepare(side_by_side(access));
    }
    if constexpr (Handlers::kSharesRings)
      for (const ring_sharing sharing : {ring_sharing::routed, ring_sharing::left_in_place})
        for (const std::uint32_t threads : {32u, kMaxGridThreads})
          prepare(shared(sharing, threads));
    return error;
  }

private:
  template <class Ring>
  static function in_order([[maybe_unused]] std::uint32_t threads) {
    if constexpr (Kernel::is_cooperative)
      if (threads > kMaxThreads)
        return dispatch_in_order_kernel<Kernel, Handlers, Ring, kMaxGridThreads>;
    return dispatch_in_order_kernel<Kernel, Handlers, Ring, kMaxThreads>;
  }
};

/// Number of blocks of a kernel that can be resident together with `reserved` blocks of other kernels. Each reserved
/// block counts as a whole multiprocessor.
inline cudaError_t room_for_blocks(const void *kernel, std::uint32_t threads, std::uint32_t memory,
                                   std::uint32_t reserved, std::uint32_t &room) {
  int device = 0, multiprocessors = 0, each = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess)
    error = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  if (error == cudaSuccess)
    error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernel, static_cast<int>(threads), memory);
  const auto all = static_cast<std::uint32_t>(multiprocessors);
  room = static_cast<std::uint32_t>(each) * (all - std::min(all, reserved));
  return error;
}

template <class Kernel, class Handlers>
cudaError_t launch_in_order(const dispatch_params &params, std::uint32_t blocks, std::uint32_t threads,
                            cudaStream_t stream, const launch_report &report) {
  using choice = kernel_choice<Kernel, Handlers>;
  threads = Kernel::is_cooperative ? threads : std::min(threads, kMaxThreads);
  const bool alone = params.sharing == ring_sharing::alone;
  const auto kernel = alone ? choice::in_order(access_of(params), threads) : choice::shared(params.sharing, threads);
  if (kernel == nullptr)
    return report(cudaErrorNotSupported, "shared_ring_mode: only kernels of the archive share a ring, this one was "
                                         "instantiated in the program");
  const auto *symbol = reinterpret_cast<const void *>(kernel);
  const std::uint32_t memory = kernel_memory(params.ring.slot_size, kInOrderStaging<Kernel>) +
                               (params.sharing == ring_sharing::routed ? routed_ring::kTrailingBytes : 0);
  dispatch_params copy = params;
  void *arguments[] = {&copy};
  report.will_hold(Kernel::is_cooperative ? blocks : 1);
  if (!Kernel::is_cooperative)
    return report(cudaLaunchKernel(symbol, dim3(1), dim3(threads), arguments, memory, stream),
                  "launch of a block of %u threads failed", threads);
  if (threads > kMaxGridThreads)
    return report(cudaErrorInvalidConfiguration, "cooperative blocks have at most %u threads, not %u: use more blocks",
                  kMaxGridThreads, threads);
  const std::uint32_t reserved = report.state != nullptr ? report.state->reserved_blocks : 0;
  std::uint32_t room = 0;
  if (const cudaError_t error = room_for_blocks(symbol, threads, memory, reserved, room))
    return report(error, "occupancy of the cooperative kernel with %u threads", threads);
  if (blocks > room)
    return report(cudaErrorCooperativeLaunchTooLarge,
                  "a cooperative grid of %u blocks of %u threads would never start: with %u resident blocks of other "
                  "kernels there is room for %u",
                  blocks, threads, reserved, room);
  return report(cudaLaunchCooperativeKernel(symbol, dim3(blocks), dim3(threads), arguments, memory, stream),
                "cooperative launch of %u blocks of %u threads failed", blocks, threads);
}

/// Launches the requested number of groups, or fewer if fewer cover the ring, or if fewer can be resident: a group that
/// never runs would leave its slots unserved. If the staging of a block exceeds the shared memory, the block gets fewer
/// warps.
template <class Kernel, class Handlers>
cudaError_t launch_side_by_side(const dispatch_params &params, std::uint32_t blocks, std::uint32_t threads,
                                cudaStream_t stream, const launch_report &report) {
  const auto kernel = kernel_choice<Kernel, Handlers>::side_by_side(access_of(params));
  const auto *symbol = reinterpret_cast<const void *>(kernel);
  int device = 0, max_memory = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess)
    error = cudaDeviceGetAttribute(&max_memory, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  if (error != cudaSuccess)
    return report(error, "shared memory of the device");
  std::uint32_t each = std::min(threads, kMaxThreads) / 32;
  while (each > 1 &&
         kernel_memory(params.ring.slot_size, answer_staging::by_lane, each) > static_cast<std::uint32_t>(max_memory))
    --each;
  const std::uint32_t memory = kernel_memory(params.ring.slot_size, answer_staging::by_lane, each);
  const std::uint32_t reserved = report.state != nullptr ? report.state->reserved_blocks : 0;
  std::uint32_t room = 0;
  if (const cudaError_t refused = room_for_blocks(symbol, each * 32, memory, reserved, room))
    return report(refused, "occupancy of the kernel with %u warps", each);
  if (room == 0)
    return report(cudaErrorLaunchOutOfResources,
                  "no room for a block of %u warps: %u blocks of other kernels are resident", each, reserved);
  std::uint32_t groups = std::min(num_loops(true, blocks, threads), (params.ring.num_slots + 31) / 32);
  const std::uint32_t grid = std::min((groups + each - 1) / each, room);
  groups = std::min(groups, grid * each);
  dispatch_params copy = params;
  void *arguments[] = {&copy, &groups};
  report.will_hold(grid);
  return report(cudaLaunchKernel(symbol, dim3(grid), dim3(each * 32), arguments, memory, stream),
                "launch of %u warps failed", groups);
}

template <class Kernel, class Handlers>
cudaError_t launch(const dispatch_params &params, std::uint32_t blocks, std::uint32_t threads, cudaStream_t stream,
                   const launch_report &report) {
  if (const cudaError_t error = kernel_choice<Kernel, Handlers>::preload())
    return report(error, "loading the dispatch kernel: %s", cudaGetErrorString(error));
  blocks = blocks == 0 ? 1 : blocks;
  threads = threads == 0 ? 32 : (threads + 31) / 32 * 32;
  if constexpr (!Kernel::is_cooperative)
    if (params.any_order)
      return launch_side_by_side<Kernel, Handlers>(params, blocks, threads, stream, report);
  return launch_in_order<Kernel, Handlers>(params, blocks, threads, stream, report);
}

/// Completes the view of a ring of which a launch has only the device's addresses. The tx flags of a ring with laps lie
/// in pinned host memory.
inline void find_laps(slot_ring &ring) {
  cudaPointerAttributes a{};
  if (cudaPointerGetAttributes(&a, const_cast<const void *>(static_cast<const volatile void *>(ring.tx_flags))) !=
      cudaSuccess) {
    cudaGetLastError();
    return;
  }
  const ring_record *const record =
      a.type == cudaMemoryTypeHost ? find_lap_record(static_cast<const std::uint64_t *>(a.hostPointer), ring.num_slots)
                                   : nullptr;
  if (record != nullptr) {
    ring.lap_offset = lap_distance(ring.num_slots);
    ring.rx_alias = load_relaxed(record->requests);
  }
}

/// The checks of set_ringbuffer, for rings that are passed to a launch directly.
inline cudaError_t check_ring(const slot_ring &r, const volatile int *shutdown_flag, const launch_report &report) {
  const auto at = [](const volatile void *p) { return reinterpret_cast<std::uintptr_t>(p); };
  if (r.rx_flags == nullptr || r.tx_flags == nullptr || r.rx_data == nullptr || r.tx_data == nullptr ||
      shutdown_flag == nullptr)
    return report(cudaErrorInvalidValue, "a device view of the ring, or shutdown_flag, is NULL");
  if ((at(r.rx_flags) | at(r.tx_flags) | at(r.rx_data) | at(r.tx_data) | r.rx_stride | r.tx_stride) % 8 != 0)
    return report(cudaErrorInvalidValue,
                  "addresses of flags and slots, and strides of the ring, must be multiples of 8");
  if (r.num_slots == 0 || r.slot_size < CUDAQ_RPC_HEADER_SIZE || r.slot_size > r.rx_stride || r.slot_size > r.tx_stride)
    return report(
        cudaErrorInvalidValue,
        "the ring has %u slots of %u bytes, strides %zu and %zu: at least 1 slot, of 24 bytes up to the strides",
        r.num_slots, r.slot_size, r.rx_stride, r.tx_stride);
  if (r.in_place() && (r.slot_size > kDeviceStagingBytes || r.rx_stride != r.tx_stride))
    return report(cudaErrorInvalidValue,
                  "ring in place: slots of %u bytes, at most %u are allowed; strides %zu and %zu, they must be equal",
                  r.slot_size, kDeviceStagingBytes, r.rx_stride, r.tx_stride);
  return cudaSuccess;
}

/// The ring of a launch without a dispatcher: slots of the smaller stride. Returns an error if the parameters are not
/// valid for such a launch.
inline cudaError_t ring_of(const cudaq_dispatch_launch_params_t &a, slot_ring &out) {
  const std::size_t slot = std::min(a.rx_stride_sz, a.tx_stride_sz);
  if (a.num_slots > ring_inbox::kMaxSlots || slot > UINT32_MAX || a.stats == nullptr)
    return cudaErrorInvalidValue;
  out = device_view(a, static_cast<std::uint32_t>(a.num_slots), static_cast<std::uint32_t>(slot));
  find_laps(out);
  return check_ring(out, a.shutdown_flag, launch_report{nullptr});
}

/// A launch without a dispatcher: its state is released in stream order when the kernel has ended.
template <class Launch>
cudaError_t launch_without_state(const cudaq_dispatch_launch_params_t &a, dispatch_params params, bool cooperative,
                                 Launch &&launch_with) {
  params.rules.served_modes = 1u << CUDAQ_DISPATCH_DEVICE_CALL;
  params.caller_shutdown = a.shutdown_flag;
  params.caller_stats = a.stats;
  device_table table;
  if (const device_error refused = table.load(a.function_table, static_cast<std::uint32_t>(a.func_count), a.stream)) {
    table.release(a.stream);
    return refused.cuda != cudaSuccess ? refused.cuda : cudaErrorInvalidValue;
  }
  table.fill(params);
  constexpr std::size_t kCommandAt = sizeof(loop_report), kStagingAt = kCommandAt + sizeof(grid_command);
  const std::size_t bytes = cooperative ? kStagingAt + 2 * kDeviceStagingBytes : kCommandAt;
  void *block = nullptr;
  cudaError_t error = cudaMallocAsync(&block, bytes, a.stream);
  if (error == cudaSuccess) {
    auto *const base = static_cast<std::uint8_t *>(block);
    params.reports = reinterpret_cast<loop_report *>(base);
    params.command = reinterpret_cast<grid_command *>(base + kCommandAt);
    params.grid_staging = base + kStagingAt;
    error = cudaMemsetAsync(block, 0, bytes, a.stream);
    if (error == cudaSuccess)
      error = launch_with(params);
    cudaFreeAsync(block, a.stream);
  }
  table.release(a.stream);
  return error;
}

/// Checks and returns the state in the parameters of a launch function.
inline cudaError_t state_of(void *given, cudaq_dispatch_launch_state_t *&state) {
  state = static_cast<cudaq_dispatch_launch_state_t *>(given);
  if (state == nullptr)
    return cudaSuccess;
  if (state->struct_size != sizeof(*state)) // headers of another version than the library's: its layout is unknown
    return cudaErrorInvalidValue;
  state->taken = 1;
  return cudaSuccess;
}

} // namespace cudaq::realtime::detail
