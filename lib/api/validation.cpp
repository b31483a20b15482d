// SPDX-License-Identifier: Apache-2.0
#include "lib/api/validation.h"

#include "lib/host_dispatcher/host_dispatcher.h"
#include "lib/kernel_abi/graph_params.h"

#include <array>
#include <cstring>

namespace cudaq::realtime::detail {
namespace {

/// Evaluates the rules in order and returns the first reason. Rules after it are not evaluated.
template <class... Rules>
status_or_reason first_of(Rules &&...rules) {
  status_or_reason found;
  (void)((found = rules(), static_cast<bool>(found)) || ...);
  return found;
}

template <class Number>
status_or_reason out_of_range(const char *field, Number value, const char *allowed) {
  return make_reason(CUDAQ_ERR_INVALID_ARG, "%s is %s, allowed: %s", field, std::to_string(value).c_str(), allowed);
}

/// The number in an enum that a C caller has filled: it may differ from all enumerators.
template <class Enum>
int number_in(const Enum &field) {
  int number = 0;
  static_assert(sizeof(number) == sizeof(field));
  std::memcpy(&number, &field, sizeof(number));
  return number;
}

struct named_array {
  const char *field;
  const volatile void *base;
  std::uintptr_t address() const { return reinterpret_cast<std::uintptr_t>(base); }
};

/// RX flags, TX flags, RX data, TX data.
std::array<named_array, 4> arrays_of(const cudaq_ringbuffer_t &r, ring_side side) {
  if (side == ring_side::device)
    return {{{"rx_flags", r.rx_flags}, {"tx_flags", r.tx_flags}, {"rx_data", r.rx_data}, {"tx_data", r.tx_data}}};
  return {{{"rx_flags_host", r.rx_flags_host},
           {"tx_flags_host", r.tx_flags_host},
           {"rx_data_host", r.rx_data_host},
           {"tx_data_host", r.tx_data_host}}};
}

status_or_reason same_flags(const named_array &rx, const named_array &tx) {
  if (rx.base != tx.base)
    return {};
  return make_reason(CUDAQ_ERR_INVALID_ARG, "ringbuffer->%s and %s are the same array", rx.field, tx.field);
}

} // namespace

status_or_reason check_enums(const cudaq_dispatcher_config_t &c) {
  const int kernel = number_in(c.kernel_type), mode = number_in(c.dispatch_mode), path = number_in(c.dispatch_path);
  if (kernel < CUDAQ_KERNEL_REGULAR || kernel > CUDAQ_KERNEL_UNIFIED)
    return out_of_range("config->kernel_type", kernel, "0 (regular), 1 (cooperative), 2 (unified)");
  if (mode < CUDAQ_DISPATCH_DEVICE_CALL || mode > CUDAQ_DISPATCH_HOST_CALL)
    return out_of_range("config->dispatch_mode", mode, "0 (device call), 1 (graph launch), 2 (host call)");
  if (path < CUDAQ_DISPATCH_PATH_DEVICE || path > CUDAQ_DISPATCH_PATH_HOST)
    return out_of_range("config->dispatch_path", path, "0 (device), 1 (host)");
  return {};
}

status_or_reason check_slots(const cudaq_dispatcher_config_t &c) {
  if (c.kernel_type == CUDAQ_KERNEL_UNIFIED)
    return {};
  if (c.num_slots == 0 || c.num_slots > kMaxSlots)
    return out_of_range("config->num_slots", c.num_slots, "1..16777216");
  if (c.slot_size != 0 && c.slot_size < CUDAQ_RPC_HEADER_SIZE)
    return out_of_range("config->slot_size", c.slot_size, "0 (the stride), or at least the 24 bytes of a header");
  return {};
}

status_or_reason check_path_is_served(const cudaq_dispatcher_config_t &c) {
  if (c.dispatch_path == CUDAQ_DISPATCH_PATH_DEVICE)
    return check_device_path(c);
  if (c.kernel_type != CUDAQ_KERNEL_REGULAR)
    return make_reason(CUDAQ_ERR_UNSUPPORTED, "config->kernel_type is %d: the host path supports only 0 (regular)",
                       static_cast<int>(c.kernel_type));
  return {};
}

status_or_reason check_device_path(const cudaq_dispatcher_config_t &c) {
#if !defined(CUDAQ_REALTIME_HAS_CUDART)
  return make_reason(CUDAQ_ERR_UNSUPPORTED,
                     "config->dispatch_path is %d (device): this library was built without the "
                     "CUDA runtime; it serves the host path only",
                     static_cast<int>(c.dispatch_path));
#else
  if (c.dispatch_mode == CUDAQ_DISPATCH_HOST_CALL)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "config->dispatch_mode is 2 (host call) but config->dispatch_path is 0 "
                                              "(device), whose kernels cannot call host functions");
  if (c.dispatch_mode == CUDAQ_DISPATCH_GRAPH_LAUNCH && c.kernel_type != CUDAQ_KERNEL_REGULAR)
    return make_reason(CUDAQ_ERR_UNSUPPORTED,
                       "config->dispatch_mode is 1 (graph launch) but config->kernel_type is %d: the graph scheduler "
                       "needs 0 (regular)",
                       static_cast<int>(c.kernel_type));
  if (c.dispatch_mode == CUDAQ_DISPATCH_GRAPH_LAUNCH && c.shared_ring_mode != 0)
    return make_reason(CUDAQ_ERR_UNSUPPORTED,
                       "config->shared_ring_mode is %u but config->dispatch_mode is 1 (graph launch), whose "
                       "scheduler cannot share a ring",
                       c.shared_ring_mode);
  if (c.shared_ring_mode != 0 && c.kernel_type == CUDAQ_KERNEL_UNIFIED)
    return make_reason(CUDAQ_ERR_UNSUPPORTED,
                       "config->shared_ring_mode is %u but config->kernel_type is 2 (unified): a unified kernel "
                       "receives by itself and cannot share a ring",
                       c.shared_ring_mode);
  if (c.threads_per_block > 1024)
    return out_of_range("config->threads_per_block", c.threads_per_block, "0 (32), 1..1024");
  if (c.num_blocks > 65535)
    return out_of_range("config->num_blocks", c.num_blocks, "0 (1), 1..65535");
  return {};
#endif
}

