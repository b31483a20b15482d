// SPDX-License-Identifier: Apache-2.0
// A ring that a kernel serves, on a CUDA runtime without a GPU.
#pragma once

#include "cudaq/realtime/daemon/dispatcher/ring_producer.h"
#include "cudaq/realtime/detail/kernel_abi/launch_state.h"
#include "unittests/support/api_fixture.h"
#include "unittests/support/fake_cuda/fake_cuda.h"

namespace cudaq::realtime::test {

inline constexpr std::uint32_t kServedSlots = 4;

inline cudaq_status_t make_ring(std::uint32_t kind, cudaq_ringbuffer_memory_t *&memory, cudaq_ringbuffer_t &ring,
                                int device = 0) {
  cudaq_ringbuffer_options_t o;
  cudaq_ringbuffer_options_init(&o, sizeof(o));
  o.num_slots = kServedSlots;
  o.slot_size = 64;
  o.memory_kind = kind;
  o.device_id = device;
  return cudaq_ringbuffer_create(&o, &memory, &ring);
}

inline volatile int *current_flag = nullptr; ///< launch functions have no user pointer

inline bool device_scope = false; ///< whether the last kernel may use it

/// A kernel of the program: it runs until the caller's flag is set, or until the device is lost.
inline cudaError_t launch(const cudaq_dispatch_launch_params_t *p) {
  device_scope = static_cast<const cudaq_dispatch_launch_state_t *>(p->state)->params.device_scope;
  fake_cuda::launch(p->stream, [flag = current_flag] {
    while (detail::load_acquire(*flag) == 0 && !fake_cuda::device_is_lost())
      std::this_thread::sleep_for(std::chrono::microseconds(50));
  });
  return cudaSuccess;
}

/// A kernel on a ring, and a producer's handle on the ring if the CPU can write it.
struct served_ring {
  explicit served_ring(std::uint32_t memory_kind = CUDAQ_MEMORY_DEVICE_RX)
      : kind(memory_kind), words(static_cast<std::uint64_t *>(fake_cuda::allocate(16, cudaMemoryTypeHost))) {}

  cudaq_status_t start() {
    current_flag = reinterpret_cast<volatile int *>(words);
    cudaq_dispatcher_config_t config{};
    config.device_id = device;
    config.num_slots = kServedSlots;
    config.slot_size = 64;
    config.threads_per_block = 32;
    entry.function_id = 1;
    entry.handler.device_fn_ptr = this;
    const cudaq_function_table_t table{&entry, 1};
    cudaq_dispatcher_options_t options = default_options();
    options.ring_peers = ring_peers;
    const std::function<cudaq_status_t()> calls[] = {
        [&] { return make_ring(kind, memory, ring, ring_device); },
        [&] { return has_handle() ? cudaq_ringbuffer_producer_open(memory, &producer) : CUDAQ_OK; },
        [&] { return cudaq_dispatch_manager_create(&manager); },
        [&] { return cudaq_dispatcher_create(manager, &config, &dispatcher); },
        [&] { return cudaq_dispatcher_set_ringbuffer(dispatcher, &ring); },
        [&] { return cudaq_dispatcher_set_function_table(dispatcher, &table); },
        [&] { return cudaq_dispatcher_set_control(dispatcher, current_flag, words + 1); },
        [&] { return cudaq_dispatcher_set_options(dispatcher, &options); },
        [&] { return cudaq_dispatcher_set_launch_fn_v2(dispatcher, launch); },
        [&] { return cudaq_dispatcher_start(dispatcher); },
        [&] { return has_handle() ? send() : CUDAQ_OK; }};
    for (const auto &call : calls)
      if (const cudaq_status_t status = call(); status != CUDAQ_OK)
        return status;
    return CUDAQ_OK;
  }
  /// The CPU cannot write a ring that is in device memory as a whole.
  bool has_handle() const { return kind != CUDAQ_MEMORY_DEVICE; }
  cudaq_status_t send() { return cudaq_ringbuffer_producer_send(producer, 1, "abc", 3, 7, 0, 0, nullptr); }

  /// Refused because the dispatcher runs. The handle is closed.
  void expect_kept_by_the_dispatcher() const {
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(cudaq_ringbuffer_destroy(memory), CUDAQ_ERR_STATE);
      EXPECT_TRUE(error_names({"a dispatcher runs on the ring", "cudaq_dispatcher_stop"}));
    }
  }

  std::uint32_t kind;
  int device = 0, ring_device = 0; ///< of the dispatcher, of the ring
  std::uint32_t ring_peers = CUDAQ_RING_PEERS_ANY;
  std::uint64_t *words;
  cudaq_function_entry_t entry{}; ///< each start reads it
  cudaq_ringbuffer_memory_t *memory = nullptr;
  cudaq_ringbuffer_t ring{};
  cudaq_ringbuffer_producer_t *producer = nullptr;
  cudaq_dispatch_manager_t *manager = nullptr;
  cudaq_dispatcher_t *dispatcher = nullptr;
};

inline bool has_cuda_memory() { return (cudaq_realtime_features() & CUDAQ_REALTIME_FEATURE_CUDA_MEMORY) != 0; }
inline bool has_device_path() { return (cudaq_realtime_features() & CUDAQ_REALTIME_FEATURE_DEVICE_PATH) != 0; }

} // namespace cudaq::realtime::test
