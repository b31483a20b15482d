// SPDX-License-Identifier: Apache-2.0
// Allocates and frees the memory of a ring.
#pragma once

#include "lib/gpu_memory/mapped_device_memory.h"

#include "cudaq/realtime/detail/ring/ring_record.h"

#include <cstddef>
#include <vector>

struct cudaq_ringbuffer_memory_t {
  ~cudaq_ringbuffer_memory_t();                  ///< frees `requests` and `refused` only
  std::uint32_t memory_kind = CUDAQ_MEMORY_HOST; ///< never AUTO
  int device_id = 0;
  std::uint32_t num_slots = 0;
  void *base = nullptr; ///< host address, or device address for CUDAQ_MEMORY_DEVICE
  std::size_t bytes = 0;
  std::unique_ptr<cudaq::realtime::detail::mapped_device_memory> requests; ///< CUDAQ_MEMORY_DEVICE_RX
  /// Of ways that failed, and of AUTO: freeing it earlier would wait for the kernels of the device.
  std::vector<std::unique_ptr<cudaq::realtime::detail::mapped_device_memory>> refused;
  std::string reason;                                     ///< why this kind and this mapping
  cudaq::realtime::detail::ring_record *record = nullptr; ///< NULL for CUDAQ_MEMORY_DEVICE
  cudaq_ringbuffer_t ring{};

  cudaq::realtime::detail::shared_word<std::uint32_t> producers; ///< 1 while a producer's handle is open
  std::uint32_t next_slot = 0;                                   ///< first slot of the next handle
};

namespace cudaq::realtime::detail {

/// Allocates zeroed memory of `bytes` bytes for the arrays that lie in one block. For CUDAQ_MEMORY_DEVICE_RX: the
/// block in host memory.
expected<> allocate_block(const cudaq_ringbuffer_options_t &o, cudaq_ringbuffer_memory_t &memory);
expected<> free_block(const cudaq_ringbuffer_memory_t &memory);
/// The block's address for a device.
expected<> device_address(const cudaq_ringbuffer_memory_t &memory, std::uint8_t *&out);
/// Maps device memory for `requests`, which the CPU can write. `reason`: why other ways failed.
expected<> map_requests(const cudaq_ringbuffer_options_t &o, std::size_t bytes, cudaq_ringbuffer_memory_t &memory);
/// Frees `requests` and `refused` with their device current. No effect if there are none.
void release_requests(cudaq_ringbuffer_memory_t &memory);

} // namespace cudaq::realtime::detail
