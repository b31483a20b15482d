// SPDX-License-Identifier: Apache-2.0
#include "unittests/support/fake_cuda/fake_cuda.h"

#include "unittests/support/fault_points.h"

#include "cudaq/realtime/detail/base/flag_word.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <cuda.h>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <string_view>
#include <thread>

using namespace cudaq::realtime::test;
using faults::exempt_scope;

/// A stream. Its thread is started by the first work that takes long.
struct CUstream_st {
  explicit CUstream_st(unsigned with) : flags(with) {}
  ~CUstream_st() {
    {
      const std::lock_guard lock(mutex);
      ends = true;
    }
    changed.notify_all();
    if (worker.joinable())
      worker.join();
  }
  bool idle() {
    const std::lock_guard lock(mutex);
    return pending == 0;
  }
  void queue(std::function<void()> body) {
    const std::lock_guard lock(mutex);
    work.push_back(std::move(body));
    ++pending;
    if (!worker.joinable())
      worker = std::thread([this] { serve(); });
    changed.notify_all();
  }
  /// Runs `body` now if nothing is before it.
  void run_or_queue(std::function<void()> body) { idle() ? body() : queue(std::move(body)); }
  bool wait() {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, std::chrono::seconds(30), [this] { return pending == 0; });
  }

  const unsigned flags;
  bool excused = false; ///< the call that destroys it was made to fail

private:
  void serve() {
    const exempt_scope of_the_device;
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [this] { return ends || !work.empty(); });
      if (work.empty())
        return;
      const std::function<void()> body = std::move(work.front());
      work.pop_front();
      lock.unlock();
      body();
      lock.lock();
      --pending;
      changed.notify_all();
    }
  }
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> work;
  int pending = 0;
  bool ends = false;
  std::thread worker;
};

namespace {

struct block {
  std::size_t bytes = 0;
  cudaMemoryType kind = cudaMemoryTypeHost;
  bool excused = false;
  int device = 0;
};

struct world {
  std::mutex mutex;
  std::map<std::uintptr_t, block> blocks;
  std::set<cudaStream_t> streams;
  std::string violations;
  std::atomic<bool> keeps_kernels_out{false};
} all;

std::atomic<cudaError_t> lost{cudaSuccess};
thread_local cudaStreamCaptureMode current_mode = cudaStreamCaptureModeGlobal;

std::uintptr_t number(const void *p) { return reinterpret_cast<std::uintptr_t>(p); }

cudaError_t make_block(void **out, std::size_t bytes, cudaMemoryType kind) {
  void *memory = nullptr;
  if (posix_memalign(&memory, 4096, bytes) != 0)
    return cudaErrorMemoryAllocation;
  std::memset(memory, 0xCD, bytes); // fresh memory is not zero
  const std::lock_guard lock(all.mutex);
  all.blocks[number(memory)] = {bytes, kind, false, fake_cuda::current_device()};
  *out = memory;
  return cudaSuccess;
}

cudaError_t make_in_context(void **out, std::size_t bytes, cudaMemoryType kind) {
  fake_cuda::use_context();
  return make_block(out, bytes, kind);
}

cudaError_t free_block(void *memory) {
  const std::lock_guard lock(all.mutex);
  if (all.blocks.erase(number(memory)) == 0) {
    all.violations += "memory freed twice; ";
    return cudaErrorInvalidValue;
  }
  std::free(memory);
  return cudaSuccess;
}

/// Notes that a block is not freed, because the call that frees it was made to fail.
cudaError_t excuse_block(void *memory, cudaError_t error) {
  const std::lock_guard lock(all.mutex);
  all.blocks[number(memory)].excused = true;
  return error;
}

cudaError_t make_stream(cudaStream_t *out, unsigned flags) {
  const exempt_scope inside;
  fake_cuda::use_context();
  *out = new CUstream_st(flags);
  const std::lock_guard lock(all.mutex);
  all.streams.insert(*out);
  return cudaSuccess;
}

bool anything_runs() {
  const std::lock_guard lock(all.mutex);
  for (const cudaStream_t stream : all.streams)
    if (!stream->idle())
      return true;
  return false;
}

CUresult write_value(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned) {
  if (faults::hits("cuStreamWriteValue64"))
    return CUDA_ERROR_UNKNOWN;
  const exempt_scope inside;
  stream->run_or_queue([address, value] {
    cudaq::realtime::detail::store_release(*reinterpret_cast<std::uint64_t *>(address), std::uint64_t{value});
  });
  return CUDA_SUCCESS;
}

} // namespace

