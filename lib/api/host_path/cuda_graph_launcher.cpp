// SPDX-License-Identifier: Apache-2.0
#include "lib/api/host_path/cuda_graph_launcher.h"

#include "cudaq/realtime/daemon/dispatcher/rpc_types.h"
#include "lib/api/host_path/host_workers.h"
#include "lib/base/cuda_device.h"

#include <algorithm>
#include <cuda.h>

namespace cudaq::realtime::detail {
namespace {

using write_value_fn = CUresult (*)(CUstream, CUdeviceptr, cuuint64_t, unsigned int);

/// A worker's stream may be a blocking one of the caller's: it and the legacy stream wait for each other. So no call
/// here uses the legacy stream or waits for the device as a whole.
class cuda_graph_launcher final : public graph_launcher {
public:
  cuda_graph_launcher(cudaq_dispatch_manager_t &manager, const graph_launch_setup &setup)
      : manager_(manager), setup_(setup), workers_(setup.workers.size()) {}
  ~cuda_graph_launcher() override {
    const device_guard guard(setup_.device_id);
    for (const worker &w : workers_)
      if (w.own_stream)
        cudaStreamDestroy(w.stream);
    if (probe_ != nullptr)
      cudaStreamDestroy(probe_);
    if (done_host_ != nullptr)
      manager_.give_back_mapped_block(done_host_);
  }

  expected<> prepare() {
    return on_device(setup_.device_id, [&]() -> expected<> {
      if (expected<> result = check_memory(); result.failed())
        return result;
      if (expected<> result = find_write_value(); result.failed())
        return result;
      if (expected<> result = allocate_words(); result.failed())
        return result;
      if (const cudaError_t error = cudaStreamCreateWithFlags(&probe_, cudaStreamNonBlocking))
        return cuda_failed("cudaStreamCreateWithFlags", error);
      for (std::size_t i = 0; i < workers_.size(); ++i)
        if (expected<> result = prepare_worker(i); result.failed())
          return result;
      return {};
    });
  }

  void run_on_device(const std::function<void()> &body) override {
    const device_guard guard(
        setup_.device_id); // prepare has checked the device; if it is lost since then, the launches fail
    body();
  }

  void stage(std::uint32_t index, std::uint32_t slot, launch_result &result) override {
    worker &w = workers_[index];
    const cudaq_host_worker_t &spec = setup_.workers[index];
    std::uint8_t *const rx_slot = slot_of(slot);
    result.error = w.failed = make_current(setup_.device_id); // a handler on this thread may have changed the device
    if (w.failed)
      return;
    result.error = cudaErrorUnknown; // of a hook
    if (setup_.mailbox != nullptr)
      store_release<void *>(setup_.mailbox[index], w.mail != nullptr ? w.mail : rx_slot);
    if (w.io != nullptr)
      *w.io = io_context(slot, rx_slot);
    result.hook_threw = !run_hook(spec.pre_launch_fn, spec.pre_launch_data, rx_slot, w.stream, spec.function_id);
    if (!result.hook_threw)
      result.error = 0;
  }

  void launch(std::uint32_t index, std::uint32_t slot, std::uint64_t launch_number, launch_result &result) override {
    worker &w = workers_[index];
    const cudaq_host_worker_t &spec = setup_.workers[index];
    result.error = w.failed = cudaGraphLaunch(spec.graph_exec, w.stream);
    if (w.failed)
      return;
    result.hook_threw =
        !run_hook(spec.post_launch_fn, spec.post_launch_data, slot_of(slot), w.stream, spec.function_id);
    result.error = announce_end(index, launch_number);
  }

  void launch_elsewhere(std::uint32_t index, std::uint32_t slot, bool stages, launch_result &result) override {
    worker &w = workers_[index];
    const device_guard guard(setup_.device_id);
    if (stages)
      stage(index, slot, result);
    if (!stages || result.error == 0)
      result.error = w.failed = cudaGraphLaunch(setup_.workers[index].graph_exec, w.stream);
    if (w.failed)
      cudaGetLastError(); // the thread is the caller's, which gets the error from here
  }

  const volatile std::uint64_t &done_word(std::uint32_t index) const override { return done_of(index); }

