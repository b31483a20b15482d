// SPDX-License-Identifier: Apache-2.0
#include "kernels/qec/kernel_loading.h"

#include "kernels/qec/device_memory.h"

#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

namespace cudaq::qec::realtime::gpu {
namespace {

/// The call that loads may return at once, and the device be without the kernel: then it does no later work either.
cudaError_t load_and_wait(int device_id, const std::function<cudaError_t()> &load) {
  cudaError_t error = cudaSetDevice(device_id);
  if (error == cudaSuccess)
    error = load();
  cudaStream_t stream = nullptr;
  if (error == cudaSuccess)
    error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  if (error != cudaSuccess)
    return error;
  cudaEvent_t event = nullptr;
  error = cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  if (error == cudaSuccess) {
    error = cudaEventRecord(event, stream);
    if (error == cudaSuccess)
      error = cudaEventSynchronize(event);
    cudaEventDestroy(event);
  }
  cudaStreamDestroy(stream);
  return error;
}

/// What the loading thread and its caller share. The caller may leave first.
struct loading {
  std::mutex mutex;
  std::condition_variable has_ended;
  bool ended = false;
  cudaError_t error = cudaSuccess;
  std::exception_ptr thrown;
};

} // namespace

void load_kernels(int device_id, const std::string &owner, std::function<cudaError_t()> load,
                  std::chrono::milliseconds limit) {
  const auto state = std::make_shared<loading>();
  std::thread loader([state, device_id, load = std::move(load)] {
    cudaError_t error = cudaErrorUnknown;
    std::exception_ptr thrown;
    try {
      error = load_and_wait(device_id, load);
    } catch (const std::exception &) {
      thrown = std::current_exception();
    }
    const std::lock_guard lock(state->mutex);
    state->error = error, state->thrown = thrown, state->ended = true;
    state->has_ended.notify_one();
  });
  {
    std::unique_lock lock(state->mutex);
    if (!state->has_ended.wait_for(lock, limit, [&] { return state->ended; })) {
      loader.detach();
      throw std::runtime_error(owner + ": the device has not loaded the kernels in " + std::to_string(limit.count()) +
                               " ms. Kernels that run without end keep it from loading others: make this before they "
                               "start (troubleshooting.md, lazy loading)");
    }
  }
  loader.join();
  if (state->thrown)
    std::rethrow_exception(state->thrown);
  require(state->error, (owner + ": loading the kernels").c_str());
}

} // namespace cudaq::qec::realtime::gpu
