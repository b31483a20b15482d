// SPDX-License-Identifier: Apache-2.0
// A dispatcher on the device path, as far as no device is needed: wiring, validation, refused starts.
#pragma once

#include "unittests/support/api_fixture.h"

namespace cudaq::realtime::test {

inline bool has_device_path() { return (cudaq_realtime_features() & CUDAQ_REALTIME_FEATURE_DEVICE_PATH) != 0; }

/// Skips the test in a library without the device path.
class device_path_test : public ::testing::Test {
protected:
  void SetUp() override {
    if (!has_device_path())
      GTEST_SKIP() << "this library was built without the CUDA runtime";
  }
};

/// Returns true if the library finds a driver and a device.
inline bool has_device() {
  cudaq_ringbuffer_options_t options;
  CUDAQ_EXPECT_OK(cudaq_ringbuffer_options_init(&options, sizeof(options)));
  options.memory_kind = CUDAQ_MEMORY_MAPPED;
  options.num_slots = 1;
  options.slot_size = 64;
  cudaq_ringbuffer_memory_t *memory = nullptr;
  cudaq_ringbuffer_t ring;
  if (cudaq_ringbuffer_create(&options, &memory, &ring) != CUDAQ_OK)
    return false;
  CUDAQ_EXPECT_OK(cudaq_ringbuffer_destroy(memory));
  return true;
}

inline cudaq_dispatcher_config_t device_config(const ring_shape &shape = {}) {
  cudaq_dispatcher_config_t config{};
  config.num_slots = shape.num_slots;
  config.slot_size = shape.slot_size;
  return config; // zeros select the device path, a regular kernel, and device calls
}

/// The ring with device addresses equal to the host addresses, as in unified addressing.
inline cudaq_ringbuffer_t with_device_view(cudaq_ringbuffer_t ring) {
  ring.rx_flags = ring.rx_flags_host;
  ring.tx_flags = ring.tx_flags_host;
  ring.rx_data = ring.rx_data_host;
  ring.tx_data = ring.tx_data_host;
  return ring;
}

inline void launches_nothing(volatile uint64_t *, volatile uint64_t *, uint8_t *, uint8_t *, size_t, size_t,
                             cudaq_function_entry_t *, size_t, volatile int *, uint64_t *, size_t, uint32_t, uint32_t,
                             cudaStream_t) {}
inline cudaError_t launches_nothing_v2(const cudaq_dispatch_launch_params_t *) { return cudaSuccess; }
inline void launches_nothing_unified(void *, cudaq_function_entry_t *, size_t, volatile int *, uint64_t *,
                                     cudaStream_t) {}

/// A manager, a ring, and a dispatcher with nothing wired, under observation.
struct device_parts {
  explicit device_parts(cudaq_dispatcher_config_t config = device_config())
      : ring({8, 256, false}), view(with_device_view(ring.ring)) {
    CUDAQ_EXPECT_OK(cudaq_dispatcher_create(manager.get, &config, &d));
#if !defined(CUDAQ_TEST_WITHOUT_OBSERVER)
    observer = std::make_unique<dispatcher_observer>(d, observed_path::device);
#endif
  }
  ~device_parts() {
    observer.reset();
    CUDAQ_EXPECT_OK(cudaq_dispatcher_destroy(d));
  }
  device_parts(const device_parts &) = delete;
  device_parts &operator=(const device_parts &) = delete;

  /// `what` has one letter per part: ring, table, control, launch function, '2' for a v2 launch function, unified
  /// launch function.
  void wire(const std::string &what) {
    const cudaq_function_table_t table{&entry, 1};
    for (const char part : what)
      CUDAQ_EXPECT_OK(part == 'r'   ? cudaq_dispatcher_set_ringbuffer(d, &view)
                      : part == 't' ? cudaq_dispatcher_set_function_table(d, &table)
                      : part == 'c' ? cudaq_dispatcher_set_control(d, &flag, &stats)
                      : part == 'l' ? cudaq_dispatcher_set_launch_fn(d, launches_nothing)
                      : part == '2' ? cudaq_dispatcher_set_launch_fn_v2(d, launches_nothing_v2)
                                    : cudaq_dispatcher_set_unified_launch(d, launches_nothing_unified, nullptr));
  }
  cudaq_dispatcher_state_t state() const {
    cudaq_dispatcher_state_t s{};
    CUDAQ_EXPECT_OK(cudaq_dispatcher_get_state(d, &s));
    return s;
  }

  manager_handle manager;
  host_ring ring;
  cudaq_ringbuffer_t view;
  cudaq_function_entry_t entry{};
  volatile int flag = 5;
  std::uint64_t stats = 0;
  cudaq_dispatcher_t *d = nullptr;
  std::unique_ptr<dispatcher_observer> observer;
};

} // namespace cudaq::realtime::test