status_or_reason check_device_id(const cudaq_dispatcher_config_t &c) {
  return c.device_id < 0 ? out_of_range("config->device_id", c.device_id, "0 or more") : status_or_reason{};
}

status_or_reason validate_config(const cudaq_dispatcher_config_t &c) {
  return first_of([&] { return check_enums(c); }, [&] { return check_slots(c); }, [&] { return check_device_id(c); },
                  [&] { return check_path_is_served(c); });
}

bool is_in_place(const cudaq_ringbuffer_t &r, ring_side side) {
  const auto arrays = arrays_of(r, side);
  return arrays[3].base == nullptr || arrays[3].base == arrays[2].base;
}

std::size_t usable_slot_bytes(const cudaq_ringbuffer_t &r, const cudaq_dispatcher_config_t &c, ring_side side) {
  if (c.slot_size != 0)
    return c.slot_size;
  return is_in_place(r, side) || r.rx_stride_sz < r.tx_stride_sz ? r.rx_stride_sz : r.tx_stride_sz;
}

status_or_reason check_host_views(const cudaq_ringbuffer_t &r) {
  const auto missing = [](const char *field) {
    return make_reason(CUDAQ_ERR_INVALID_ARG, "ringbuffer->%s is NULL; the host path needs it", field);
  };
  if (r.rx_flags_host == nullptr)
    return missing("rx_flags_host");
  if (r.tx_flags_host == nullptr)
    return missing("tx_flags_host");
  if (r.rx_data_host == nullptr)
    return missing("rx_data_host");
  if (r.tx_data_host == nullptr && r.tx_data != nullptr && r.tx_data != r.rx_data)
    return make_reason(CUDAQ_ERR_INVALID_ARG,
                       "ringbuffer->tx_data_host is NULL (in place) but tx_data is another array than rx_data");
  const auto arrays = arrays_of(r, ring_side::host);
  return same_flags(arrays[0], arrays[1]);
}

status_or_reason check_device_views(const cudaq_ringbuffer_t &r) {
  const auto arrays = arrays_of(r, ring_side::device);
  for (const named_array &a : arrays)
    if (a.base == nullptr)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "ringbuffer->%s is NULL; the device path needs it%s", a.field,
                         &a == &arrays[3] ? " (in place: rx_data)" : "");
  return same_flags(arrays[0], arrays[1]);
}

status_or_reason check_alignment(const cudaq_ringbuffer_t &r, ring_side side) {
  for (const named_array &a : arrays_of(r, side))
    if (a.address() % 8 != 0)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "ringbuffer->%s is %p, not a multiple of 8", a.field,
                         const_cast<const void *>(a.base));
  return {};
}

