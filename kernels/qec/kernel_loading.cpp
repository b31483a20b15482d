// SPDX-License-Identifier: Apache-2.0
#include "kernels/qec/kernel_loading.h"

#include "cudaq/realtime/detail/base/shared_word.h"
#include "kernels/qec/device_memory.h"
#include "lib/base/callback.h"
#include "lib/base/runner.h"

#include <exception>
#include <memory>
#include <thread>
#include <utility>

namespace cudaq::qec::realtime::gpu {
namespace {

using cudaq::realtime::detail::device_guard;

/// What the loading thread and its caller share. It lives as long as the thread.
struct loading {
  cudaError_t error = cudaErrorUnknown;
  std::exception_ptr thrown;
  cudaq::realtime::detail::shared_word<bool> abandoned; ///< the caller has left
  cudaq::realtime::detail::loop_thread thread;
};

cudaError_t wait_for(cudaEvent_t event, const loading &state) {
  cudaError_t found = cudaErrorNotReady;
  while (!state.abandoned.load() && (found = cudaEventQuery(event)) == cudaErrorNotReady)
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  return found;
}

/// The call that loads may return at once, and the device be without the kernel: then it does no later work either.
cudaError_t load_and_wait(int device_id, const std::function<cudaError_t()> &load, const loading &state) {
  const device_guard here(device_id);
  cudaError_t error = here.error();
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
      error = wait_for(event, state);
    cudaEventDestroy(event); // neither waits
  }
  cudaStreamDestroy(stream);
  return error;
}

} // namespace

void load_kernels(int device_id, const std::string &owner, std::function<cudaError_t()> load,
                  std::chrono::milliseconds limit) {
  auto state = std::make_unique<loading>();
  const auto started = state->thread.start("qec-loading", {}, [&here = *state, device_id, load = std::move(load)] {
    try {
      here.error = cudaq::realtime::detail::must_return([&] { return load_and_wait(device_id, load, here); },
                                                        "the loading of kernels");
    } catch (...) {
      here.thrown = std::current_exception();
    }
  });
  if (started.failed())
    throw std::runtime_error(owner + ": " + started.text());
  if (!state->thread.join_until(cudaq::realtime::detail::steady_clock::now() + limit)) {
    state->abandoned.store(true);
    static_cast<void>(state.release());
    throw std::runtime_error(owner + ": the device has not loaded the kernels in " + std::to_string(limit.count()) +
                             " ms. Kernels that run without end keep it from loading others: make this before they "
                             "start. Or they hold all streams or hardware queues (troubleshooting.md)");
  }
  if (state->thrown)
    std::rethrow_exception(state->thrown);
  require(state->error, (owner + ": loading the kernels").c_str());
}

} // namespace cudaq::qec::realtime::gpu
