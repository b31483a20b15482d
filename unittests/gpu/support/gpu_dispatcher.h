// SPDX-License-Identifier: Apache-2.0
// A dispatcher on the device path with its table and control words. Rings must outlive all dispatchers of the device:
// the call that frees a mapped ring waits for every kernel.
#pragma once

#include "unittests/gpu/support/gpu_client.h"

#include <map>

namespace cudaq::realtime::test {

/// Function id: the FNV-1a hash of the enumerator's name; k + 1 for checked function k.
inline std::uint32_t id_of(handler h) {
  static constexpr const char *kNames[] = {"reverse", "flip", "describe",      "own_status", "claims_too_much",
                                           "count",   "meet", "wait_for_word", "echo",       "trap"};
  const auto n = static_cast<std::uint32_t>(h);
  const auto first_checked = static_cast<std::uint32_t>(handler::checked);
  return h < handler::checked ? fnv1a_hash(kNames[n]) : n - first_checked + 1;
}
/// An id with an entry of a mode that kernels do not serve. A unified kernel's table has no such entry.
inline constexpr std::uint32_t kHostOnlyId = 0x00c0ffee;
inline constexpr std::uint32_t kUnknownId = 0x0badf00d;

inline cudaq_function_entry_t device_entry(std::uint32_t function_id, void *address) {
  cudaq_function_entry_t entry{};
  entry.function_id = function_id;
  entry.dispatch_mode = CUDAQ_DISPATCH_DEVICE_CALL;
  entry.handler.device_fn_ptr = address;
  return entry;
}

/// Addresses of the handlers on the current device. Both forms are read at the first call and then kept: the kernel
/// that finds them could wait for a running dispatcher if their streams shared a hardware queue.
inline const std::vector<void *> &known_addresses(bool grid) {
  static std::map<std::pair<int, bool>, std::vector<void *>> known;
  int device = 0;
  CUDA_EXPECT_OK(cudaGetDevice(&device));
  if (known.count({device, grid}) == 0)
    for (const bool form : {false, true}) {
      const side_stream stream;
      std::vector<void *> &found = known[{device, form}];
      found.resize(kHandlers);
      CUDA_EXPECT_OK(handler_addresses(form, found.data(), stream.get));
    }
  return known[{device, grid}];
}

/// Table entries for the current device. A unified kernel accepts only entries of its own mode.
inline std::vector<cudaq_function_entry_t> all_handlers(const kernel_kind &kind) {
  const std::vector<void *> &addresses = known_addresses(kind.cooperative());
  std::vector<cudaq_function_entry_t> entries;
  for (std::uint32_t h = 0; h < kHandlers; ++h)
    entries.push_back(device_entry(id_of(static_cast<handler>(h)), addresses[h]));
  if (kind.unified())
    return entries;
  cudaq_function_entry_t host_only{};
  host_only.function_id = kHostOnlyId;
  host_only.dispatch_mode = CUDAQ_DISPATCH_HOST_CALL;
  host_only.handler.device_fn_ptr = addresses[0];
  entries.push_back(host_only);
  return entries;
}

struct gpu_setup {
  kernel_kind kind = kFifo32;
  ring_shape shape; ///< the shape in the dispatcher's config; slot_size may be less than the stride
  cudaq_ringbuffer_t ring{};
  std::vector<cudaq_function_entry_t> entries; ///< empty: all_handlers()
  bool control_in_device_memory = true;
  int device_id = test_device();
  int wrong_device_id = -1; ///< if not negative, the device_id in the dispatcher's config
  bool shared_ring = false;
  void *transport_ctx = nullptr; ///< if set: the unified kernel over device hooks, for frames of shape.slot_size
  bool names_launch_fn = true;   ///< false: the library finds the kernel over device hooks
};

inline gpu_setup setup_of(const kernel_kind &kind, const host_ring &ring) {
  return {kind, ring.shape(), ring.ring, {}};
}

/// Wired, not started, under observation. The destructor stops and destroys the dispatcher.
class gpu_dispatcher : public dispatcher_view {
public:
  gpu_dispatcher(cudaq_dispatch_manager_t *manager, const gpu_setup &setup)
      : options(default_options()), setup_(setup), on_device_(std::make_unique<current_device>(setup.device_id)),
        entries_(setup.entries.empty() ? all_handlers(setup.kind) : setup.entries), table_(entries_) {
    const kernel_kind &kind = setup.kind;
    cudaq_dispatcher_config_t config{};
    config.device_id = setup.wrong_device_id >= 0 ? setup.wrong_device_id : setup.device_id;
    config.num_blocks = kind.blocks;
    config.threads_per_block = kind.threads;
    config.shared_ring_mode = setup.shared_ring;
    config.kernel_type = kind.type;
    config.num_slots = kind.unified() ? 0 : setup.shape.num_slots;
    config.slot_size = kind.unified() && setup.transport_ctx == nullptr ? 0 : setup.shape.slot_size;
    wired_ = cudaq_dispatcher_create(manager, &config, &get);
#if !defined(CUDAQ_TEST_WITHOUT_OBSERVER)
    if (wired_ == CUDAQ_OK)
      observer_ = std::make_unique<dispatcher_observer>(get, observed_path::device);
#endif
    if (wired_ == CUDAQ_OK)
      wire();
    else
      refusal_ = cudaq_last_error_message();
    options.ordering = kind.ordering;
    on_device_.reset();
  }
  ~gpu_dispatcher() {
    if (get == nullptr)
      return;
    observer_.reset();
    const call_result destroyed = CUDAQ_RESULT_WITHIN(kDeadline, cudaq_dispatcher_destroy(get));
    if (!fault_expected) {
      EXPECT_EQ(destroyed.status, CUDAQ_OK) << destroyed.text;
    }
  }
  gpu_dispatcher(const gpu_dispatcher &) = delete;
  gpu_dispatcher &operator=(const gpu_dispatcher &) = delete;