status_or_reason check_strides(const cudaq_ringbuffer_t &r, const cudaq_dispatcher_config_t &c, ring_side side) {
  const auto check = [&c](const char *field, std::size_t stride) -> status_or_reason {
    if (stride < CUDAQ_RPC_HEADER_SIZE)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "ringbuffer->%s is %zu, a header has 24 bytes", field, stride);
    if (stride % 8 != 0)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "ringbuffer->%s is %zu, not a multiple of 8", field, stride);
    if (stride < c.slot_size)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "ringbuffer->%s is %zu, less than config->slot_size %u", field, stride,
                         c.slot_size);
    if (stride > UINT32_MAX)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "ringbuffer->%s is %zu, allowed: at most 4294967295", field, stride);
    return {};
  };
  if (status_or_reason found = check("rx_stride_sz", r.rx_stride_sz))
    return found;
  if (!is_in_place(r, side))
    return check("tx_stride_sz", r.tx_stride_sz);
  if (r.tx_stride_sz != 0 && r.tx_stride_sz != r.rx_stride_sz)
    return make_reason(CUDAQ_ERR_INVALID_ARG,
                       "ringbuffer->tx_stride_sz is %zu; in place it must be 0 or rx_stride_sz, %zu", r.tx_stride_sz,
                       r.rx_stride_sz);
  return {};
}

status_or_reason check_overlap(const cudaq_ringbuffer_t &r, const cudaq_dispatcher_config_t &c, ring_side side) {
  const auto arrays = arrays_of(r, side);
  const std::size_t bytes[4] = {c.num_slots * sizeof(std::uint64_t), c.num_slots * sizeof(std::uint64_t),
                                c.num_slots * r.rx_stride_sz, c.num_slots * r.tx_stride_sz};
  const std::size_t count = is_in_place(r, side) ? 3 : 4;
  for (std::size_t a = 0; a < count; ++a)
    if (arrays[a].address() > UINTPTR_MAX - bytes[a])
      return make_reason(CUDAQ_ERR_INVALID_ARG, "ringbuffer->%s reaches beyond the address space (%u slots)",
                         arrays[a].field, c.num_slots);
  for (std::size_t a = 0; a < count; ++a)
    for (std::size_t b = a + 1; b < count; ++b)
      if (arrays[a].address() < arrays[b].address() + bytes[b] && arrays[b].address() < arrays[a].address() + bytes[a])
        return make_reason(CUDAQ_ERR_INVALID_ARG, "ringbuffer->%s and %s overlap (%u slots)", arrays[a].field,
                           arrays[b].field, c.num_slots);
  return {};
}

status_or_reason check_staging(const cudaq_ringbuffer_t &r, const cudaq_dispatcher_config_t &c) {
  const std::size_t usable = usable_slot_bytes(r, c, ring_side::device);
  if (!is_in_place(r, ring_side::device) || usable <= kDeviceStagingBytes)
    return {};
  return make_reason(CUDAQ_ERR_INVALID_ARG,
                     "ringbuffer->tx_data is rx_data (in place) with slots of %zu usable bytes: "
                     "on the device path an in-place slot has at most %u",
                     usable, kDeviceStagingBytes);
}

status_or_reason validate_host_ring(const cudaq_ringbuffer_t &r, const cudaq_dispatcher_config_t &c) {
  constexpr ring_side side = ring_side::host;
  return first_of([&] { return check_host_views(r); }, [&] { return check_alignment(r, side); },
                  [&] { return check_strides(r, c, side); }, [&] { return check_overlap(r, c, side); });
}

status_or_reason check_shared_views(const cudaq_ringbuffer_t &r, const cudaq_dispatcher_config_t &c) {
  if (c.shared_ring_mode == 0)
    return {};
  const bool in_place = is_in_place(r, ring_side::device);
  if (c.num_slots > ring_inbox::kMostSlots)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "config->num_slots is %u, a kernel's shared ring has at most %u",
                       c.num_slots, ring_inbox::kMostSlots);
  const named_array needed[] = {{"rx_flags_host", r.rx_flags_host},
                                {"tx_flags_host", r.tx_flags_host},
                                {"rx_data_host", r.rx_data_host},
                                {"tx_data_host", in_place ? r.rx_data_host : r.tx_data_host}};
  for (const named_array &a : needed)
    if (a.base == nullptr)
      return make_reason(CUDAQ_ERR_INVALID_ARG,
                         "ringbuffer->%s is NULL; config->shared_ring_mode is %u, and the host routes the requests of "
                         "a shared ring",
                         a.field, c.shared_ring_mode);
  if (in_place != is_in_place(r, ring_side::host))
    return make_reason(CUDAQ_ERR_INVALID_ARG, "ringbuffer: one view is in place (tx_data is NULL or rx_data) and the "
                                              "other is not; the host routes a shared ring, so both must agree");
  return validate_host_ring(r, c);
}

