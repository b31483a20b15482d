// SPDX-License-Identifier: Apache-2.0
// Sends one request through a dispatcher on the GPU. Without a GPU, start must report an error.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <cuda_runtime_api.h>
#include <cudaq/realtime/daemon/dispatcher/dispatch_kernel_launch.h>

inline constexpr std::uint32_t kFlip = cudaq::realtime::fnv1a_hash("flip");

inline bool has_gpu() {
  int devices = 0;
  return cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0;
}

inline cudaq_status_t set_launch(cudaq_dispatcher_t *d, cudaq_dispatch_launch_fn_t f) {
  return cudaq_dispatcher_set_launch_fn(d, f);
}
inline cudaq_status_t set_launch(cudaq_dispatcher_t *d, cudaq_dispatch_launch_fn_v2_t f) {
  return cudaq_dispatcher_set_launch_fn_v2(d, f);
}

#define TRY(call)                                                                                                      \
  if ((call) != CUDAQ_OK)                                                                                              \
  return std::printf("%s: %s\n", #call, cudaq_last_error_message()), 1

inline int answer_of(const cudaq_ringbuffer_t &ring) {
  const std::uint8_t payload[] = {0x00, 0x5a, 0xff};
  TRY(cudaq_host_ringbuffer_write_rpc_request(&ring, 0, kFlip, payload, sizeof(payload), 7, 0));
  cudaq_host_ringbuffer_signal_slot(&ring, 0);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (cudaq_host_ringbuffer_poll_tx_flag(&ring, 0, nullptr) != CUDAQ_TX_READY)
    if (std::chrono::steady_clock::now() > deadline)
      return std::puts("no answer"), 1;
  cudaq_rpc_response_t response{};
  const void *result = nullptr;
  TRY(cudaq_host_ringbuffer_read_rpc_response(&ring, 0, &response, &result));
  const std::uint8_t flipped[] = {0xff, 0xa5, 0x00};
  const bool right = response.status == 0 && response.request_id == 7 && response.result_len == sizeof(flipped) &&
                     std::memcmp(result, flipped, sizeof(flipped)) == 0;
  cudaq_host_ringbuffer_clear_slot(&ring, 0);
  std::puts(right ? "answered" : "wrong answer");
  return right ? 0 : 1;
}

/// Returns the exit status of the program. The table is used only if there is a GPU.
template <class LaunchFn>
int round_trip(LaunchFn launch, const cudaq_function_table_t &table) {
  const bool gpu = has_gpu();
  cudaq_ringbuffer_options_t options;
  cudaq_ringbuffer_memory_t *memory = nullptr;
  cudaq_ringbuffer_t ring;
  TRY(cudaq_ringbuffer_options_init(&options, sizeof(options)));
  options.memory_kind = gpu ? CUDAQ_MEMORY_MAPPED : CUDAQ_MEMORY_HOST;
  options.num_slots = 4;
  options.slot_size = 256;
  TRY(cudaq_ringbuffer_create(&options, &memory, &ring));
  struct control_words {
    volatile int shutdown;
    std::uint64_t processed;
  } plain{}, *control = &plain;
  cudaq_function_entry_t entry{};
  cudaq_function_table_t used = table;
  if (!gpu) { // with unified addressing, both addresses are the same
    ring.rx_flags = ring.rx_flags_host, ring.tx_flags = ring.tx_flags_host;
    ring.rx_data = ring.rx_data_host, ring.tx_data = ring.tx_data_host;
    used = {&entry, 1};
  } else if (cudaHostAlloc(reinterpret_cast<void **>(&control), sizeof(*control), cudaHostAllocMapped) != cudaSuccess) {
    return std::puts("no mapped memory for the control words"), 1;
  } else {
    std::memset(static_cast<void *>(control), 0, sizeof(*control));
  }

  cudaq_dispatcher_config_t config{};
  config.num_slots = options.num_slots;
  config.slot_size = options.slot_size;
  cudaq_dispatch_manager_t *manager = nullptr;
  cudaq_dispatcher_t *dispatcher = nullptr;
  TRY(cudaq_dispatch_manager_create(&manager));
  TRY(cudaq_dispatcher_create(manager, &config, &dispatcher));
  TRY(cudaq_dispatcher_set_ringbuffer(dispatcher, &ring));
  TRY(cudaq_dispatcher_set_function_table(dispatcher, &used));
  TRY(cudaq_dispatcher_set_control(dispatcher, &control->shutdown, &control->processed));
  TRY(set_launch(dispatcher, launch));
  int failed = 0;
  if (gpu) {
    TRY(cudaq_dispatcher_start(dispatcher));
    failed = answer_of(ring);
  } else {
    const cudaq_status_t refused = cudaq_dispatcher_start(dispatcher);
    std::printf("no GPU, so no round trip; the error of start is: %s\n", cudaq_last_error_message());
    failed = refused != CUDAQ_ERR_CUDA || *cudaq_last_error_message() == '\0';
  }
  TRY(cudaq_dispatcher_destroy(dispatcher));
  TRY(cudaq_dispatch_manager_destroy(manager));
  TRY(cudaq_ringbuffer_destroy(memory));
  return failed;
}
