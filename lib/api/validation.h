// SPDX-License-Identifier: Apache-2.0
// Every rule about what a caller may pass in: one pure function per rule. A finding names the field and the value.
#pragma once

#include "cudaq/realtime/daemon/dispatcher/cudaq_realtime.h"
#include "lib/base/error_text.h"

namespace cudaq::realtime::detail {

inline constexpr std::uint32_t kMaxSlots = 1u << 24;

// Of cudaq_dispatcher_config_t.
finding check_enums(const cudaq_dispatcher_config_t &config);
finding check_slots(const cudaq_dispatcher_config_t &config);
finding check_path_is_served(const cudaq_dispatcher_config_t &config);
finding check_device_path(const cudaq_dispatcher_config_t &config);
finding check_device_id(const cudaq_dispatcher_config_t &config);
finding validate_config(const cudaq_dispatcher_config_t &config);

/// Who addresses a ring: selects the members of cudaq_ringbuffer_t that a rule is about.
enum class ring_side { host, device };

// Of cudaq_ringbuffer_t, for one path of a given configuration.
finding check_host_views(const cudaq_ringbuffer_t &ring);
finding check_device_views(const cudaq_ringbuffer_t &ring);
finding check_alignment(const cudaq_ringbuffer_t &ring, ring_side side);
finding check_strides(const cudaq_ringbuffer_t &ring, const cudaq_dispatcher_config_t &config, ring_side side);
finding check_overlap(const cudaq_ringbuffer_t &ring, const cudaq_dispatcher_config_t &config, ring_side side);
/// In place the whole slot is staged on a device, since handlers are promised separate input and output.
finding check_staging(const cudaq_ringbuffer_t &ring, const cudaq_dispatcher_config_t &config);
finding validate_host_ring(const cudaq_ringbuffer_t &ring, const cudaq_dispatcher_config_t &config);
/// The host routes what a kernel is to serve, so it has to see the ring.
finding check_shared_views(const cudaq_ringbuffer_t &ring, const cudaq_dispatcher_config_t &config);
finding validate_device_ring(const cudaq_ringbuffer_t &ring, const cudaq_dispatcher_config_t &config);

// Of cudaq_function_table_t, for the host path; entries may be null if count is 0.
finding check_table_pointer(const cudaq_function_table_t &table);
finding check_entry(const cudaq_function_entry_t &entry, std::uint32_t position);
finding check_schema(const cudaq_handler_schema_t &schema, const char *whose, std::uint32_t number);
finding validate_host_table(const cudaq_function_table_t &table);

// Of the options.
finding check_struct_size(const char *name, std::uint32_t given, std::size_t known);
finding check_option_enums(const cudaq_dispatcher_options_t &options);
finding check_pool_size(const cudaq_dispatcher_options_t &options);
finding check_placement(const cudaq_dispatcher_options_t &options);
finding validate_options(const cudaq_dispatcher_options_t &options);
/// What the device path cannot do; at start.
finding check_device_options(const cudaq_dispatcher_options_t &options, const cudaq_dispatcher_config_t &config);

/// Of cudaq_dispatch_graph_io_t, but for what the function table says.
finding validate_graph_io(const cudaq_dispatch_graph_io_t &graph_io);

finding validate_ring_options(const cudaq_ringbuffer_options_t &options);

/// The usable bytes of a slot under a configuration: slot_size, or the smaller stride where that is 0.
std::size_t usable_slot_bytes(const cudaq_ringbuffer_t &ring, const cudaq_dispatcher_config_t &config, ring_side side);
/// One side's view says that responses overwrite requests.
bool is_in_place(const cudaq_ringbuffer_t &ring, ring_side side);

} // namespace cudaq::realtime::detail
