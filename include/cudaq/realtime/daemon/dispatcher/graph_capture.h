// SPDX-License-Identifier: Apache-2.0
// Captures CUDA work as a graph while the process works: other threads may allocate, copy and launch at the same time,
// and kernels that run without limit may be resident. For the graph workers of host_dispatcher.h, and for programs that
// launch graphs themselves.
//
//   captured_graph graph;
//   const graph_capture_result result = capture_graph(graph, [&](cudaStream_t stream) { launch everything on stream });
//
// Header-only; uses the CUDA runtime of the program.
#ifndef CUDAQ_REALTIME_GRAPH_CAPTURE_H
#define CUDAQ_REALTIME_GRAPH_CAPTURE_H

#include "cudaq/realtime/daemon/dispatcher/cudaq_realtime.h"
#include "cudaq/realtime/detail/base/entered_device.h"

#include <cstddef>
#include <exception>
#include <new>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace cudaq::realtime {

/// Options of capture_graph.
struct graph_capture_options {
  /// The device of the graph; -1: the current device of the calling thread. The thread's current device is not changed.
  int device_id = -1;
  /// Number of runs of the work before the capture. They load lazily loaded kernels, and let libraries (TensorRT,
  /// cuBLAS) allocate memory that they cannot allocate during the capture. The runs really do the work, on the memory
  /// that its arguments name. So kernels that read a GraphIOContext or a mailbox must do nothing while the slot is
  /// null, or warm_ups must be 0.
  unsigned warm_ups = 1;
  /// Kernels can launch the graph, too (cudaGraphInstantiateFlagDeviceLaunch).
  bool device_launch = false;
};

/// CUDAQ_OK, or the reason why there is no graph. CUDAQ_ERR_CUDA: a CUDA call failed with cuda_error.
/// CUDAQ_ERR_INTERNAL: the work threw. CUDAQ_ERR_INVALID_ARG: the work put nothing on the stream.
struct graph_capture_result {
  cudaq_status_t status = CUDAQ_OK;
  cudaError_t cuda_error = cudaSuccess;
  std::string text;
  explicit operator bool() const { return status == CUDAQ_OK; }
};

/// Owns an instantiated and uploaded graph, ready for its first launch. Do not destroy it while a launch of it runs. To
/// destroy a graph for launches from the device (device_launch), CUDA waits for all kernels of the device.
class captured_graph {
public:
  captured_graph() = default;
  explicit captured_graph(cudaGraphExec_t exec, std::size_t num_nodes = 0) : exec_(exec), num_nodes_(num_nodes) {}
  ~captured_graph() { reset(); }
  captured_graph(captured_graph &&other) noexcept
      : exec_(std::exchange(other.exec_, nullptr)), num_nodes_(std::exchange(other.num_nodes_, 0)) {}
  captured_graph &operator=(captured_graph &&other) noexcept {
    std::swap(exec_, other.exec_);
    std::swap(num_nodes_, other.num_nodes_);
    return *this;
  }

  cudaGraphExec_t exec() const { return exec_; }
  std::size_t num_nodes() const { return num_nodes_; }
  explicit operator bool() const { return exec_ != nullptr; }
  /// After this call the graph belongs to the caller.
  cudaGraphExec_t release() { return std::exchange(exec_, nullptr); }
  void reset() {
    if (exec_ != nullptr)
      cudaGraphExecDestroy(exec_);
    exec_ = nullptr;
  }

private:
  cudaGraphExec_t exec_ = nullptr;
  std::size_t num_nodes_ = 0;
};

namespace detail {

/// One capture, on its own stream. The stream never stays in capture, also after an error.
class graph_capture {
public:
  explicit graph_capture(graph_capture_result &result) : result_(result) {}
  graph_capture(const graph_capture &) = delete;
  graph_capture &operator=(const graph_capture &) = delete;
  ~graph_capture() {
    if (capturing_)
      end();
    if (graph_ != nullptr)
      cudaGraphDestroy(graph_);
    if (stream_ != nullptr)
      cudaStreamDestroy(stream_);
    if (result_.status != CUDAQ_OK)
      cudaGetLastError(); // clears the error, which is in the result
  }

  template <class Work>
  bool run(Work &work, const graph_capture_options &options, captured_graph &out) {
    if (!enter(options.device_id) ||
        !did("cudaStreamCreateWithFlags", cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)))
      return false;
    for (unsigned n = 0; n < options.warm_ups; ++n)
      if (!call(work, "a warm-up run") || !did("a warm-up run", cudaStreamSynchronize(stream_)))
        return false;
    // Thread-local: calls of other threads neither fail nor end this capture. Only calls of this thread are refused.
    if (!did("cudaStreamBeginCapture", cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal)))
      return false;
    capturing_ = true;
    if (!call(work, "the work"))
      return false;
    return did("cudaStreamEndCapture", end()) && instantiate(options, out);
  }