namespace cudaq::realtime::test::fake_cuda {

void note_violation(const char *what) {
  const std::lock_guard lock(all.mutex);
  all.violations += std::string(what) + "; ";
}

cudaError_t injected(const char *call) {
  const cudaError_t of_all = lost; // read once: the device may come back
  return of_all != cudaSuccess ? of_all : faults::hits(call) ? cudaErrorUnknown : cudaSuccess;
}

void launch(cudaStream_t stream, std::function<void()> body) {
  const exempt_scope inside;
  stream->queue(std::move(body));
}

void *allocate(std::size_t bytes, cudaMemoryType kind) {
  const exempt_scope inside;
  void *memory = nullptr;
  make_block(&memory, bytes, kind);
  std::memset(memory, 0, bytes);
  return memory;
}

void release(void *memory) { free_block(memory); }

cudaStreamCaptureMode capture_mode() { return current_mode; }

void lose_device(cudaError_t error) { lost = error; }
bool device_is_lost() { return lost != cudaSuccess; }
std::atomic<bool> &keeps_kernels_out() { return all.keeps_kernels_out; }
bool idle() { return !anything_runs(); }

std::string violations() {
  const std::lock_guard lock(all.mutex);
  return all.violations;
}

int clean_up() {
  int left = 0;
  for (const cudaStream_t stream : all.streams) {
    left += !stream->excused;
    if (stream->idle())
      delete stream;
  }
  for (const auto &[address, of] : all.blocks) {
    left += !of.excused;
    std::free(reinterpret_cast<void *>(address));
  }
  all.streams.clear();
  all.blocks.clear();
  all.violations.clear();
  forget_contexts();
  mapping() = {};
  current_mode = cudaStreamCaptureModeGlobal;
  return left;
}

} // namespace cudaq::realtime::test::fake_cuda

// ------------------------------------------------------------- the runtime --

#define FAULT_POINT(error)                                                                                             \
  if (const cudaError_t error_of_all = lost) /* read once: the device may come back */                                 \
    return error_of_all;                                                                                               \
  if (faults::hits(__func__))                                                                                          \
    return error;                                                                                                      \
  [[maybe_unused]] const exempt_scope inside

extern "C" {

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode *mode) {
  FAULT_POINT(cudaErrorUnknown);
  std::swap(*mode, current_mode);
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int) {
  FAULT_POINT(cudaErrorUnknown);
  *value = attribute == cudaDevAttrComputeCapabilityMajor ? 9 : fake_cuda::mapping_attribute(attribute);
  return cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
  FAULT_POINT(cudaErrorUnknown);
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}
cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaGetDeviceCount(int *count) {
  *count = 1;
  return cudaSuccess;
}
const char *cudaGetErrorName(cudaError_t error) {
  return error == cudaErrorMemoryAllocation ? "cudaErrorMemoryAllocation" : "cudaErrorUnknown";
}
const char *cudaGetErrorString(cudaError_t error) {
  return error == cudaErrorMemoryAllocation ? "out of memory" : "an error that a test has injected";
}

