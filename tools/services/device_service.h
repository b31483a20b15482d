// SPDX-License-Identifier: Apache-2.0
// A dispatcher on the device path, together with everything that it needs on the GPU.
#pragma once

#include "cudaq/realtime/daemon/dispatcher/device_dispatch.h"
#include "tools/services/ring_service.h"

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace cudaq::realtime::tools {

/// A CUDA call failed, or there is no GPU. The text names the call and the reason.
class gpu_error : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// Throws gpu_error unless `error` is cudaSuccess. `call` names the call or the action that failed.
void require_cuda(cudaError_t error, const char *call);

/// Prints `what` and ends the process with kExitRefused, without freeing anything. For a kernel that does not end:
/// every CUDA call that frees memory would wait for it.
[[noreturn]] void abandon(const std::string &what);

/// Makes `device` current on the calling thread, and loads the kernels of the archive: while one of them runs, CUDA's
/// lazy loading cannot load another. Throws gpu_error if this GPU does not exist.
void open_gpu(int device);

/// A non-blocking stream. A blocking stream and the default stream wait for each other, so a kernel that runs until it
/// is stopped would hold up the other stream.
class gpu_stream {
public:
  gpu_stream();
  ~gpu_stream();
  gpu_stream(const gpu_stream &) = delete;
  gpu_stream &operator=(const gpu_stream &) = delete;
  [[nodiscard]] cudaStream_t get() const noexcept { return stream_; }
  /// Waits until the stream's work has ended. Returns false if it has not ended within the limit. Throws gpu_error if
  /// the work failed.
  [[nodiscard]] bool wait(std::uint64_t limit_ns) const;

private:
  cudaStream_t stream_ = nullptr;
};

/// Device memory, initialised to 0. Allocate and free it only while no kernel runs that waits for the host.
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
  /// Fills entry number i of the function table, in device memory.
  std::function<cudaError_t(cudaq_function_entry_t *entry, std::uint32_t i, cudaStream_t stream)> fill;
  cudaq_dispatch_launch_fn_v2_t launch_fn = nullptr; ///< of a kernel of the program; NULL: the archive's `kernel`
  std::vector<void *> graph_contexts; ///< one of each entry; not empty: entries are graphs, launched on the GPU
  cudaq_graph_io_kind_t graph_io_kind = CUDAQ_GRAPH_IO_FORWARDED;
};

/// Owns a manager, a ring, a function table and control words in device memory, and one dispatcher with a kernel of the
/// archive. The dispatcher is configured, not started.
///
/// If the kernel does not end within the grace period, the destructor calls abandon(), which ends the process.
class device_service : public ring_service {
public:
  explicit device_service(const device_service_config &config);
};

/// Ring memory without a dispatcher, for floor kernels.
class bare_ring {
public:
  bare_ring(int device, std::uint32_t num_slots, std::uint32_t slot_bytes, cudaq_memory_kind_t memory);
  ~bare_ring();
  bare_ring(const bare_ring &) = delete;
  bare_ring &operator=(const bare_ring &) = delete;
  [[nodiscard]] const cudaq_ringbuffer_t &ring() const noexcept { return ring_; }
  [[nodiscard]] std::uint32_t num_slots() const noexcept { return num_slots_; }
  /// Sets all flags to 0. Call it while no kernel and no thread uses the ring.
  void reset(const gpu_stream &stream) const;

private:
  cudaq_ringbuffer_memory_t *memory_ = nullptr;
  cudaq_ringbuffer_t ring_{};
  std::uint32_t num_slots_;
};

} // namespace cudaq::realtime::tools
