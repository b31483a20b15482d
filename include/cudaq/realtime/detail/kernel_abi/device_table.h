// SPDX-License-Identifier: Apache-2.0
// Makes the index and the handlers that a kernel searches from a function table in device memory. Host code, compiled
// into the library and into the kernels' archive, each with its own CUDA runtime.
#pragma once

#include "cudaq/realtime/daemon/dispatcher/realtime_types.h"
#include "cudaq/realtime/detail/kernel_abi/device_params.h"
#include "cudaq/realtime/detail/kernel_abi/graph_bindings.h"
#include "cudaq/realtime/detail/ring/function_index_builder.h"

#include <cstring>
#include <string>

namespace cudaq::realtime::detail {

/// An error. No text: no error.
struct device_error {
  std::string text;
  cudaError_t cuda = cudaSuccess; ///< cudaSuccess with a text: the caller's input is wrong
  explicit operator bool() const { return !text.empty(); }
};

inline device_error cuda_result(const char *what, cudaError_t error) {
  if (error == cudaSuccess)
    return {};
  return {std::string(what) + ": " + cudaGetErrorString(error) + " (" + cudaGetErrorName(error) + ")", error};
}

/// One stream-ordered allocation: shutdown word, buckets, routes, handlers. All calls use a non-blocking stream. A
/// blocking stream would wait for kernels that run without limit, and so would cudaFree.
class device_table {
public:
  /// Reads `count` entries at `entries` (device memory), builds the index and uploads it. device_calls_only: entries of
  /// another dispatch mode are refused; otherwise requests for them are answered MODE_NOT_SERVED. graphs: if not null,
  /// gets the graphs of the table; several of them may serve one function id and routing key.
  device_error load(const cudaq_function_entry_t *entries, std::uint32_t count, cudaStream_t stream,
                    bool device_calls_only = false, std::vector<graph_binding> *graphs = nullptr) {
    std::vector<cudaq_function_entry_t> copy(count);
    if (count != 0)
      if (device_error e =
              cuda_result("reading the function table",
                          cudaMemcpyAsync(copy.data(), entries, count * sizeof(copy[0]), cudaMemcpyDefault, stream)))
        return e;
    if (device_error e = cuda_result("reading the function table", cudaStreamSynchronize(stream)))
      return e;
    if (device_error e = check(copy, device_calls_only))
      return e;
    const std::vector<cudaq_function_entry_t> all = copy;
    std::vector<std::uint32_t> entry_of;
    if (graphs != nullptr) {
      if (const std::uint32_t e = first_without_graph(all); e != count)
        return {"table->entries[" + std::to_string(e) + "].handler.graph_exec is NULL"};
      entry_of = keep_one_of_each_pool(copy);
    }
    const function_index::build_result built = index_.build(copy.data(), static_cast<std::uint32_t>(copy.size()));
    const auto name = [&](std::uint32_t kept) { return std::to_string(entry_of.empty() ? kept : entry_of[kept]); };
    if (built.what != function_index::problem::none)
      return {"function table: entries " + name(built.first) + " and " + name(built.second) +
              " have the same function_id " +
              (built.what == function_index::problem::duplicate ? "and routing key" : "in different dispatch modes")};
    if (graphs != nullptr)
      *graphs = bind_graphs(all, index_.view());
    return upload(index_.view(), copy, stream);
  }

  void release(cudaStream_t stream) {
    if (block_ != nullptr)
      cudaFreeAsync(block_, stream);
    block_ = nullptr;
  }

  void fill(dispatch_params &params) const {
    params.index = view_;
    params.handlers = handlers_;
    params.library_shutdown = reinterpret_cast<const std::uint32_t *>(block_);
  }
  std::uint8_t *shutdown_word() const { return block_; }
  /// The index of the last load, in host memory.
  const function_index &host_index() const { return index_; }

private:
  static device_error check(const std::vector<cudaq_function_entry_t> &entries, bool device_calls_only) {
    for (std::size_t e = 0; e < entries.size(); ++e) {
      const std::string which = "table->entries[" + std::to_string(e) + "]";
      if (entries[e].dispatch_mode > CUDAQ_DISPATCH_HOST_CALL)
        return {which + ".dispatch_mode is " + std::to_string(entries[e].dispatch_mode) + ", allowed: 0..2"};
      if (device_calls_only && entries[e].dispatch_mode != CUDAQ_DISPATCH_DEVICE_CALL)
        return {which + ".dispatch_mode is " + std::to_string(entries[e].dispatch_mode) +
                ": a unified kernel serves 0 (device call) only"};
      if (entries[e].dispatch_mode == CUDAQ_DISPATCH_DEVICE_CALL && entries[e].handler.device_fn_ptr == nullptr)
        return {which + ".handler.device_fn_ptr is NULL"};
      if (entries[e].schema.num_args > CUDAQ_MAX_ARGS || entries[e].schema.num_results > CUDAQ_MAX_RESULTS)
        return {which + ".schema: at most 8 arguments and 4 results"};
    }
    return {};
  }

  device_error upload(const function_index_view &index, const std::vector<cudaq_function_entry_t> &entries,
                      cudaStream_t stream) {
    const std::size_t bucket_bytes = (index.bucket_mask + 1) * sizeof(function_bucket);
    const std::size_t route_bytes = index.num_routes * sizeof(function_route);
    const std::size_t handlers_at = kLine + (bucket_bytes + 15) / 16 * 16 + route_bytes;
    const std::size_t routes_at = handlers_at - route_bytes;
    std::vector<std::uint8_t> image(handlers_at + index.num_routes * sizeof(std::uint64_t));
    std::memcpy(&image[kLine], index.buckets, bucket_bytes);
    if (route_bytes != 0)
      std::memcpy(&image[routes_at], index.routes, route_bytes);
    for (std::uint32_t r = 0; r < index.num_routes; ++r)
      std::memcpy(&image[handlers_at + r * sizeof(std::uint64_t)], &entries[index.routes[r].entry].handler,
                  sizeof(std::uint64_t));
    void *block = nullptr;
    if (device_error e = cuda_result("cudaMallocAsync", cudaMallocAsync(&block, image.size(), stream)))
      return e;
    block_ = static_cast<std::uint8_t *>(block);
    if (device_error e = cuda_result("uploading the function index", cudaMemcpyAsync(block_, image.data(), image.size(),
                                                                                     cudaMemcpyHostToDevice, stream)))
      return e;
    if (device_error e = cuda_result("uploading the function index", cudaStreamSynchronize(stream)))
      return e;
    view_ = index;
    view_.buckets = reinterpret_cast<const function_bucket *>(block_ + kLine);
    view_.routes = reinterpret_cast<const function_route *>(block_ + routes_at);
    handlers_ = reinterpret_cast<const std::uint64_t *>(block_ + handlers_at);
    return {};
  }

  static constexpr std::size_t kLine = 128; ///< bytes of the shutdown word, which has a line of its own
  std::uint8_t *block_ = nullptr;
  function_index index_;
  function_index_view view_; ///< the copy on the device
  const std::uint64_t *handlers_ = nullptr;
};

} // namespace cudaq::realtime::detail
