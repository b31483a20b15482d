// SPDX-License-Identifier: Apache-2.0
// A function table in device memory, built from the host.
//
//   device_function_table table(stream);
//   table.add("mock_decode", device_handler<mock_decode_rpc>(), mock_decode_schema());
//   table.upload();
//   const cudaq_function_table_t view = table.view(); // for cudaq_dispatcher_set_function_table
//
// A DEVICE_CALL entry does not hold an address in the GPU's memory. It holds a position among the functions of one
// module. In the kernels of another module the same position is no function or another one, and the call does not
// return. A module is one .cu file, or, with relocatable device code, all files that are device-linked together. So
// there are two ways: use device_handler in the file that instantiates the dispatch kernel (dispatch_kernel.cuh), or
// compile with relocatable device code and link with the archive. The CMake target cudaq::realtime-dispatch does the
// latter.
#ifndef CUDAQ_REALTIME_DEVICE_FUNCTION_TABLE_CUH
#define CUDAQ_REALTIME_DEVICE_FUNCTION_TABLE_CUH

#if !defined(__CUDACC__)
#error "device_function_table.cuh takes addresses of device functions: compile this file with nvcc"
#endif
#if defined(CUDAQ_REALTIME_USES_DISPATCH_ARCHIVE) && !defined(__CUDACC_RDC__)
#error                                                                                                                 \
    "this program takes its dispatch kernel from the archive, so its handlers must be device-linked with it: set the \
target property CUDA_SEPARABLE_COMPILATION ON (nvcc -rdc=true). Otherwise the kernel would call into another module \
and hang"
#endif

#include "cudaq/realtime/daemon/dispatcher/dispatch_kernel_launch.h"

#include <cuda_runtime.h>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace cudaq::realtime {

namespace detail {
/// The device's value of the handler's address; set when the module is loaded. Internal linkage, here and below: two
/// files that include one definition of a handler are two modules.
template <DeviceRPCFunction Handler>
static __device__ DeviceRPCFunction handler_address = Handler;
} // namespace detail

/// Names a handler of this module for device_function_table::add.
struct device_handler_symbol {
  const void *symbol = nullptr;
};
template <DeviceRPCFunction Handler>
static device_handler_symbol device_handler() {
  return {&detail::handler_address<Handler>};
}

/// Loads the modules of these handlers. Only needed if the table is built while kernels of other modules run without
/// limit: lazy loading would wait for them. A module of which a kernel is loaded is loaded already.
inline cudaError_t preload_device_handlers(std::initializer_list<device_handler_symbol> handlers) {
  for (const device_handler_symbol &handler : handlers) {
    void *address = nullptr;
    if (const cudaError_t error = cudaGetSymbolAddress(&address, handler.symbol); error != cudaSuccess)
      return error;
  }
  return cudaSuccess;
}

/// Makes the DEVICE_CALL entry of a handler, for a table that the caller builds; device_function_table calls it itself.
/// Works in stream order and waits for the stream: `stream` as for a device_function_table.
inline cudaError_t make_device_entry(std::uint32_t function_id, device_handler_symbol handler,
                                     const cudaq_handler_schema_t &schema, cudaStream_t stream,
                                     cudaq_function_entry_t *out_entry) {
  DeviceRPCFunction address = nullptr;
  cudaError_t error =
      cudaMemcpyFromSymbolAsync(&address, handler.symbol, sizeof(address), 0, cudaMemcpyDeviceToHost, stream);
  if (error == cudaSuccess)
    error = cudaStreamSynchronize(stream);
  if (error != cudaSuccess)
    return error;
  *out_entry = {};
  out_entry->handler.device_fn_ptr = reinterpret_cast<void *>(address);
  out_entry->function_id = function_id;
  out_entry->dispatch_mode = CUDAQ_DISPATCH_DEVICE_CALL;
  out_entry->schema = schema;
  return cudaSuccess;
}