status_or_reason validate_device_ring(const cudaq_ringbuffer_t &r, const cudaq_dispatcher_config_t &c) {
  constexpr ring_side side = ring_side::device;
  return first_of([&] { return check_device_views(r); }, [&] { return check_alignment(r, side); },
                  [&] { return check_strides(r, c, side); }, [&] { return check_overlap(r, c, side); },
                  [&] { return check_staging(r, c); }, [&] { return check_shared_views(r, c); });
}

status_or_reason check_table_pointer(const cudaq_function_table_t &t) {
  if (t.entries == nullptr && t.count != 0)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "table->entries is NULL but table->count is %u", t.count);
  return {};
}

status_or_reason check_schema(const cudaq_handler_schema_t &s, const char *whose, std::uint32_t number) {
  if (s.num_args > CUDAQ_MAX_ARGS)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "%s %u: schema.num_args is %u, allowed: at most 8", whose, number,
                       s.num_args);
  if (s.num_results > CUDAQ_MAX_RESULTS)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "%s %u: schema.num_results is %u, allowed: at most 4", whose, number,
                       s.num_results);
  return {};
}

// A table may have modes that this dispatcher does not serve: their requests are answered MODE_NOT_SERVED.
status_or_reason check_entry(const cudaq_function_entry_t &e, std::uint32_t position) {
  if (e.dispatch_mode > CUDAQ_DISPATCH_HOST_CALL)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "table->entries[%u].dispatch_mode is %u, allowed: 0..2", position,
                       e.dispatch_mode);
  if (e.dispatch_mode == CUDAQ_DISPATCH_HOST_CALL && e.handler.host_fn == nullptr)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "table->entries[%u].handler.host_fn is NULL", position);
  return check_schema(e.schema, "table->entries", position);
}

status_or_reason validate_host_table(const cudaq_function_table_t &t) {
  status_or_reason found = check_table_pointer(t);
  for (std::uint32_t e = 0; !found && e < t.count; ++e)
    found = check_entry(t.entries[e], e);
  return found;
}

status_or_reason check_struct_size(const char *name, std::uint32_t given, std::size_t known) {
  if (given == 0 || given > known || given % sizeof(std::uint32_t) != 0) // no field has fewer than 4 bytes
    return make_reason(CUDAQ_ERR_INVALID_ARG,
                       "%s: struct_size is %u, but this library knows %zu bytes; set it with sizeof", name, given,
                       known);
  return {};
}

status_or_reason check_option_enums(const cudaq_dispatcher_options_t &o) {
  if (o.ordering > CUDAQ_ORDERING_ANY)
    return out_of_range("options->ordering", o.ordering, "0 (FIFO), 1 (ANY)");
  if (o.unknown_function > CUDAQ_UNKNOWN_FUNCTION_ANSWER)
    return out_of_range("options->unknown_function", o.unknown_function, "0 (drop), 1 (answer)");
  if (o.wait_policy > CUDAQ_WAIT_BLOCK)
    return out_of_range("options->wait_policy", o.wait_policy, "0 (spin), 1 (spin then yield), 2 (block)");
  if (o.busy_workers > CUDAQ_BUSY_WORKERS_PASS_KEY)
    return out_of_range("options->busy_workers", o.busy_workers, "0 (wait), 1 (pass function), 2 (pass key)");
  if (o.ring_peers > CUDAQ_RING_PEERS_SAME_DEVICE)
    return out_of_range("options->ring_peers", o.ring_peers, "0 (any), 1 (same device)");
  if (o.payload_in_slot > 1)
    return out_of_range("options->payload_in_slot", o.payload_in_slot, "0 (a copy), 1 (in its slot)");
  if (o.reserved != 0)
    return out_of_range("options->reserved", o.reserved, "0");
  if (o.wait_policy == CUDAQ_WAIT_BLOCK && (o.block_interval_ns == 0 || o.block_interval_ns > 100000000u))
    return out_of_range("options->block_interval_ns", o.block_interval_ns, "1..100000000");
  return {};
}

status_or_reason check_pool_size(const cudaq_dispatcher_options_t &o) {
  if (o.handler_pool_size > kMaxPoolThreads)
    return out_of_range("options->handler_pool_size", o.handler_pool_size, "0..64");
  return {};
}

