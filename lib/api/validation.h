// SPDX-License-Identifier: Apache-2.0
// The rules about what a caller may pass: one function without side effects per rule. A reason names the field and the
// value.
#pragma once

#include "cudaq/realtime/daemon/dispatcher/cudaq_realtime.h"
#include "lib/base/error_text.h"

#include <cstdint>

namespace cudaq::realtime::detail {

inline constexpr std::uint32_t kMaxSlots = 1u << 24;

// Rules for cudaq_dispatcher_config_t.
status_or_reason check_enums(const cudaq_dispatcher_config_t &config);
status_or_reason check_slots(const cudaq_dispatcher_config_t &config);
status_or_reason check_path_is_served(const cudaq_dispatcher_config_t &config);
status_or_reason check_device_path(const cudaq_dispatcher_config_t &config);
status_or_reason check_device_id(const cudaq_dispatcher_config_t &config);
status_or_reason validate_config(const cudaq_dispatcher_config_t &config);
/// The host loop over a provider's CPU dataplane.
inline bool is_unified_host(const cudaq_dispatcher_config_t &config) {
  return config.dispatch_path == CUDAQ_DISPATCH_PATH_HOST && config.kernel_type == CUDAQ_KERNEL_UNIFIED;
}

/// The side that accesses a ring: selects the members of cudaq_ringbuffer_t that a rule checks.
enum class ring_side { host, device };

// Rules for cudaq_ringbuffer_t, for one path of a given configuration.
status_or_reason check_host_views(const cudaq_ringbuffer_t &ring);
status_or_reason check_device_views(const cudaq_ringbuffer_t &ring);
status_or_reason check_alignment(const cudaq_ringbuffer_t &ring, ring_side side);
status_or_reason check_strides(const cudaq_ringbuffer_t &ring, const cudaq_dispatcher_config_t &config, ring_side side);
status_or_reason check_overlap(const cudaq_ringbuffer_t &ring, const cudaq_dispatcher_config_t &config, ring_side side);
/// In place, the device stages the whole slot, because handlers get separate input and output areas.
status_or_reason check_staging(const cudaq_ringbuffer_t &ring, const cudaq_dispatcher_config_t &config);
/// On a ring whose requests are in device memory, only a device may read them.
status_or_reason check_requests_are_near(const cudaq_ringbuffer_t &ring, const cudaq_dispatcher_config_t &config);
status_or_reason validate_host_ring(const cudaq_ringbuffer_t &ring, const cudaq_dispatcher_config_t &config);
/// On a shared ring the host routes the kernel's requests, so it must be able to access the ring.
status_or_reason check_shared_views(const cudaq_ringbuffer_t &ring, const cudaq_dispatcher_config_t &config);
status_or_reason validate_device_ring(const cudaq_ringbuffer_t &ring, const cudaq_dispatcher_config_t &config);

// Rules for cudaq_function_table_t, for the host path; entries may be NULL if count is 0.
status_or_reason check_table_pointer(const cudaq_function_table_t &table);
status_or_reason check_entry(const cudaq_function_entry_t &entry, std::uint32_t position);
status_or_reason check_schema(const cudaq_handler_schema_t &schema, const char *whose, std::uint32_t number);
status_or_reason validate_host_table(const cudaq_function_table_t &table);

/// Rules for the control words: set, and aligned for the accesses of the library.
status_or_reason check_control(const volatile int *shutdown_flag, const std::uint64_t *stats);

// Rules for cudaq_dispatcher_options_t.
status_or_reason check_struct_size(const char *name, std::uint32_t given, std::size_t known);
status_or_reason check_option_enums(const cudaq_dispatcher_options_t &options);
status_or_reason check_pool_size(const cudaq_dispatcher_options_t &options);
status_or_reason check_placement(const cudaq_dispatcher_options_t &options);
status_or_reason validate_options(const cudaq_dispatcher_options_t &options);
/// Options that the device path does not support; checked at start.
status_or_reason check_device_options(const cudaq_dispatcher_options_t &options,
                                      const cudaq_dispatcher_config_t &config);

/// Rules for cudaq_dispatch_graph_io_t, except those that need the function table.
status_or_reason validate_graph_io(const cudaq_dispatch_graph_io_t &graph_io);

status_or_reason validate_ring_options(const cudaq_ringbuffer_options_t &options);

/// The usable bytes of a slot: config.slot_size, or the smaller stride if that is 0.
std::size_t usable_slot_bytes(const cudaq_ringbuffer_t &ring, const cudaq_dispatcher_config_t &config, ring_side side);
/// True if responses overwrite requests in this side's view.
bool is_in_place(const cudaq_ringbuffer_t &ring, ring_side side);

} // namespace cudaq::realtime::detail