/// Entries, and their copy on the device. One thread at a time. All CUDA work is done in the order of `stream`, which
/// must be non-blocking, must belong to the current device of every call, must hold no kernel that runs without limit,
/// and must outlive the table. Such kernels may run on other streams of the device: no call waits for them.
///
/// cudaq_dispatcher_start reads the table; it need not live longer. A dispatch kernel that is launched without a
/// dispatcher needs it until the kernel ends.
class device_function_table {
public:
  explicit device_function_table(cudaStream_t stream) : stream_(stream) {}
  ~device_function_table() { release(); }
  device_function_table(device_function_table &&other) noexcept
      : stream_(other.stream_), entries_(std::move(other.entries_)), device_(std::exchange(other.device_, nullptr)),
        uploaded_(std::exchange(other.uploaded_, 0u)), error_text_(std::move(other.error_text_)) {}
  device_function_table &operator=(device_function_table &&other) noexcept {
    if (this != &other) {
      release();
      stream_ = other.stream_;
      entries_ = std::move(other.entries_);
      device_ = std::exchange(other.device_, nullptr);
      uploaded_ = std::exchange(other.uploaded_, 0u);
      error_text_ = std::move(other.error_text_);
    }
    return *this;
  }

  /// Adds a DEVICE_CALL handler. On an error error_text() holds the reason. The entry is on the device after the next
  /// upload().
  cudaError_t add(std::uint32_t function_id, device_handler_symbol handler, const cudaq_handler_schema_t &schema = {}) {
    if (const cudaError_t error = check_stream(); error != cudaSuccess)
      return error;
    cudaq_function_entry_t entry;
    const cudaError_t error = make_device_entry(function_id, handler, schema, stream_, &entry);
    if (error == cudaSuccess)
      entries_.push_back(entry);
    return result("reading the handler's address", error);
  }
  /// The same with the function id of a name.
  cudaError_t add(const char *name, device_handler_symbol handler, const cudaq_handler_schema_t &schema = {}) {
    return add(fnv1a_hash(name), handler, schema);
  }

  /// Adds a complete entry, for instance a GRAPH_LAUNCH one.
  void add(const cudaq_function_entry_t &entry) { entries_.push_back(entry); }

  /// Copies the entries to the device and waits for the copy. May be called again after more entries were added;
  /// earlier views are invalid then.
  cudaError_t upload() {
    if (const cudaError_t error = check_stream(); error != cudaSuccess)
      return error;
    if (entries_.empty())
      return result("upload: the table has no entry", cudaErrorInvalidValue);
    const std::size_t bytes = entries_.size() * sizeof(entries_[0]);
    void *fresh = nullptr;
    if (const cudaError_t error = result("allocating the function table", cudaMallocAsync(&fresh, bytes, stream_));
        error != cudaSuccess)
      return error;
    cudaError_t error = cudaMemcpyAsync(fresh, entries_.data(), bytes, cudaMemcpyHostToDevice, stream_);
    if (error == cudaSuccess)
      error = cudaStreamSynchronize(stream_);
    if (error != cudaSuccess) {
      (void)cudaFreeAsync(fresh, stream_);
      return result("copying the function table", error);
    }
    release();
    device_ = static_cast<cudaq_function_entry_t *>(fresh);
    uploaded_ = static_cast<std::uint32_t>(entries_.size());
    return cudaSuccess;
  }

  /// The table on the device, as of the last upload; valid while this object lives.
  cudaq_function_table_t view() const { return {device_, uploaded_}; }
  /// The reason of the last failed call; empty before the first failure.
  const std::string &error_text() const { return error_text_; }

private:
  /// A blocking stream (the legacy default stream is one) would wait for kernels that run without limit.
  cudaError_t check_stream() {
    unsigned flags = 0;
    if (const cudaError_t error = result("reading the flags of the stream", cudaStreamGetFlags(stream_, &flags));
        error != cudaSuccess)
      return error;
    return result("the stream of a device_function_table must be made with cudaStreamNonBlocking",
                  (flags & cudaStreamNonBlocking) != 0 ? cudaSuccess : cudaErrorInvalidValue);
  }
  cudaError_t result(const char *what, cudaError_t error) {
    if (error != cudaSuccess)
      error_text_ = std::string(what) + ": " + cudaGetErrorString(error) + " (" + cudaGetErrorName(error) + ")";
    return error;
  }
  /// In stream order. cudaFree would wait for every kernel of the device.
  void release() {
    if (device_ != nullptr)
      (void)cudaFreeAsync(device_, stream_);
    device_ = nullptr;
    uploaded_ = 0;
  }

  cudaStream_t stream_;
  std::vector<cudaq_function_entry_t> entries_;
  cudaq_function_entry_t *device_ = nullptr;
  std::uint32_t uploaded_ = 0;
  std::string error_text_;
};

} // namespace cudaq::realtime

#endif