  int recover(std::uint32_t index) override {
    cudaGetLastError(); // clears the error of this thread
    worker &w = workers_[index];
    if (ends_the_context(w.failed))
      return w.failed;
    if (const int stuck = fault())
      return stuck;
    const device_guard guard(setup_.device_id);
    cudaStream_t fresh = nullptr;
    if (w.own_stream && cudaStreamCreateWithFlags(&fresh, cudaStreamNonBlocking) == cudaSuccess) {
      cudaStreamDestroy(w.stream);
      w.stream = fresh;
    }
    return 0;
  }
  // A stream may keep its own error, of a failed capture for example: only errors that end the context count. An empty
  // stream may not notice a fault, so this queries streams of workers, a few per call, and then the probe stream, which
  // has no error of its own.
  int fault() override {
    const std::size_t first = next_query_.peek();
    const std::size_t count = std::min(workers_.size(), kQueriesAtOnce);
    cudaError_t found = cudaSuccess;
    for (std::size_t n = 0; n <= count && !ends_the_context(found); ++n)
      found = query(n == count ? probe_ : workers_[(first + n) % workers_.size()].stream);
    next_query_.set((first + count) % workers_.size());
    return ends_the_context(found) ? found : cudaSuccess;
  }
  bool idle(std::uint32_t index) override { return query(workers_[index].stream) != cudaErrorNotReady; }
  bool on_blocking_stream(std::uint32_t index) const override { return workers_[index].blocking; }

private:
  /// Has the done word written after all work of the stream. Returns an error if the stream's work is lost.
  int announce_end(std::uint32_t index, std::uint64_t launch_number) {
    worker &w = workers_[index];
    if (setup_.workers[index].completion == CUDAQ_WORKER_CALLER_PUBLISHES ||
        write_value_(w.stream, done_device_ + index * kDoneStride, launch_number, 0) == CUDA_SUCCESS)
      return 0;
    // The graph runs already: its request must not be answered before its end. So wait for it here.
    w.failed = cudaStreamSynchronize(w.stream);
    if (w.failed == cudaSuccess)
      store_release(done_of(index), launch_number);
    return w.failed;
  }

  static constexpr std::size_t kDoneStride = 64, kContextStride = 64;
  static_assert(sizeof(GraphIOContext) <= kContextStride);
  static constexpr std::size_t kQueriesAtOnce = 8;

  struct worker {
    cudaStream_t stream = nullptr;
    bool own_stream = false;
    bool blocking = false;            ///< its stream and the legacy stream wait for each other
    cudaError_t failed = cudaSuccess; ///< error of its last launch
    GraphIOContext *io = nullptr;     ///< its context, if it has one
    void *mail = nullptr;             ///< the value for the mailbox; NULL: the address of the slot
  };

  /// Any thread; it does not need a current device. Clears the thread's last CUDA error.
  cudaError_t query(cudaStream_t stream) const {
    const cudaError_t found = query_stream(setup_.device_id, stream);
    cudaGetLastError();
    return found;
  }
  std::uint8_t *slot_of(std::uint32_t slot) const { return setup_.ring.rx_data + slot * setup_.ring.rx_stride_sz; }
  volatile std::uint64_t &done_of(std::uint32_t index) const { return done_host_[index * (kDoneStride / 8)]; }

  GraphIOContext io_context(std::uint32_t slot, std::uint8_t *rx_slot) const {
    const bool in_place = setup_.host_ring.in_place();
    std::uint8_t *tx_slot = in_place ? rx_slot : setup_.ring.tx_data + slot * setup_.ring.tx_stride_sz;
    return {rx_slot, tx_slot, setup_.ring.tx_flags + slot,
            reinterpret_cast<std::uint64_t>(setup_.host_ring.tx_slot(slot)), setup_.host_ring.tx_stride};
  }

  // Without this check, a graph that reads plain host memory would end the context at its first request.
  expected<> check_memory() const {
    int pageable = 0;
    cudaDeviceGetAttribute(&pageable, cudaDevAttrPageableMemoryAccess, setup_.device_id);
    const auto check = [&](const char *what, const volatile void *address, bool host_writes = false) -> expected<> {
      cudaPointerAttributes seen{};
      if (address == nullptr)
        return {};
      if (const cudaError_t error = cudaPointerGetAttributes(&seen, const_cast<const void *>(address)))
        return cuda_failed("cudaPointerGetAttributes", error);
      if (host_writes && seen.type == cudaMemoryTypeDevice)
        return make_reason(CUDAQ_ERR_INVALID_ARG,
                           "%s is %p, device memory: the host must be able to write it; use mapped memory", what,
                           const_cast<const void *>(address));
      return check_reachable(what, address, seen, pageable != 0);
    };
    expected<> result = check("ringbuffer->rx_data", setup_.ring.rx_data);
    if (result.ok())
      result = check("ringbuffer->tx_data", setup_.ring.tx_data);
    if (result.ok())
      result = check("the mailbox", setup_.mailbox, true);
    if (result.ok() && setup_.own_contexts)
      result = check("ringbuffer->tx_flags", setup_.ring.tx_flags);
    for (std::size_t i = 0; i < setup_.workers.size() && result.ok(); ++i)
      if (setup_.workers[i].io_ctx != nullptr) {
        result = check(("workers[" + std::to_string(i) + "].io_ctx").c_str(), setup_.workers[i].io_ctx, true);
        if (result.ok())
          result = check("ringbuffer->tx_flags", setup_.ring.tx_flags);
      }
    return result;
  }