private:
  bool fail(cudaq_status_t status, cudaError_t error, std::string text) {
    if (result_.status == CUDAQ_OK) {
      result_.status = status;
      result_.cuda_error = error;
      result_.text = std::move(text);
    }
    return false;
  }
  bool did(const char *what, cudaError_t error) {
    if (error == cudaSuccess)
      return true;
    return fail(CUDAQ_ERR_CUDA, error,
                std::string("graph capture: ") + what + ": " + cudaGetErrorString(error) + " (" +
                    cudaGetErrorName(error) + ")");
  }
  bool enter(int device) { return device < 0 || did("making the device current", device_.enter(device)); }
  cudaError_t end() {
    capturing_ = false;
    return cudaStreamEndCapture(stream_, &graph_);
  }
  template <class Work>
  bool call(Work &work, const char *what) {
    try {
      if constexpr (std::is_convertible_v<std::invoke_result_t<Work &, cudaStream_t>, cudaError_t>) {
        return did(what, work(stream_));
      } else {
        work(stream_);
        return did(what, cudaPeekAtLastError());
      }
    } catch (const std::exception &e) {
      return fail(CUDAQ_ERR_INTERNAL, cudaSuccess, std::string("graph capture: ") + what + " threw: " + e.what());
    } catch (...) {
      return fail(CUDAQ_ERR_INTERNAL, cudaSuccess, std::string("graph capture: ") + what + " threw");
    }
  }
  bool instantiate(const graph_capture_options &options, captured_graph &out) {
    std::size_t nodes = 0;
    if (!did("cudaGraphGetNodes", cudaGraphGetNodes(graph_, nullptr, &nodes)))
      return false;
    if (nodes == 0)
      return fail(CUDAQ_ERR_INVALID_ARG, cudaSuccess, "graph capture: the work put nothing on its stream");
    cudaGraphExec_t exec = nullptr;
    const unsigned long long flags = options.device_launch ? cudaGraphInstantiateFlagDeviceLaunch : 0;
    if (!did("cudaGraphInstantiate", cudaGraphInstantiate(&exec, graph_, flags)))
      return false;
    captured_graph made(exec, nodes);
    if (!did("cudaGraphUpload", cudaGraphUpload(exec, stream_)) ||
        !did("waiting for the upload", cudaStreamSynchronize(stream_)))
      return false;
    out = std::move(made);
    return true;
  }

  graph_capture_result &result_;
  cudaStream_t stream_ = nullptr;
  cudaGraph_t graph_ = nullptr;
  bool capturing_ = false;
  realtime::detail::entered_device device_;
};

} // namespace detail

/// Makes room on the current device for `count` streams and graphs for launches from the device, in all. The driver
/// keeps them in a pool of about 35 at first. The pool grows only while nothing runs on the device: a call that needs
/// one more waits for all running kernels, without limit if one of them does not end. So call this before the first
/// such kernel. The room that it makes stays in the pool. Returns the first error.
inline cudaError_t reserve_streams(std::size_t count) {
  std::vector<cudaStream_t> streams;
  try {
    streams.reserve(count); // before the first stream is made: a stream without a place could not be destroyed
  } catch (const std::exception &) {
    return cudaErrorMemoryAllocation;
  }
  cudaError_t first = cudaSuccess;
  while (streams.size() < count && first == cudaSuccess) {
    cudaStream_t made = nullptr;
    first = cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking);
    if (first == cudaSuccess)
      streams.push_back(made);
  }
  for (const cudaStream_t stream : streams)
    cudaStreamDestroy(stream);
  return first;
}

/// Captures the work that `work(stream)` puts on the stream, then instantiates and uploads the graph. If that fails,
/// `out` is not changed, and no stream stays in capture.
///
/// `work` returns void or a cudaError_t, and may throw. It is called warm_ups + 1 times, on the calling thread. If it
/// forks to other streams, it must join them again. While it is captured it must not make calls that wait or allocate
/// (cudaMalloc, cudaStreamSynchronize); other threads may. Work that returns void fails also if the thread's last CUDA
/// error is set: so call this with no error pending.
template <class Work>
graph_capture_result capture_graph(captured_graph &out, Work &&work, const graph_capture_options &options = {}) {
  graph_capture_result result;
  detail::graph_capture(result).run(work, options, out);
  return result;
}

} // namespace cudaq::realtime

#endif
