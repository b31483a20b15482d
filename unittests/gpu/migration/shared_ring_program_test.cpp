// SPDX-License-Identifier: Apache-2.0
// A device and a host dispatcher on one ring: the device dispatcher gets a ring struct with device pointers only, the
// host dispatcher one with host pointers only.
#include "unittests/gpu/migration/pinned_ring.h"

namespace cudaq::realtime::migration {
namespace {

constexpr std::uint32_t kHostFunction = fnv1a_hash("on_host");

void subtract_one(const void *rx_slot, void *tx_slot, std::size_t) {
  std::uint32_t word = 0;
  std::memcpy(&word, static_cast<const std::uint8_t *>(rx_slot) + sizeof(RPCHeader), sizeof(word));
  --word;
  const RPCResponse response{RPC_MAGIC_RESPONSE, 0, sizeof(word), 0, 0};
  std::memcpy(tx_slot, &response, sizeof(response));
  std::memcpy(static_cast<std::uint8_t *>(tx_slot) + sizeof(response), &word, sizeof(word));
}

class SharedRingProgram : public gpu_test {
protected:
  static cudaq_dispatcher_t *make(cudaq_dispatch_manager_t *manager, cudaq_dispatch_path_t path) {
    cudaq_dispatcher_config_t config{};
    config.device_id = device_now();
    config.num_slots = kSlots;
    config.slot_size = kSlotSize;
    config.dispatch_path = path;
    config.dispatch_mode = path == CUDAQ_DISPATCH_PATH_HOST ? CUDAQ_DISPATCH_HOST_CALL : CUDAQ_DISPATCH_DEVICE_CALL;
    config.shared_ring_mode = 1;
    cudaq_dispatcher_t *made = nullptr;
    CUDAQ_EXPECT_OK(cudaq_dispatcher_create(manager, &config, &made));
    return made;
  }
};

// Known failure 61.
TEST_F(SharedRingProgram, TakesADeviceOnlyAndAHostOnlyRingStruct) {
  pinned_ring ring;
  pinned<int> device_shutdown;
  pinned<std::uint64_t> device_stats;
  volatile int host_shutdown = 0;
  std::uint64_t host_stats = 0;
  side_stream setup;
  cudaq_function_entry_t *device_entries = nullptr;
  CUDA_ASSERT_OK(cudaMalloc(reinterpret_cast<void **>(&device_entries), sizeof(*device_entries)));
  CUDA_ASSERT_OK(init_device_table(device_entries, kFunction, setup.get));
  cudaq_function_entry_t host_entry{};
  host_entry.handler.host_fn = subtract_one;
  host_entry.function_id = kHostFunction;
  host_entry.dispatch_mode = CUDAQ_DISPATCH_HOST_CALL;

  cudaq_dispatch_manager_t *manager = nullptr;
  CUDAQ_ASSERT_OK(cudaq_dispatch_manager_create(&manager));
  cudaq_dispatcher_t *const on_device = make(manager, CUDAQ_DISPATCH_PATH_DEVICE);
  cudaq_dispatcher_t *const on_host = make(manager, CUDAQ_DISPATCH_PATH_HOST);
  const cudaq_ringbuffer_t device_ring = ring.device_only(), host_ring = ring.host_only();
  const cudaq_function_table_t device_table{device_entries, 1}, host_table{&host_entry, 1};
  CUDAQ_ASSERT_OK(cudaq_dispatcher_set_ringbuffer(on_device, &device_ring));
  CUDAQ_ASSERT_OK(cudaq_dispatcher_set_function_table(on_device, &device_table));
  CUDAQ_ASSERT_OK(cudaq_dispatcher_set_control(on_device, device_shutdown.host, device_stats.host));
  CUDAQ_ASSERT_OK(cudaq_dispatcher_set_launch_fn(on_device, cudaq_launch_dispatch_kernel_regular));
  CUDAQ_ASSERT_OK(cudaq_dispatcher_set_ringbuffer(on_host, &host_ring));
  CUDAQ_ASSERT_OK(cudaq_dispatcher_set_function_table(on_host, &host_table));
  CUDAQ_ASSERT_OK(cudaq_dispatcher_set_control(on_host, &host_shutdown, &host_stats));
  CUDAQ_EXPECT_OK_WITHIN(kStartLimit, cudaq_dispatcher_start(on_device));
  CUDAQ_EXPECT_OK_WITHIN(kStartLimit, cudaq_dispatcher_start(on_host));

  for (std::uint32_t n = 0; n < 1000 && !HasFatalFailure(); ++n) {
    const bool host = n % 3 == 0;
    ring.send(n % kSlots, host ? kHostFunction : kFunction, 100 + n, n);
    ring.expect(n % kSlots, 0, host ? 99 + n : 101 + n, n);
  }
  for (cudaq_dispatcher_t *d : {on_device, on_host})
    CUDAQ_EXPECT_OK_WITHIN(kDeadline, cudaq_dispatcher_destroy(d));
  CUDAQ_EXPECT_OK_WITHIN(kDeadline, cudaq_dispatch_manager_destroy(manager));
  CUDA_EXPECT_OK(cudaFree(device_entries));
}

/// Host and device have one table of functions, and the ring lies in memory of the program. Requests come alternately.
class InterleavedProgram : public SharedRingProgram {
protected:
  void prepare() override {
    ring_ = std::make_unique<pinned_ring>();
    CUDA_ASSERT_OK(cudaMalloc(reinterpret_cast<void **>(&device_entries_), 2 * sizeof(*device_entries_)));
    side_stream setup;
    CUDA_ASSERT_OK(init_device_table(device_entries_, kFunction, setup.get));
    host_entries_[0].handler.host_fn = subtract_one;
    host_entries_[0].function_id = kHostFunction;
    host_entries_[0].dispatch_mode = CUDAQ_DISPATCH_HOST_CALL;
    host_entries_[1].function_id = kFunction;
    host_entries_[1].dispatch_mode = CUDAQ_DISPATCH_DEVICE_CALL;
    CUDA_ASSERT_OK(cudaMemcpyAsync(device_entries_ + 1, host_entries_, sizeof(*device_entries_), cudaMemcpyHostToDevice,
                                   setup.get));
    CUDA_ASSERT_OK(setup.wait());
  }
  void TearDown() override {
    if (device_entries_ != nullptr) {
      CUDA_EXPECT_OK(cudaFree(device_entries_));
    }
  }
  /// A dispatcher with a manager of its own.
  struct lone_dispatcher {
    cudaq_dispatch_manager_t *manager = nullptr;
    cudaq_dispatcher_t *get = nullptr;
    pinned<int> shutdown;
    pinned<std::uint64_t> stats;
    ~lone_dispatcher() {
      CUDAQ_EXPECT_OK_WITHIN(kDeadline, cudaq_dispatcher_destroy(get));
      CUDAQ_EXPECT_OK_WITHIN(kDeadline, cudaq_dispatch_manager_destroy(manager));
    }
  };
  void start(lone_dispatcher &d, cudaq_dispatch_path_t path) {
    const bool host = path == CUDAQ_DISPATCH_PATH_HOST;
    const cudaq_ringbuffer_t r = host ? ring_->host_only() : ring_->device_only();
    const cudaq_function_table_t table{host ? host_entries_ : device_entries_, 2};
    CUDAQ_ASSERT_OK(cudaq_dispatch_manager_create(&d.manager));
    d.get = make(d.manager, path);
    CUDAQ_ASSERT_OK(cudaq_dispatcher_set_ringbuffer(d.get, &r));
    CUDAQ_ASSERT_OK(cudaq_dispatcher_set_function_table(d.get, &table));
    CUDAQ_ASSERT_OK(cudaq_dispatcher_set_control(d.get, d.shutdown.host, d.stats.host));
    if (!host) {
      CUDAQ_ASSERT_OK(cudaq_dispatcher_set_launch_fn(d.get, cudaq_launch_dispatch_kernel_regular));
    }
    CUDAQ_EXPECT_OK_WITHIN(kStartLimit, cudaq_dispatcher_start(d.get));
  }
  /// Fills the ring, then collects it, so that both have requests at the same time.
  void exchange() {
    for (std::uint32_t lap = 0; lap < 100 && !HasFatalFailure(); ++lap) {
      for (std::uint32_t slot = 0; slot < kSlots && !HasFatalFailure(); ++slot)
        ring_->send(slot, is_for_host(lap, slot) ? kHostFunction : kFunction, 100 + slot, lap * kSlots + slot);
      for (std::uint32_t slot = 0; slot < kSlots && !HasFatalFailure(); ++slot) {
        SCOPED_TRACE(is_for_host(lap, slot) ? "host" : "device");
        ring_->expect(slot, 0, is_for_host(lap, slot) ? 99 + slot : 101 + slot, lap * kSlots + slot);
      }
    }
  }

private:
  /// A slot changes its owner after some laps.
  static bool is_for_host(std::uint32_t lap, std::uint32_t slot) { return (slot + lap / 3) % 2 == 0; }

protected:
  std::unique_ptr<pinned_ring> ring_;
  cudaq_function_entry_t *device_entries_ = nullptr;
  cudaq_function_entry_t host_entries_[2]{};
};

TEST_F(InterleavedProgram, HostAndDeviceDispatcherOfTwoManagers) {
  lone_dispatcher on_device, on_host;
  ASSERT_NO_FATAL_FAILURE(start(on_host, CUDAQ_DISPATCH_PATH_HOST));
  ASSERT_NO_FATAL_FAILURE(start(on_device, CUDAQ_DISPATCH_PATH_DEVICE));
  exchange();
}

// The mode is set by hand, and the kernel has no dispatcher.
TEST_F(InterleavedProgram, HostDispatcherAndAKernelThatTheProgramLaunches) {
  lone_dispatcher on_host;
  int occupancy = 0;
  CUDA_ASSERT_OK(cudaq_dispatch_kernel_query_occupancy(&occupancy, 32)); // loads the kernels
  ASSERT_NO_FATAL_FAILURE(start(on_host, CUDAQ_DISPATCH_PATH_HOST));
  pinned<int> shutdown;
  pinned<std::uint64_t> stats;
  side_stream stream;
  const cudaq_ringbuffer_t r = ring_->device_only();
  CUDA_ASSERT_OK(cudaq_dispatch_kernel_set_shared_ring_mode(1));
  cudaq_launch_dispatch_kernel_regular(r.rx_flags, r.tx_flags, r.rx_data, r.tx_data, r.rx_stride_sz, r.tx_stride_sz,
                                       device_entries_, 2, shutdown.dev, stats.dev, kSlots, 1, 32, stream.get);
  CUDA_EXPECT_OK(cudaq_dispatch_kernel_set_shared_ring_mode(0));
  exchange();
  detail::store_release(*shutdown.host, 1);
  CUDA_EXPECT_OK(stream.wait());
}

} // namespace
} // namespace cudaq::realtime::migration