status_or_reason check_placement(const cudaq_dispatcher_options_t &o) {
  if (o.dispatcher_core < CUDAQ_CORE_ANY)
    return out_of_range("options->dispatcher_core", o.dispatcher_core, "-1 (any) or a CPU number");
  if (o.handler_core_base < CUDAQ_CORE_ANY)
    return out_of_range("options->handler_core_base", o.handler_core_base, "-1 (any) or a CPU number");
  if (o.numa_node < CUDAQ_NUMA_NODE_ANY)
    return out_of_range("options->numa_node", o.numa_node, "-1 (any) or a node number");
  if (o.realtime_priority < 0 || o.realtime_priority > 99)
    return out_of_range("options->realtime_priority", o.realtime_priority, "0 (off), 1..99");
  return {};
}

status_or_reason validate_options(const cudaq_dispatcher_options_t &o) {
  return first_of([&] { return check_option_enums(o); }, [&] { return check_pool_size(o); },
                  [&] { return check_placement(o); });
}

status_or_reason check_device_options(const cudaq_dispatcher_options_t &o, const cudaq_dispatcher_config_t &c) {
  if (c.kernel_type == CUDAQ_KERNEL_COOPERATIVE && o.ordering == CUDAQ_ORDERING_ANY)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "options->ordering is 1 (any) but config->kernel_type is 1 "
                                              "(cooperative), which serves one request after another");
  if (c.shared_ring_mode != 0 && o.ordering == CUDAQ_ORDERING_ANY)
    return make_reason(CUDAQ_ERR_UNSUPPORTED,
                       "options->ordering is 1 (any) but config->shared_ring_mode is %u: on the device path a shared "
                       "ring is served in order",
                       c.shared_ring_mode);
  if (o.handler_pool_size != 0)
    return make_reason(CUDAQ_ERR_UNSUPPORTED, "options->handler_pool_size is %u, the device path allows only 0",
                       o.handler_pool_size);
  const bool places_the_dispatcher =
      o.dispatcher_core != CUDAQ_CORE_ANY || o.numa_node != CUDAQ_NUMA_NODE_ANY || o.realtime_priority != 0;
  const bool routes = c.shared_ring_mode != 0; // with a host thread
  if (o.handler_core_base != CUDAQ_CORE_ANY || (places_the_dispatcher && !routes))
    return make_reason(CUDAQ_ERR_UNSUPPORTED, "options->dispatcher_core, handler_core_base, numa_node and "
                                              "realtime_priority: the device path has no host threads to place, "
                                              "except the one that routes a shared ring");
  return {};
}

status_or_reason validate_graph_io(const cudaq_dispatch_graph_io_t &g) {
  if (g.graph_io_kind > CUDAQ_GRAPH_IO_PUBLISHING)
    return out_of_range("graph_io->graph_io_kind", g.graph_io_kind, "0 (forwarded), 1 (publishing)");
  if (g.num_schedulers > kMostMembers)
    return out_of_range("graph_io->num_schedulers", g.num_schedulers, "0 (8), 1..32");
  if (g.contexts == nullptr && g.num_contexts != 0)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "graph_io->contexts is NULL but graph_io->num_contexts is %u",
                       g.num_contexts);
  return {};
}

status_or_reason validate_ring_options(const cudaq_ringbuffer_options_t &o) {
  if (o.memory_kind > CUDAQ_MEMORY_DEVICE)
    return out_of_range("options->memory_kind", o.memory_kind, "0 (host), 1 (mapped), 2 (device)");
  if (o.num_slots == 0 || o.num_slots > kMaxSlots)
    return out_of_range("options->num_slots", o.num_slots, "1..16777216");
  if (o.slot_size < CUDAQ_RPC_HEADER_SIZE || o.slot_size > UINT32_MAX - 63)
    return out_of_range("options->slot_size", o.slot_size, "24 (a header alone) .. 4294967232");
  if (o.numa_node < CUDAQ_NUMA_NODE_ANY)
    return out_of_range("options->numa_node", o.numa_node, "-1 (any) or a node number");
  if (o.device_id < 0)
    return out_of_range("options->device_id", o.device_id, "0 or more");
  if (o.memory_kind != CUDAQ_MEMORY_HOST && (o.hugepages != 0 || o.numa_node != CUDAQ_NUMA_NODE_ANY))
    return make_reason(CUDAQ_ERR_UNSUPPORTED,
                       "options->hugepages and numa_node need memory_kind 0 (plain host memory); "
                       "memory_kind is %u",
                       o.memory_kind);
  return {};
}

} // namespace cudaq::realtime::detail
