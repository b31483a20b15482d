// SPDX-License-Identifier: Apache-2.0
// A dispatcher on the device path and what it needs on the GPU, owned together.
#pragma once

#include "tools/services/ring_service.h"

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace cudaq::realtime::tools {

/// A CUDA call failed, or there is no GPU; the text says which call and why.
class gpu_error : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// Throws gpu_error unless error is cudaSuccess. `call` names what was tried.
void require_cuda(cudaError_t error, const char *call);

/// Ends the process: a kernel does not end, and whatever would be freed now waits for it.
[[noreturn]] void abandon(const std::string &what);

/// Makes `device` current on the calling thread and loads the kernels of the archive, which lazy loading could not do
/// any more once one of them runs. Throws gpu_error when there is no such GPU.
void open_gpu(int device);

/// A non-blocking stream: others wait for kernels that run for ever.
class gpu_stream {
public:
  gpu_stream();
  ~gpu_stream();
  gpu_stream(const gpu_stream &) = delete;
  gpu_stream &operator=(const gpu_stream &) = delete;
  [[nodiscard]] cudaStream_t get() const noexcept { return stream_; }
  /// Waits until its work has ended; false: not within the limit.
  [[nodiscard]] bool wait(std::uint64_t limit_ns) const;

private:
  cudaStream_t stream_ = nullptr;
};

/// Zeroed device memory. Allocate and free it while no kernel runs that waits for the host.
class gpu_memory {
public:
  gpu_memory(std::size_t bytes, const gpu_stream &stream);
  ~gpu_memory();
  gpu_memory(const gpu_memory &) = delete;
  gpu_memory &operator=(const gpu_memory &) = delete;
  template <typename T>
  [[nodiscard]] T *as() const noexcept {
    return static_cast<T *>(memory_);
  }

private:
  void *memory_ = nullptr;
};

struct device_service_config : ring_service_config {
  cudaq_memory_kind_t memory = CUDAQ_MEMORY_MAPPED;
  cudaq_kernel_type_t kernel = CUDAQ_KERNEL_REGULAR;
  std::uint32_t blocks = 1;
  std::uint32_t threads = 32;
  std::uint32_t functions = 1;
  /// Fills entry number i of the table, in device memory.
  std::function<cudaError_t(cudaq_function_entry_t *entry, std::uint32_t i, cudaStream_t stream)> fill;
  std::vector<void *> graph_contexts; ///< of each entry: the entries are graphs, launched by a scheduler on the GPU
  cudaq_graph_io_kind_t graph_io_kind = CUDAQ_GRAPH_IO_FORWARDED;
};

/// Manager, ring, function table, control words in device memory, and one dispatcher with a kernel of the archive,
/// wired.
///
/// Should the kernel not end within the grace period, the destructor abandons the process: freeing anything would wait
/// for the kernel.
class device_service : public ring_service {
public:
  explicit device_service(const device_service_config &config);
};

/// Ring memory of its own, for floor kernels.
class bare_ring {
public:
  bare_ring(int device, std::uint32_t num_slots, std::uint32_t slot_bytes, cudaq_memory_kind_t memory);
  ~bare_ring();
  bare_ring(const bare_ring &) = delete;
  bare_ring &operator=(const bare_ring &) = delete;
  [[nodiscard]] const cudaq_ringbuffer_t &ring() const noexcept { return ring_; }
  [[nodiscard]] std::uint32_t num_slots() const noexcept { return num_slots_; }
  /// All flags 0; while nobody uses the ring.
  void reset(const gpu_stream &stream) const;

private:
  cudaq_ringbuffer_memory_t *memory_ = nullptr;
  cudaq_ringbuffer_t ring_{};
  std::uint32_t num_slots_;
};

} // namespace cudaq::realtime::tools
