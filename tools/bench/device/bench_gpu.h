// SPDX-License-Identifier: Apache-2.0
// What the benchmark's kernels and their launchers share; plain C++, so that host files include it as well.
//
// Floors are the least that a kernel can do, written without this library: they know beforehand that every request is
// right and what it asks for. No kernel here runs without an end: each looks at a stop word and at the clock.
#pragma once

#include "cudaq/realtime/daemon/dispatcher/cudaq_realtime.h"

#include <cstdint>

namespace cudaq::realtime::tools {

enum class floor_kind : std::uint8_t {
  in_order,          ///< one block: flag, frame in and out by all threads, tx flag, rx flag cleared
  in_order_counting, ///< the same without clearing: both flags of a slot count up
  flag_only,         ///< counting flags, no frame is touched
  lane_per_slot,     ///< every thread serves one slot of 32 bytes, in any order
  device_ping_pong,  ///< device scope: flag, first 32 bytes read, their first payload word | 1 becomes the tx flag
};

/// What a floor or producer kernel leaves behind, in device memory.
struct kernel_report {
  std::uint64_t empty_polls; ///< of the first thread
  std::uint64_t run_ns;      ///< from its first poll to its end
  std::uint64_t run_cycles;
  std::uint64_t done;      ///< producer: exchanges completed
  std::uint64_t wrong;     ///< producer: replies that were not right
  std::uint64_t timed_out; ///< nothing came for idle_limit_ns
};

/// How a kernel ends; device pointers.
struct kernel_control {
  const std::uint32_t *stop; ///< set by the host; device memory, so that looking at it does not cross the bus
  kernel_report *report;
  std::uint64_t idle_limit_ns; ///< without any request or answer
};

struct floor_plan {
  floor_kind kind = floor_kind::in_order;
  std::uint32_t slots = 0;
  std::uint32_t frame_bytes = 64; ///< in_order: moved each way, a multiple of 16
  std::uint32_t blocks = 1;
  std::uint32_t threads = 32;
};
cudaError_t launch_floor(const floor_plan &plan, const cudaq_ringbuffer_t &ring, const kernel_control &control,
                         cudaStream_t stream);

/// A kernel of one thread that plays the network interface on a ring in device memory: 8 bytes of random payload, one
/// request at a time, in ring order from slot 0.
struct producer_plan {
  std::uint32_t slots = 0;
  std::uint32_t function_id = 0;
  std::uint64_t seed = 0;
  std::uint64_t warm_up = 0;
  std::uint64_t exchanges = 0;
  std::uint32_t *cycles = nullptr; ///< device memory, one for each exchange: raising rx to seeing tx, by clock64
  bool ping_pong = false;          ///< against floor_kind::device_ping_pong
};
cudaError_t launch_producer(const producer_plan &plan, const cudaq_ringbuffer_t &ring, const kernel_control &control,
                            cudaStream_t stream);

/// DEVICE_CALL handlers.
enum class bench_handler : std::uint8_t {
  echo,              ///< one thread, 8 bytes at a time
  add_words,         ///< one thread adds 1 to each 4-byte word, in the most naive way
  add_words_batched, ///< the same, eight loads of 8 bytes before their stores
  last_word,         ///< reads the first word, writes the last one only
  add_bytes,         ///< cooperative: all threads of the grid add 1 to each byte, one byte a thread and step
};
/// Fills one entry of a function table in device memory: the address of a device function is known to kernels only.
cudaError_t fill_table_entry(cudaq_function_entry_t *entry, std::uint32_t function_id, bench_handler handler,
                             cudaStream_t stream);

/// Loads every kernel of the benchmark: a first launch would wait for kernels that run.
cudaError_t preload_bench_floors();
cudaError_t preload_bench_handlers();

} // namespace cudaq::realtime::tools