  /// Called before a test destroys the dispatcher by itself.
  void end_observation() { observer_.reset(); }

  /// Sets the options and starts. Also returns the error of an earlier create or set_ringbuffer.
  call_result start(std::chrono::nanoseconds limit = kStartLimit) {
    if (wired_ != CUDAQ_OK)
      return {wired_, refusal_};
    return call_within(limit, "start", [&] {
      const cudaq_status_t set = cudaq_dispatcher_set_options(get, &options);
      return set != CUDAQ_OK ? set : cudaq_dispatcher_start(get);
    });
  }
  void expect_start() {
    const call_result started = start();
    ASSERT_EQ(started.status, CUDAQ_OK) << started.text;
  }
  /// Ends the kernel by the caller's shutdown flag.
  void raise_callers_flag() {
    if (!setup_.control_in_device_memory) {
      store_release(*flag, 1);
      return;
    }
    const int one = 1;
    const side_stream stream;
    CUDA_EXPECT_OK(cudaMemcpyAsync(flag, &one, sizeof(one), cudaMemcpyHostToDevice, stream.get));
    CUDA_EXPECT_OK(stream.wait());
  }
  std::uint64_t processed() const {
    std::uint64_t out = 0;
    CUDAQ_EXPECT_OK(cudaq_dispatcher_get_processed(get, &out));
    return out;
  }

