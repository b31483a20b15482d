// SPDX-License-Identifier: Apache-2.0
// What the benchmark's kernels and their launchers share. Plain C++: host files include it, too.
//
// A floor is the smallest kernel that can do the work, written without this library. It assumes that every request is
// right and calls the same function. Each kernel here checks a stop word and the clock, so it ends even if the host
// does not stop it.
#pragma once

#include "cudaq/realtime/daemon/dispatcher/realtime_types.h"

#include <cstdint>
#include <cuda_runtime_api.h>

namespace cudaq::realtime::tools {

enum class floor_kind : std::uint8_t {
  in_order,          ///< one block: flag, frame in and out by all threads, tx flag, rx flag cleared
  in_order_rx_first, ///< the same, but the rx flag is cleared before the tx flag is set
  in_order_counting, ///< the same without clearing: both flags of a slot count up
  flag_only,         ///< counting flags, no frame is touched
  lane_per_slot,     ///< every thread serves one slot of 32 bytes, in any order
  device_ping_pong,  ///< device scope: flag, reads 32 bytes, stores their first payload word | 1 as tx flag
  device_frames,     ///< device scope: flag, reads 32 bytes, writes 32 bytes, tx flag, rx flag cleared
  system_frames,     ///< the same at system scope
};

/// The report that a floor or producer kernel writes into device memory at its end.
struct kernel_report {
  std::uint64_t empty_polls; ///< of the first thread
  std::uint64_t run_ns;      ///< from its first poll to its end
  std::uint64_t run_cycles;
  std::uint64_t done;      ///< producer: exchanges completed
  std::uint64_t wrong;     ///< producer: wrong replies
  std::uint64_t timed_out; ///< not 0: no request or answer came for idle_limit_ns
};

/// What ends a kernel, and where it reports; device pointers.
struct kernel_control {
  const std::uint32_t *stop; ///< the host sets it; in device memory, so that reading it is no PCIe read
  kernel_report *report;
  std::uint64_t idle_limit_ns; ///< longest time without a request or an answer
};

struct floor_plan {
  floor_kind kind = floor_kind::in_order;
  std::uint32_t slots = 0;
  std::uint32_t frame_bytes = 64; ///< in_order: bytes in each direction, a multiple of 16
  std::uint32_t blocks = 1;
  std::uint32_t threads = 32;
};
cudaError_t launch_floor(const floor_plan &plan, const cudaq_ringbuffer_t &ring, const kernel_control &control,
                         cudaStream_t stream);

/// A kernel of one thread that acts as the network interface of a ring in device memory. It sends one request at a
/// time, with 8 bytes of random payload, in ring order from slot 0.
struct producer_plan {
  std::uint32_t slots = 0;
  std::uint32_t function_id = 0;
  std::uint64_t seed = 0;
  std::uint64_t warm_up = 0;
  std::uint64_t exchanges = 0;
  std::uint32_t *cycles = nullptr; ///< device memory; of each exchange: from setting rx to seeing tx, by clock64
  bool ping_pong = false;          ///< the server is floor_kind::device_ping_pong
  bool system_scope = false;       ///< of its accesses to flags; device scope otherwise
};
cudaError_t launch_producer(const producer_plan &plan, const cudaq_ringbuffer_t &ring, const kernel_control &control,
                            cudaStream_t stream);

/// DEVICE_CALL handlers.
enum class bench_handler : std::uint8_t {
  echo,              ///< one thread, 8 bytes at a time
  add_words,         ///< one thread adds 1 to each 4-byte word, in a plain loop
  add_words_batched, ///< the same, eight loads of 8 bytes before their stores
  last_word,         ///< reads the first word, writes the last one only
  add_bytes,         ///< cooperative: all threads of the grid add 1 to each byte, one byte per thread and step
};
/// Fills one entry of a function table in device memory. It launches a kernel, because only device code can take the
/// address of a device function.
cudaError_t fill_table_entry(cudaq_function_entry_t *entry, std::uint32_t function_id, bench_handler handler,
                             cudaStream_t stream);

/// Load every kernel of the benchmark. Without this, the first launch of a kernel would wait for running kernels.
cudaError_t preload_bench_floors();
cudaError_t preload_bench_handlers();

} // namespace cudaq::realtime::tools