  expected<> find_write_value() {
    void *symbol = nullptr;
    cudaDriverEntryPointQueryResult found{};
    if (const cudaError_t error =
            cudaGetDriverEntryPointByVersion("cuStreamWriteValue64", &symbol, 12000, cudaEnableDefault, &found))
      return cuda_failed("cudaGetDriverEntryPointByVersion", error);
    if (found != cudaDriverEntryPointSuccess)
      return make_reason(CUDAQ_ERR_UNSUPPORTED, "the driver has no cuStreamWriteValue64; update the driver");
    write_value_ = reinterpret_cast<write_value_fn>(symbol);
    return {};
  }

  /// The contexts of the launcher come after the done words.
  expected<> allocate_words() {
    const std::size_t done_bytes = workers_.size() * kDoneStride;
    const std::size_t bytes = done_bytes + (setup_.own_contexts ? workers_.size() * kContextStride : 0);
    void *block = nullptr, *device = nullptr;
    if (expected<> result = manager_.take_mapped_block(bytes, block); result.failed())
      return result;
    done_host_ = static_cast<std::uint64_t *>(block);
    std::fill_n(done_host_, bytes / sizeof(std::uint64_t), std::uint64_t{0});
    if (const cudaError_t error = cudaHostGetDevicePointer(&device, block, 0))
      return cuda_failed("cudaHostGetDevicePointer", error);
    done_device_ = reinterpret_cast<CUdeviceptr>(device);
    for (std::size_t i = 0; setup_.own_contexts && i < workers_.size(); ++i) {
      const std::size_t at = done_bytes + i * kContextStride;
      workers_[i].io = reinterpret_cast<GraphIOContext *>(static_cast<std::uint8_t *>(block) + at);
      workers_[i].mail = static_cast<std::uint8_t *>(device) + at;
    }
    return {};
  }

  expected<> prepare_worker(std::size_t i) {
    worker &w = workers_[i];
    if (setup_.workers[i].io_ctx != nullptr)
      w.io = static_cast<GraphIOContext *>(setup_.workers[i].io_ctx);
    if (setup_.mailbox_gets_context && setup_.workers[i].io_ctx != nullptr) {
      cudaPointerAttributes seen{};
      if (const cudaError_t error = cudaPointerGetAttributes(&seen, setup_.workers[i].io_ctx))
        return cuda_failed("cudaPointerGetAttributes", error);
      w.mail = seen.devicePointer != nullptr ? seen.devicePointer : setup_.workers[i].io_ctx; // NULL: pageable memory
    }
    w.stream = setup_.workers[i].stream;
    if (w.stream == nullptr) {
      if (const cudaError_t error = cudaStreamCreateWithFlags(&w.stream, cudaStreamNonBlocking))
        return cuda_failed("cudaStreamCreateWithFlags", error);
      w.own_stream = true;
    } else {
      unsigned flags = 0;
      if (const cudaError_t error = cudaStreamGetFlags(w.stream, &flags))
        return make_reason(CUDAQ_ERR_CUDA, "workers[%zu].stream is %p: cudaStreamGetFlags: %s (%s)", i,
                           static_cast<void *>(w.stream), cudaGetErrorString(error), cudaGetErrorName(error));
      w.blocking = (flags & cudaStreamNonBlocking) == 0;
    }
    if (const cudaError_t error = cudaGraphUpload(setup_.workers[i].graph_exec, w.stream))
      return make_reason(CUDAQ_ERR_CUDA, "graph worker %zu: cudaGraphUpload: %s (%s)", i, cudaGetErrorString(error),
                         cudaGetErrorName(error));
    return {};
  }

  cudaq_dispatch_manager_t &manager_;
  const graph_launch_setup setup_;
  std::vector<worker> workers_;
  cudaStream_t probe_ = nullptr;
  shared_word<std::size_t> next_query_; ///< the worker whose stream is queried next
  write_value_fn write_value_ = nullptr;
  std::uint64_t *done_host_ = nullptr; ///< kDoneStride bytes per worker
  CUdeviceptr done_device_ = 0;
};

template <class T>
void find_device_view(T *&device, T *host) {
  cudaPointerAttributes seen{};
  if (device != nullptr || host == nullptr)
    return;
  device = host;
  const volatile void *const address = host;
  if (cudaPointerGetAttributes(&seen, const_cast<const void *>(address)) != cudaSuccess)
    cudaGetLastError(); // the launcher's own check returns it
  else if (seen.devicePointer != nullptr)
    device = static_cast<T *>(seen.devicePointer);
}

} // namespace

void find_device_views(cudaq_ringbuffer_t &ring, bool contexts) {
  find_device_view(ring.rx_data, ring.rx_data_host);
  if (!contexts)
    return;
  find_device_view(ring.tx_flags, ring.tx_flags_host);
  find_device_view(ring.tx_data, ring.tx_data_host);
}

expected<> make_cuda_graph_launcher(cudaq_dispatch_manager_t &manager, const graph_launch_setup &setup,
                                    std::shared_ptr<graph_launcher> &out) {
  auto launcher = std::make_shared<cuda_graph_launcher>(manager, setup);
  if (expected<> result = launcher->prepare(); result.failed())
    return result;
  out = std::move(launcher);
  return {};
}

} // namespace cudaq::realtime::detail