  cudaq_dispatcher_options_t options; ///< start() sets them
  bool fault_expected = false;
  int *flag = nullptr;
  std::uint64_t *stats_word = nullptr;

private:
  void wire() {
    const kernel_kind &kind = setup_.kind;
    if (setup_.transport_ctx != nullptr) {
      wired_ = cudaq_dispatcher_set_unified_launch_upstream(
          get, setup_.names_launch_fn ? cudaq_launch_unified_dispatch_device_upstream : nullptr, setup_.transport_ctx);
    } else if (kind.unified()) {
      unified_ = {sizeof(unified_), setup_.shape.num_slots, setup_.shape.slot_size, kind.threads, setup_.ring};
      wired_ = cudaq_dispatcher_set_unified_launch(get, cudaq_launch_unified_ring_kernel, &unified_);
    } else {
      wired_ = cudaq_dispatcher_set_ringbuffer(get, &setup_.ring);
      CUDAQ_EXPECT_OK(cudaq_dispatcher_set_launch_fn(get, kind.cooperative() ? cudaq_launch_dispatch_kernel_cooperative
                                                                             : cudaq_launch_dispatch_kernel_regular));
    }
    if (wired_ != CUDAQ_OK)
      refusal_ = cudaq_last_error_message();
    const cudaq_function_table_t table{table_.get, static_cast<std::uint32_t>(entries_.size())};
    CUDAQ_EXPECT_OK(cudaq_dispatcher_set_function_table(get, &table));
    make_control_words();
    CUDAQ_EXPECT_OK(cudaq_dispatcher_set_control(get, flag, stats_word));
  }
  void make_control_words() {
    if (setup_.control_in_device_memory) {
      words_ = std::make_unique<device_array<std::uint64_t>>(32);
      flag = reinterpret_cast<int *>(words_->get);
      stats_word = words_->get + 16;
    } else {
      flag = mapped_word<int>();
      stats_word = mapped_word<std::uint64_t>();
    }
  }

  const gpu_setup setup_;
  std::unique_ptr<current_device> on_device_; ///< only during construction
  const std::vector<cudaq_function_entry_t> entries_;
  device_array<cudaq_function_entry_t> table_;
  std::unique_ptr<device_array<std::uint64_t>> words_;
  cudaq_unified_ring_context_t unified_{};
  cudaq_status_t wired_ = CUDAQ_OK;
  std::string refusal_;
  std::unique_ptr<dispatcher_observer> observer_;
};

/// Bytes that depend on `seed`.
inline std::vector<std::uint8_t> some_bytes(std::size_t n, std::uint32_t seed) {
  std::vector<std::uint8_t> bytes(n);
  for (std::size_t i = 0; i < n; ++i)
    bytes[i] = static_cast<std::uint8_t>(((i + 1) * 2654435761u + seed * 40503u) >> 8);
  return bytes;
}

/// The bytes of a struct as a payload.
template <class T>
std::vector<std::uint8_t> bytes_of(const T &value) {
  std::vector<std::uint8_t> bytes(sizeof(T));
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}
template <class T>
T value_of(const std::vector<std::uint8_t> &bytes) {
  T value{};
  EXPECT_EQ(bytes.size(), sizeof(T));
  if (bytes.size() == sizeof(T))
    std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

/// Expects the whole answer of handler `reverse`.
inline void expect_reversed(const answer &got, const std::vector<std::uint8_t> &payload, std::uint32_t request_id) {
  ASSERT_EQ(got.tx, CUDAQ_TX_READY) << "request " << request_id;
  EXPECT_EQ(got.header.status, 0) << cudaq_rpc_status_string(got.header.status);
  EXPECT_EQ(got.header.request_id, request_id);
  EXPECT_EQ(got.header.ptp_timestamp, gpu_client::timestamp_of(request_id));
  ASSERT_TRUE(got.result == std::vector<std::uint8_t>(payload.rbegin(), payload.rend()))
      << "request " << request_id << " of " << payload.size() << " bytes, answer of " << got.result.size();
}
inline void expect_serves(gpu_client &client, std::uint32_t request_id, std::size_t bytes = 16) {
  const std::vector<std::uint8_t> payload = some_bytes(bytes, request_id);
  expect_reversed(client.call(id_of(handler::reverse), payload, request_id), payload, request_id);
}

} // namespace cudaq::realtime::test
