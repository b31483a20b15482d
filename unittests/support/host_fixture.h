// SPDX-License-Identifier: Apache-2.0
// A ring, a dispatcher on the host path, and a client that plays the control system, for tests through the C API.
#pragma once

#include "cudaq/realtime/daemon/dispatcher/dispatch_kernel_launch.h"
#include "cudaq/realtime/daemon/dispatcher/host_dispatcher.h"
#include "unittests/support/eventually.h"
#include "unittests/support/observer.h"

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace cudaq::realtime::test {

/// Expects that an API call succeeds. Otherwise prints the library's error text.
#define CUDAQ_EXPECT_OK(call) EXPECT_EQ((call), CUDAQ_OK) << cudaq_last_error_message()
#define CUDAQ_ASSERT_OK(call) ASSERT_EQ((call), CUDAQ_OK) << cudaq_last_error_message()

/// Stops again until the loop has ended: on a busy machine its thread may have no core for the time of a short stop.
inline cudaq_status_t stop_again(cudaq_dispatcher_t *dispatcher, std::uint64_t timeout_ns) {
  cudaq_status_t status = CUDAQ_ERR_TIMEOUT;
  eventually([&] {
    status = cudaq_dispatcher_stop_timeout(dispatcher, timeout_ns);
    return status != CUDAQ_ERR_TIMEOUT;
  });
  return status;
}

struct ring_shape {
  std::uint32_t num_slots = 8;
  std::uint32_t slot_size = 256;
  bool in_place = false;
};

/// The C++ configuration of a loop on the host view of a ring. The caller sets the other fields.
inline HostDispatcherConfig loop_over(const cudaq_ringbuffer_t &ring) {
  HostDispatcherConfig c;
  c.rx_flags = ring.rx_flags_host;
  c.tx_flags = ring.tx_flags_host;
  c.rx_data_host = ring.rx_data_host;
  c.tx_data_host = ring.tx_data_host;
  c.rx_stride_sz = ring.rx_stride_sz;
  c.tx_stride_sz = ring.tx_stride_sz;
  return c;
}

/// The device that tests use: the environment variable CUDAQ_TEST_DEVICE, or 0.
inline int test_device() {
  const char *chosen = std::getenv("CUDAQ_TEST_DEVICE");
  return chosen == nullptr ? 0 : std::atoi(chosen);
}

/// With the environment variable CUDAQ_TEST_REQUESTS=device the rings in mapped memory that are not in place have their
/// requests in device memory: so all tests of the kernels serve that kind, too,
/// except those of shared rings, which refuse it.
inline cudaq_memory_kind_t kind_for_tests(cudaq_memory_kind_t requested, const ring_shape &shape) {
  const char *requests = std::getenv("CUDAQ_TEST_REQUESTS");
  const bool in_device = requests != nullptr && std::string(requests) == "device";
  return in_device && requested == CUDAQ_MEMORY_MAPPED && !shape.in_place ? CUDAQ_MEMORY_DEVICE_RX : requested;
}

/// Ring memory from the library's own allocator: plain host memory, or memory that a device can use.
class host_ring {
public:
  explicit host_ring(const ring_shape &shape = {}, cudaq_memory_kind_t memory_kind = CUDAQ_MEMORY_HOST,
                     int device_id = test_device())
      : shape_(shape) {
    cudaq_ringbuffer_options_t options;
    CUDAQ_EXPECT_OK(cudaq_ringbuffer_options_init(&options, sizeof(options)));
    options.memory_kind = kind_for_tests(memory_kind, shape);
    options.device_id = device_id;
    options.num_slots = shape.num_slots;
    options.slot_size = shape.slot_size;
    options.in_place = shape.in_place;
    CUDAQ_EXPECT_OK(cudaq_ringbuffer_create(&options, &memory_, &ring));
  }
  ~host_ring() { CUDAQ_EXPECT_OK(cudaq_ringbuffer_destroy(memory_)); }
  host_ring(const host_ring &) = delete;
  host_ring &operator=(const host_ring &) = delete;

  const ring_shape &shape() const { return shape_; }
  std::uint8_t *rx_slot(std::uint32_t i) const { return ring.rx_data_host + i * ring.rx_stride_sz; }
  std::uint8_t *tx_slot(std::uint32_t i) const {
    return ring.tx_data_host == nullptr ? rx_slot(i) : ring.tx_data_host + i * ring.tx_stride_sz;
  }

  cudaq_ringbuffer_memory_t *memory() const { return memory_; }

  cudaq_ringbuffer_t ring{};

private:
  ring_shape shape_;
  cudaq_ringbuffer_memory_t *memory_ = nullptr;
};

inline cudaq_dispatcher_config_t host_config(const ring_shape &shape) {
  cudaq_dispatcher_config_t config{};
  config.device_id = test_device();
  config.num_slots = shape.num_slots;
  config.slot_size = shape.slot_size;
  config.dispatch_mode = CUDAQ_DISPATCH_HOST_CALL;
  config.dispatch_path = CUDAQ_DISPATCH_PATH_HOST;
  return config;
}

inline cudaq_dispatcher_options_t default_options() {
  cudaq_dispatcher_options_t options;
  CUDAQ_EXPECT_OK(cudaq_dispatcher_options_init(&options, sizeof(options)));
  options.wait_policy = CUDAQ_WAIT_SPIN_YIELD; // tests share few cores
  return options;
}

inline cudaq_function_entry_t host_entry(const char *name, cudaq_host_rpc_fn_t fn) {
  cudaq_function_entry_t entry{};
  entry.function_id = fnv1a_hash(name);
  entry.dispatch_mode = CUDAQ_DISPATCH_HOST_CALL;
  entry.handler.host_fn = fn;
  return entry;
}

/// Calls that may read a dispatcher at any time.
class dispatcher_view {
public:
  cudaq_dispatcher_stats_t stats() const {
    cudaq_dispatcher_stats_t out{};
    out.struct_size = sizeof(out);
    CUDAQ_EXPECT_OK(cudaq_dispatcher_get_stats(get, &out));
    return out;
  }
  cudaq_dispatcher_state_t state() const {
    cudaq_dispatcher_state_t out{};
    CUDAQ_EXPECT_OK(cudaq_dispatcher_get_state(get, &out));
    return out;
  }
  std::string dump() const {
    std::size_t length = 0;
    CUDAQ_EXPECT_OK(cudaq_dispatcher_dump_state(get, nullptr, 0, &length));
    std::string text(length + 512, '\0');
    CUDAQ_EXPECT_OK(cudaq_dispatcher_dump_state(get, text.data(), text.size(), &length));
    text.resize(std::strlen(text.c_str()));
    return text;
  }

  cudaq_dispatcher_t *get = nullptr;
};

/// One dispatcher of a manager, and its observer. The destructor stops and destroys it.
class host_dispatcher_handle : public dispatcher_view {
public:
  host_dispatcher_handle(cudaq_dispatch_manager_t *manager, const host_ring &ring,
                         std::vector<cudaq_function_entry_t> entries, cudaq_dispatcher_config_t config)
      : entries_(std::move(entries)) {
    CUDAQ_EXPECT_OK(cudaq_dispatcher_create(manager, &config, &get));
#if !defined(CUDAQ_TEST_WITHOUT_OBSERVER)
    observer_ = std::make_unique<dispatcher_observer>(get);
#endif
    CUDAQ_EXPECT_OK(cudaq_dispatcher_set_ringbuffer(get, &ring.ring));
    const cudaq_function_table_t table{entries_.data(), static_cast<std::uint32_t>(entries_.size())};
    CUDAQ_EXPECT_OK(cudaq_dispatcher_set_function_table(get, &table));
    CUDAQ_EXPECT_OK(cudaq_dispatcher_set_control(get, &shutdown, &processed));
    const cudaq_dispatcher_options_t options = default_options();
    CUDAQ_EXPECT_OK(cudaq_dispatcher_set_options(get, &options));
  }
  ~host_dispatcher_handle() {
    cudaq_dispatcher_stop(get); // under observation
    observer_.reset();
    CUDAQ_EXPECT_OK(cudaq_dispatcher_destroy(get));
  }
  host_dispatcher_handle(const host_dispatcher_handle &) = delete;
  host_dispatcher_handle &operator=(const host_dispatcher_handle &) = delete;

  volatile int shutdown = 0;
  std::uint64_t processed = 0;

private:
  std::vector<cudaq_function_entry_t> entries_;
  std::unique_ptr<dispatcher_observer> observer_;
};

/// The answer that a client reads from a slot.
struct answer {
  cudaq_tx_status_t tx = CUDAQ_TX_EMPTY;
  cudaq_rpc_response_t header{};
  std::vector<std::uint8_t> result;
};

/// The requester: fills slots in ring order and collects answers.
class ring_client {
public:
  explicit ring_client(const host_ring &ring) : ring_(ring) {}

  /// Waits until the next slot of the ring is free, then writes and signals a request. Returns the slot.
  std::uint32_t send(std::uint32_t function_id, const std::vector<std::uint8_t> &payload, std::uint32_t request_id,
                     std::uint64_t timestamp = 0) {
    const std::uint32_t slot = next_;
    EXPECT_TRUE(eventually([&] { return cudaq_host_ringbuffer_slot_available(&ring_.ring, slot) == 1; }))
        << "slot " << slot << " never became free";
    CUDAQ_EXPECT_OK(cudaq_host_ringbuffer_write_rpc_request(&ring_.ring, slot, function_id, payload.data(),
                                                            static_cast<std::uint32_t>(payload.size()), request_id,
                                                            timestamp));
    cudaq_host_ringbuffer_signal_slot(&ring_.ring, slot);
    next_ = (next_ + 1) % ring_.shape().num_slots;
    return slot;
  }

  /// Takes the answer from `slot` and frees the slot. Returns false if there is no answer yet.
  bool try_collect(std::uint32_t slot, answer &out) {
    int cuda_error = 0;
    out.tx = cudaq_host_ringbuffer_poll_tx_flag(&ring_.ring, slot, &cuda_error);
    if (out.tx == CUDAQ_TX_EMPTY || out.tx == CUDAQ_TX_IN_FLIGHT)
      return false;
    const void *result = nullptr;
    if (out.tx == CUDAQ_TX_READY &&
        cudaq_host_ringbuffer_read_rpc_response(&ring_.ring, slot, &out.header, &result) == CUDAQ_OK) {
      const auto *bytes = static_cast<const std::uint8_t *>(result);
      out.result.assign(bytes, bytes + out.header.result_len);
    }
    cudaq_host_ringbuffer_clear_slot(&ring_.ring, slot);
    return true;
  }

  answer collect(std::uint32_t slot) {
    answer out;
    EXPECT_TRUE(eventually([&] { return try_collect(slot, out); })) << "no answer in slot " << slot;
    return out;
  }

  answer call(std::uint32_t function_id, const std::vector<std::uint8_t> &payload, std::uint32_t request_id = 1,
              std::uint64_t timestamp = 0) {
    return collect(send(function_id, payload, request_id, timestamp));
  }

  std::uint32_t next_slot() const { return next_; }
  void set_next_slot(std::uint32_t slot) { next_ = slot; }

private:
  const host_ring &ring_;
  std::uint32_t next_ = 0;
};

/// A manager. It must have no dispatchers left at the end of the test.
class manager_handle {
public:
  manager_handle() { CUDAQ_EXPECT_OK(cudaq_dispatch_manager_create(&get)); }
  ~manager_handle() { CUDAQ_EXPECT_OK(cudaq_dispatch_manager_destroy(get)); }
  cudaq_dispatch_manager_t *get = nullptr;
};

/// A v1 handler that returns its payload reversed.
inline void reverse_handler(const void *rx_slot, void *tx_slot, std::size_t) {
  cudaq_rpc_header_t request;
  std::memcpy(&request, rx_slot, sizeof(request));
  const auto *in = static_cast<const std::uint8_t *>(rx_slot) + sizeof(request);
  const std::vector<std::uint8_t> payload(in, in + request.arg_len);
  const cudaq_rpc_response_t response{CUDAQ_RPC_MAGIC_RESPONSE, 0, request.arg_len, 0, 0};
  std::memcpy(tx_slot, &response, sizeof(response));
  auto *out = static_cast<std::uint8_t *>(tx_slot) + sizeof(response);
  for (std::size_t i = 0; i < payload.size(); ++i)
    out[i] = payload[payload.size() - 1 - i];
}

} // namespace cudaq::realtime::test
