// SPDX-License-Identifier: Apache-2.0
// Shared code of the GPU examples: a dispatcher on the device path with its ring and control words, and a call through
// it.
#pragma once

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime_api.h>
#include <cudaq/realtime/daemon/dispatcher/dispatch_kernel_launch.h>
#include <vector>

namespace example {

/// Ends the program without freeing anything: a kernel may still run, and freeing would wait for it.
[[noreturn]] inline void fail(const char *what, const char *why) {
  std::printf("failed: %s: %s\n", what, why);
  std::fflush(stdout);
  std::_Exit(1);
}
inline void check(cudaError_t error, const char *what) {
  if (error != cudaSuccess)
    fail(what, cudaGetErrorString(error));
}
inline void check(cudaq_status_t status, const char *what) {
  if (status != CUDAQ_OK)
    fail(what, cudaq_last_error_message());
}
#define TRY(call) example::check((call), #call)

/// Polls until `done` returns true. Returns false if it does not within 20 s.
template <class Done>
bool eventually(Done &&done) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!done())
    if (std::chrono::steady_clock::now() >= end)
      return done();
  return true;
}

/// Returns 0 if there is a GPU. Otherwise prints the reason and returns the exit status: 77, which means skipped, or 1
/// if the environment variable CUDAQ_REQUIRE_GPU is set.
inline int status_without_gpu() {
  int devices = 0;
  const cudaError_t error = cudaGetDeviceCount(&devices);
  if (error == cudaSuccess && devices > 0)
    return 0;
  const bool promised = std::getenv("CUDAQ_REQUIRE_GPU") != nullptr;
  std::printf("%s: no GPU: %s\n", promised ? "failed" : "skipped",
              error == cudaSuccess ? "no device is visible" : cudaGetErrorString(error));
  return promised ? 1 : 77;
}

struct shape {
  cudaq_memory_kind_t memory = CUDAQ_MEMORY_MAPPED;
  std::uint32_t num_slots = 8;
  std::uint32_t slot_size = 1024;
  std::uint32_t resident_blocks = 0; ///< blocks of the program's own kernels that run at the same time
  const cudaq_dispatch_graph_io_t *graph_io = nullptr; ///< for a dispatcher that launches graphs
  cudaq_kernel_type_t kernel = CUDAQ_KERNEL_REGULAR;
  std::uint32_t blocks = 1, threads = 32; ///< of the kernel
};

/// A response; `result` is a copy of the bytes in the slot.
struct answer {
  cudaq_rpc_response_t header{};
  std::vector<std::uint8_t> result;
};

/// Creates and starts a dispatcher. The control words are in mapped memory, so that no call on them waits for the
/// running kernel. The destructor stops the dispatcher.
class device_session {
public:
  template <class LaunchFn>
  device_session(LaunchFn launch, const cudaq_function_table_t &table, const shape &s = {}) : shape_(s) {
    cudaq_ringbuffer_options_t options;
    TRY(cudaq_ringbuffer_options_init(&options, sizeof(options)));
    options.memory_kind = s.memory;
    options.num_slots = s.num_slots;
    options.slot_size = s.slot_size;
    TRY(cudaq_ringbuffer_create(&options, &memory_, &ring));
    TRY(cudaHostAlloc(reinterpret_cast<void **>(&control_), sizeof(*control_), cudaHostAllocMapped));
    *control_ = {};

    cudaq_dispatcher_config_t config{}; // device 0, device calls
    config.kernel_type = s.kernel;
    config.num_blocks = s.blocks;
    config.threads_per_block = s.threads;
    config.num_slots = s.num_slots;
    config.slot_size = s.slot_size;
    if (s.graph_io != nullptr)
      config.dispatch_mode = CUDAQ_DISPATCH_GRAPH_LAUNCH;
    TRY(cudaq_dispatch_manager_create(&manager_));
    TRY(cudaq_dispatch_manager_reserve_blocks(manager_, 0, s.resident_blocks));
    TRY(cudaq_dispatcher_create(manager_, &config, &dispatcher_));
    TRY(cudaq_dispatcher_set_ringbuffer(dispatcher_, &ring));
    TRY(cudaq_dispatcher_set_function_table(dispatcher_, &table));
    TRY(cudaq_dispatcher_set_control(dispatcher_, &control_->shutdown, &control_->processed));
    if (s.graph_io != nullptr)
      TRY(cudaq_dispatcher_set_graph_io(dispatcher_, s.graph_io));
    TRY(set_launch(launch));
    TRY(cudaq_dispatcher_start(dispatcher_));
  }
  ~device_session() {
    TRY(cudaq_dispatcher_destroy(dispatcher_)); // stops the dispatcher first
    TRY(cudaq_dispatch_manager_destroy(manager_));
    TRY(cudaq_ringbuffer_destroy(memory_)); // waits for all kernels of the device, so it comes after the stop
    TRY(cudaFreeHost(control_));
  }
  device_session(const device_session &) = delete;
  device_session &operator=(const device_session &) = delete;

  /// Sends one request through the mapped ring, and returns its answer.
  answer call(std::uint32_t function_id, const std::vector<std::uint8_t> &payload, std::uint32_t request_id) {
    const std::uint32_t slot = next_;
    next_ = (next_ + 1) % shape_.num_slots;
    if (!eventually([&] { return cudaq_host_ringbuffer_slot_available(&ring, slot) == 1; }))
      fail("call", "the slot did not become free");
    TRY(cudaq_host_ringbuffer_write_rpc_request(&ring, slot, function_id, payload.data(),
                                                static_cast<std::uint32_t>(payload.size()), request_id, 0));
    cudaq_host_ringbuffer_signal_slot(&ring, slot);
    if (!eventually([&] { return cudaq_host_ringbuffer_poll_tx_flag(&ring, slot, nullptr) == CUDAQ_TX_READY; }))
      fail("call", "no answer");
    answer got;
    const void *result = nullptr;
    TRY(cudaq_host_ringbuffer_read_rpc_response(&ring, slot, &got.header, &result));
    const auto *bytes = static_cast<const std::uint8_t *>(result);
    got.result.assign(bytes, bytes + got.header.result_len);
    cudaq_host_ringbuffer_clear_slot(&ring, slot);
    return got;
  }

  cudaq_ringbuffer_t ring{};

private:
  struct control_words {
    volatile int shutdown;
    std::uint64_t processed;
  };
  cudaq_status_t set_launch(cudaq_dispatch_launch_fn_t f) { return cudaq_dispatcher_set_launch_fn(dispatcher_, f); }
  cudaq_status_t set_launch(cudaq_dispatch_launch_fn_v2_t f) {
    return cudaq_dispatcher_set_launch_fn_v2(dispatcher_, f);
  }

  shape shape_;
  std::uint32_t next_ = 0;
  cudaq_ringbuffer_memory_t *memory_ = nullptr;
  cudaq_dispatch_manager_t *manager_ = nullptr;
  cudaq_dispatcher_t *dispatcher_ = nullptr;
  control_words *control_ = nullptr;
};

} // namespace example
