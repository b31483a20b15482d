// SPDX-License-Identifier: Apache-2.0
// The rules about what a caller may pass: one function without side effects per rule. A reason names the field and the
// value.
#pragma once

#include "cudaq/realtime/daemon/dispatcher/device_dispatch.h"
#include "lib/base/error_text.h"

#include <cstdint>

namespace cudaq::realtime::detail {

inline constexpr std::uint32_t kMaxSlots = 1u << 24;

// Rules for cudaq_dispatcher_config_t.
expected<> check_enums(const cudaq_dispatcher_config_t &config);
expected<> check_slots(const cudaq_dispatcher_config_t &config);
expected<> check_path_is_served(const cudaq_dispatcher_config_t &config);
expected<> check_device_path(const cudaq_dispatcher_config_t &config);
expected<> check_device_id(const cudaq_dispatcher_config_t &config);
expected<> validate_config(const cudaq_dispatcher_config_t &config);
/// The host loop over a provider's CPU dataplane.
inline bool is_unified_host(const cudaq_dispatcher_config_t &config) {
  return config.dispatch_path == CUDAQ_DISPATCH_PATH_HOST && config.kernel_type == CUDAQ_KERNEL_UNIFIED;
}
/// The most slots of a dataplane whose number the program does not say.
inline constexpr std::uint32_t kDataplaneSlots = 4096;
/// A configuration with all numbers that a run needs.
struct full_config : cudaq_dispatcher_config_t {
  std::uint32_t known_slots = 0; ///< how far the memory of a ring certainly reaches; 1 if the program named no number
};

/// The side that accesses a ring: selects the members of cudaq_ringbuffer_t that a rule checks.
enum class ring_side { host, device };

// Rules for cudaq_ringbuffer_t, for one path of a given configuration.
expected<> check_host_views(const cudaq_ringbuffer_t &ring);
expected<> check_device_views(const cudaq_ringbuffer_t &ring);
expected<> check_alignment(const cudaq_ringbuffer_t &ring, ring_side side);
expected<> check_strides(const cudaq_ringbuffer_t &ring, const cudaq_dispatcher_config_t &config, ring_side side);
expected<> check_overlap(const cudaq_ringbuffer_t &ring, std::uint32_t known_slots, ring_side side);
/// In place, the device stages the whole slot, because handlers get separate input and output areas.
expected<> check_staging(const cudaq_ringbuffer_t &ring, const cudaq_dispatcher_config_t &config);
/// On a ring whose requests are in device memory, only a device may read them.
expected<> check_requests_are_near(const cudaq_ringbuffer_t &ring, const cudaq_dispatcher_config_t &config);
expected<> validate_host_ring(const cudaq_ringbuffer_t &ring, const cudaq_dispatcher_config_t &config,
                              std::uint32_t known_slots);
/// On a shared ring the host routes the kernel's requests, so it must be able to access the ring.
expected<> check_shared_views(const cudaq_ringbuffer_t &ring, const cudaq_dispatcher_config_t &config);
expected<> validate_device_ring(const cudaq_ringbuffer_t &ring, const cudaq_dispatcher_config_t &config);

// Rules for cudaq_function_table_t, for the host path; entries may be NULL if count is 0.
expected<> check_table_pointer(const cudaq_function_table_t &table);
expected<> check_entry(const cudaq_function_entry_t &entry, std::uint32_t position);
expected<> check_schema(const cudaq_handler_schema_t &schema, const char *whose, std::uint32_t number);
expected<> validate_host_table(const cudaq_function_table_t &table);

/// Rules for the control words: set, and aligned for the accesses of the library.
expected<> check_control(const volatile int *shutdown_flag, const std::uint64_t *stats);

// Rules for cudaq_dispatcher_options_t.
expected<> check_struct_size(const char *name, std::uint32_t given, std::size_t known);
expected<> check_option_enums(const cudaq_dispatcher_options_t &options);
expected<> check_pool_size(const cudaq_dispatcher_options_t &options);
expected<> check_placement(const cudaq_dispatcher_options_t &options);
expected<> validate_options(const cudaq_dispatcher_options_t &options);
/// Options that the device path does not support; checked at start.
expected<> check_device_options(const cudaq_dispatcher_options_t &options, const cudaq_dispatcher_config_t &config);

/// Rules for cudaq_dispatch_graph_io_t, except those that need the function table.
expected<> validate_graph_io(const cudaq_dispatch_graph_io_t &graph_io);

expected<> validate_ring_options(const cudaq_ringbuffer_options_t &options);

/// The usable bytes of a slot: config.slot_size, or the smaller stride if that is 0.
std::size_t usable_slot_bytes(const cudaq_ringbuffer_t &ring, const cudaq_dispatcher_config_t &config, ring_side side);
/// True if responses overwrite requests in this side's view.
bool is_in_place(const cudaq_ringbuffer_t &ring, ring_side side);

} // namespace cudaq::realtime::detail