cudaError_t cudaHostAlloc(void **out, std::size_t bytes, unsigned) {
  FAULT_POINT(cudaErrorMemoryAllocation);
  return make_in_context(out, bytes, cudaMemoryTypeHost);
}
cudaError_t cudaFreeHost(void *memory) {
  if (const cudaError_t error = fake_cuda::injected(__func__))
    return excuse_block(memory, error);
  const exempt_scope inside;
  if (anything_runs())
    fake_cuda::note_violation("cudaFreeHost waits for a kernel that runs");
  return free_block(memory);
}
cudaError_t cudaHostGetDevicePointer(void **out, void *memory, unsigned) {
  FAULT_POINT(cudaErrorUnknown);
  *out = memory;
  return cudaSuccess;
}
cudaError_t cudaMallocManaged(void **out, std::size_t bytes, unsigned) {
  FAULT_POINT(cudaErrorMemoryAllocation);
  return make_in_context(out, bytes, fake_cuda::mapping().kind);
}
cudaError_t cudaFree(void *memory) {
  if (const cudaError_t error = fake_cuda::injected(__func__))
    return excuse_block(memory, error);
  const exempt_scope inside;
  if (anything_runs())
    fake_cuda::note_violation("cudaFree waits for a kernel that runs");
  return free_block(memory);
}
cudaError_t cudaMallocAsync(void **out, std::size_t bytes, cudaStream_t) {
  FAULT_POINT(cudaErrorMemoryAllocation);
  return make_in_context(out, bytes, cudaMemoryTypeDevice);
}
cudaError_t cudaFreeAsync(void *memory, cudaStream_t stream) {
  if (const cudaError_t error = fake_cuda::injected(__func__))
    return excuse_block(memory, error);
  const exempt_scope inside;
  stream->run_or_queue([memory] { free_block(memory); });
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void *to, const void *from, std::size_t bytes, cudaMemcpyKind, cudaStream_t stream) {
  FAULT_POINT(cudaErrorUnknown);
  if (!stream->idle())
    fake_cuda::note_violation("a copy is queued after a kernel");
  using cudaq::realtime::detail::store_release;
  if (bytes == sizeof(std::uint32_t)) { // a word that a running kernel reads
    std::uint32_t word = 0;
    std::memcpy(&word, from, sizeof(word));
    store_release(*static_cast<std::uint32_t *>(to), word);
  } else if (bytes != 0) {
    std::memcpy(to, from, bytes);
  }
  return cudaSuccess;
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *out, const void *address) {
  FAULT_POINT(cudaErrorUnknown);
  *out = {};
  out->type = cudaMemoryTypeUnregistered;
  const std::lock_guard lock(all.mutex);
  auto found = all.blocks.upper_bound(number(address));
  if (found == all.blocks.begin() || number(address) >= std::prev(found)->first + std::prev(found)->second.bytes)
    return cudaSuccess;
  out->type = std::prev(found)->second.kind;
  out->device = std::prev(found)->second.device;
  out->devicePointer = const_cast<void *>(address);
  out->hostPointer = out->type == cudaMemoryTypeHost ? out->devicePointer : nullptr;
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags) {
  FAULT_POINT(cudaErrorMemoryAllocation);
  return make_stream(out, flags);
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *out, unsigned flags, int) {
  FAULT_POINT(cudaErrorMemoryAllocation);
  return make_stream(out, flags);
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  if (const cudaError_t error = fake_cuda::injected(__func__)) {
    stream->excused = true;
    return error;
  }
  const exempt_scope inside;
  if (!stream->idle()) {
    fake_cuda::note_violation("a stream is destroyed while its work runs");
    return cudaSuccess;
  }
  const std::lock_guard lock(all.mutex);
  all.streams.erase(stream);
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned *flags) {
  FAULT_POINT(cudaErrorUnknown);
  *flags = stream->flags;
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  FAULT_POINT(cudaErrorUnknown);
  return stream->idle() ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned) {
  FAULT_POINT(cudaErrorMemoryAllocation);
  static char every_event;
  *out = reinterpret_cast<cudaEvent_t>(&every_event);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) {
  FAULT_POINT(cudaErrorUnknown);
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t) { // of a stream without other work
  FAULT_POINT(cudaErrorUnknown);
  return fake_cuda::keeps_kernels_out() ? cudaErrorNotReady : cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t) {
  FAULT_POINT(cudaErrorUnknown);
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  FAULT_POINT(cudaErrorUnknown);
  if (!stream->wait())
    fake_cuda::note_violation("cudaStreamSynchronize waits for a kernel that does not end");
  return cudaSuccess;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **symbol, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult *found) {
  FAULT_POINT(cudaErrorUnknown);
  *symbol = std::string_view(name) == "cuStreamWriteValue64" ? reinterpret_cast<void *>(&write_value)
                                                             : fake_cuda::context_function(name);
  *found = *symbol != nullptr ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}
cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) {
  FAULT_POINT(cudaErrorMemoryAllocation);
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  FAULT_POINT(cudaErrorUnknown);
  stream->queue([graph] { graph->run(); });
  return cudaSuccess;
}

} // extern "C"
