/* SPDX-License-Identifier: Apache-2.0 */
// The two interfaces of the AI services: an engine that runs a model, and the device on which it runs. Tests replace
// both.
#ifndef CUDAQ_QEC_REALTIME_INFERENCE_ENGINE_H
#define CUDAQ_QEC_REALTIME_INFERENCE_ENGINE_H

#include "cudaq/realtime/daemon/dispatcher/rpc_types.h"

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace cudaq::realtime {
struct GraphIOContext; // dispatch_kernel_launch.h
}

namespace cudaq::qec::realtime::experimental {

enum class tensor_type { boolean, int8, uint8, float16, bfloat16, int32, float32, int64, float8 };

constexpr std::size_t bytes_of(tensor_type type) {
  switch (type) {
  case tensor_type::boolean:
  case tensor_type::int8:
  case tensor_type::uint8:
  case tensor_type::float8:
    return 1;
  case tensor_type::float16:
  case tensor_type::bfloat16:
    return 2;
  case tensor_type::int32:
  case tensor_type::float32:
    return 4;
  case tensor_type::int64:
    return 8;
  }
  return 0;
}

/// An input or output of a model. A dimension of 0 or less is dynamic and counts as 1.
struct tensor_info {
  std::string name;
  tensor_type type;
  std::vector<std::int64_t> shape;
  bool is_input;

  std::size_t size_bytes() const {
    std::size_t n = bytes_of(type);
    for (const std::int64_t dimension : shape)
      n *= dimension > 0 ? static_cast<std::size_t>(dimension) : 1;
    return n;
  }
  /// Bytes that an engine may write, padding included.
  std::size_t memory_bytes() const { return (size_bytes() + 255) / 256 * 256; }
};

/// A model that is ready to run. Used by one thread at a time.
class inference_engine {
public:
  virtual ~inference_engine() = default;
  virtual const char *name() const noexcept = 0;
  /// In the order of the model's tensors.
  virtual const std::vector<tensor_info> &tensors() const noexcept = 0;
  /// Sets a tensor's device memory: tensors()[index].memory_bytes() bytes, aligned to 256; it must outlive the last
  /// inference. All tensors are bound before the first enqueue. Throws std::runtime_error.
  virtual void bind(std::size_t index, void *device_memory) = 0;
  /// Puts one inference on the stream. It is also called during a capture, after one call without a capture: from the
  /// second call on it neither waits nor allocates. Returns a CUDA error; throws std::runtime_error with the message
  /// of the engine's library.
  virtual cudaError_t enqueue(cudaStream_t stream) = 0;
};

/// The queue of a service as its two kernels see it. Addresses are device addresses.
struct service_queue {
  void *const *mailbox = nullptr; ///< word with the address of the request's frame; if that is null, do nothing
  /// Replaces the mailbox: addresses of the request and of the answer, and the word that reports the answer. No queue
  /// then.
  const cudaq::realtime::GraphIOContext *io = nullptr;
  std::size_t slot_bytes = 0; ///< of the frame in the mailbox, header included; 0: unknown
  std::uint8_t *input = nullptr;
  std::size_t input_bytes = 0;
  const std::uint8_t *output = nullptr;
  std::size_t output_bytes = 0;
  int depth = 0;                   ///< 0: no queue, the answer is written to the frame
  volatile int *ready = nullptr;   ///< one per entry: 0 idle, 1 ready, 2 processing
  void **frames = nullptr;         ///< one per entry: the request's frame
  std::uint32_t *sizes = nullptr;  ///< one per entry: payload bytes of the request
  std::uint8_t *outputs = nullptr; ///< depth * output_stride
  std::size_t output_stride = 0;
  int *tail = nullptr;                ///< the next entry
  const volatile int *stop = nullptr; ///< not 0: no entry will be released any more
  int *refused = nullptr;             ///< number of requests that found the queue full after a stop
};

/// Memory, kernels and captures of a device. cuda_service_device() is the real one. Failures are thrown.
class service_device {
public:
  virtual ~service_device() = default;
  struct shared_memory {
    void *host = nullptr;
    void *device = nullptr;
  };
  virtual shared_memory allocate_shared(std::size_t bytes) = 0; ///< zeroed
  virtual void free_shared(const shared_memory &memory) noexcept = 0;
  virtual void *allocate(std::size_t bytes) = 0; ///< zeroed
  virtual void free(void *memory) noexcept = 0;
  /// Copies the request to the input tensor. Waits for a free entry of the queue first.
  virtual cudaError_t enqueue_input(const service_queue &queue, cudaStream_t stream) = 0;
  /// Copies the output tensor to the entry and makes that ready. Without a queue it writes the response into the
  /// request's frame; with `io` it also publishes the response.
  virtual cudaError_t enqueue_output(const service_queue &queue, cudaStream_t stream) = 0;
  using stream_work = std::function<cudaError_t(cudaStream_t)>;
  /// Runs `warm_up` to its end, so that lazy loading is done, then captures `work` without running it.
  virtual cudaGraphExec_t capture(const stream_work &warm_up, const stream_work &work, bool device_launch) = 0;
  virtual void destroy(cudaGraphExec_t graph) noexcept = 0;
};

} // namespace cudaq::qec::realtime::experimental

#endif
