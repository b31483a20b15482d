// SPDX-License-Identifier: Apache-2.0
#include "lib/api/validation.h"

#include "lib/host_dispatcher/host_dispatcher.h"

#include <cstring>

namespace cudaq::realtime::detail {
namespace {

/// The first finding of several rules. Each is evaluated only if the ones before found nothing.
template <class... Rules>
finding first_of(Rules &&...rules) {
  finding found;
  (void)((found = rules(), static_cast<bool>(found)) || ...);
  return found;
}

template <class Number>
finding out_of_range(const char *field, Number value, const char *allowed) {
  return make_finding(CUDAQ_ERR_INVALID_ARG, "%s is %s, allowed: %s", field, std::to_string(value).c_str(), allowed);
}

/// The number in an enum that a C caller filled in: it may be none of the enumerators.
template <class Enum>
int number_in(const Enum &field) {
  int number = 0;
  static_assert(sizeof(number) == sizeof(field));
  std::memcpy(&number, &field, sizeof(number));
  return number;
}

bool misaligned(const volatile void *p) { return reinterpret_cast<std::uintptr_t>(p) % 8 != 0; }

} // namespace

finding check_enums(const cudaq_dispatcher_config_t &c) {
  const int kernel = number_in(c.kernel_type), mode = number_in(c.dispatch_mode), path = number_in(c.dispatch_path);
  if (kernel < CUDAQ_KERNEL_REGULAR || kernel > CUDAQ_KERNEL_UNIFIED)
    return out_of_range("config->kernel_type", kernel, "0 (regular), 1 (cooperative), 2 (unified)");
  if (mode < CUDAQ_DISPATCH_DEVICE_CALL || mode > CUDAQ_DISPATCH_HOST_CALL)
    return out_of_range("config->dispatch_mode", mode, "0 (device call), 1 (graph launch), 2 (host call)");
  if (path < CUDAQ_DISPATCH_PATH_DEVICE || path > CUDAQ_DISPATCH_PATH_HOST)
    return out_of_range("config->dispatch_path", path, "0 (device), 1 (host)");
  return {};
}

finding check_slots(const cudaq_dispatcher_config_t &c) {
  if (c.kernel_type == CUDAQ_KERNEL_UNIFIED)
    return {};
  if (c.num_slots == 0 || c.num_slots > kMaxSlots)
    return out_of_range("config->num_slots", c.num_slots, "1..16777216");
  if (c.slot_size != 0 && c.slot_size < CUDAQ_RPC_HEADER_SIZE)
    return out_of_range("config->slot_size", c.slot_size, "0 (the stride), or at least the 24 bytes of a header");
  return {};
}

finding check_path_is_served(const cudaq_dispatcher_config_t &c) {
  if (c.dispatch_path == CUDAQ_DISPATCH_PATH_DEVICE)
    return make_finding(CUDAQ_ERR_UNSUPPORTED,
                        "config->dispatch_path is 0 (device): this version serves the host path only");
  if (c.kernel_type != CUDAQ_KERNEL_REGULAR)
    return make_finding(CUDAQ_ERR_UNSUPPORTED, "config->kernel_type is %d: this version's host path has no such mode",
                        static_cast<int>(c.kernel_type));
  return {};
}

finding check_device_id(const cudaq_dispatcher_config_t &c) {
  return c.device_id < 0 ? out_of_range("config->device_id", c.device_id, "0 or more") : finding{};
}

finding validate_config(const cudaq_dispatcher_config_t &c) {
  return first_of([&] { return check_enums(c); }, [&] { return check_slots(c); }, [&] { return check_device_id(c); },
                  [&] { return check_path_is_served(c); });
}

bool is_in_place(const cudaq_ringbuffer_t &r) { return r.tx_data_host == nullptr || r.tx_data_host == r.rx_data_host; }

std::size_t usable_slot_bytes(const cudaq_ringbuffer_t &r, const cudaq_dispatcher_config_t &c) {
  if (c.slot_size != 0)
    return c.slot_size;
  return is_in_place(r) || r.rx_stride_sz < r.tx_stride_sz ? r.rx_stride_sz : r.tx_stride_sz;
}

finding check_host_views(const cudaq_ringbuffer_t &r) {
  const auto missing = [](const char *field) {
    return make_finding(CUDAQ_ERR_INVALID_ARG, "ringbuffer->%s is NULL; the host path needs it", field);
  };
  if (r.rx_flags_host == nullptr)
    return missing("rx_flags_host");
  if (r.tx_flags_host == nullptr)
    return missing("tx_flags_host");
  if (r.rx_data_host == nullptr)
    return missing("rx_data_host");
  if (r.tx_data_host == nullptr && r.tx_data != nullptr && r.tx_data != r.rx_data)
    return make_finding(CUDAQ_ERR_INVALID_ARG,
                        "ringbuffer->tx_data_host is NULL (in place) but tx_data is another array than rx_data");
  if (r.rx_flags_host == r.tx_flags_host)
    return make_finding(CUDAQ_ERR_INVALID_ARG, "ringbuffer->rx_flags_host and tx_flags_host are the same array");
  return {};
}

finding check_alignment(const cudaq_ringbuffer_t &r) {
  const struct {
    const char *field;
    const volatile void *pointer;
  } bases[] = {{"rx_flags_host", r.rx_flags_host},
               {"tx_flags_host", r.tx_flags_host},
               {"rx_data_host", r.rx_data_host},
               {"tx_data_host", r.tx_data_host}};
  for (const auto &b : bases)
    if (misaligned(b.pointer))
      return make_finding(CUDAQ_ERR_INVALID_ARG, "ringbuffer->%s is %p, not a multiple of 8", b.field,
                          const_cast<const void *>(b.pointer));
  return {};
}

finding check_strides(const cudaq_ringbuffer_t &r, const cudaq_dispatcher_config_t &c) {
  const auto check = [&c](const char *field, std::size_t stride) -> finding {
    if (stride < CUDAQ_RPC_HEADER_SIZE)
      return make_finding(CUDAQ_ERR_INVALID_ARG, "ringbuffer->%s is %zu, a header alone takes 24 bytes", field, stride);
    if (stride % 8 != 0)
      return make_finding(CUDAQ_ERR_INVALID_ARG, "ringbuffer->%s is %zu, not a multiple of 8", field, stride);
    if (stride < c.slot_size)
      return make_finding(CUDAQ_ERR_INVALID_ARG, "ringbuffer->%s is %zu, less than config->slot_size %u", field, stride,
                          c.slot_size);
    if (stride > UINT32_MAX)
      return make_finding(CUDAQ_ERR_INVALID_ARG, "ringbuffer->%s is %zu, slots end at 4 GiB", field, stride);
    return {};
  };
  if (finding found = check("rx_stride_sz", r.rx_stride_sz))
    return found;
  if (!is_in_place(r))
    return check("tx_stride_sz", r.tx_stride_sz);
  if (r.tx_stride_sz != 0 && r.tx_stride_sz != r.rx_stride_sz)
    return make_finding(CUDAQ_ERR_INVALID_ARG,
                        "ringbuffer->tx_stride_sz is %zu; in place it must be 0 or rx_stride_sz, %zu", r.tx_stride_sz,
                        r.rx_stride_sz);
  return {};
}

finding check_overlap(const cudaq_ringbuffer_t &r, const cudaq_dispatcher_config_t &c) {
  struct area {
    const char *field;
    std::uintptr_t begin;
    std::size_t bytes;
  };
  const auto at = [](const volatile void *p) { return reinterpret_cast<std::uintptr_t>(p); };
  area areas[4] = {{"rx_flags_host", at(r.rx_flags_host), c.num_slots * sizeof(std::uint64_t)},
                   {"tx_flags_host", at(r.tx_flags_host), c.num_slots * sizeof(std::uint64_t)},
                   {"rx_data_host", at(r.rx_data_host), c.num_slots * r.rx_stride_sz},
                   {"tx_data_host", at(r.tx_data_host), c.num_slots * r.tx_stride_sz}};
  const int count = is_in_place(r) ? 3 : 4;
  for (int a = 0; a < count; ++a)
    if (areas[a].begin > UINTPTR_MAX - areas[a].bytes)
      return make_finding(CUDAQ_ERR_INVALID_ARG, "ringbuffer->%s reaches beyond the address space (%u slots)",
                          areas[a].field, c.num_slots);
  for (int a = 0; a < count; ++a)
    for (int b = a + 1; b < count; ++b)
      if (areas[a].begin < areas[b].begin + areas[b].bytes && areas[b].begin < areas[a].begin + areas[a].bytes)
        return make_finding(CUDAQ_ERR_INVALID_ARG, "ringbuffer->%s and %s overlap (%u slots)", areas[a].field,
                            areas[b].field, c.num_slots);
  return {};
}

finding validate_host_ring(const cudaq_ringbuffer_t &r, const cudaq_dispatcher_config_t &c) {
  return first_of([&] { return check_host_views(r); }, [&] { return check_alignment(r); },
                  [&] { return check_strides(r, c); }, [&] { return check_overlap(r, c); });
}

finding check_table_pointer(const cudaq_function_table_t &t) {
  if (t.entries == nullptr && t.count != 0)
    return make_finding(CUDAQ_ERR_INVALID_ARG, "table->entries is NULL but table->count is %u", t.count);
  return {};
}

finding check_schema(const cudaq_handler_schema_t &s, const char *whose, std::uint32_t number) {
  if (s.num_args > CUDAQ_MAX_ARGS)
    return make_finding(CUDAQ_ERR_INVALID_ARG, "%s %u: schema.num_args is %u, at most 8", whose, number, s.num_args);
  if (s.num_results > CUDAQ_MAX_RESULTS)
    return make_finding(CUDAQ_ERR_INVALID_ARG, "%s %u: schema.num_results is %u, at most 4", whose, number,
                        s.num_results);
  return {};
}

// Modes that this dispatcher does not serve are legal in a table: the request gets MODE_NOT_SERVED.
finding check_entry(const cudaq_function_entry_t &e, std::uint32_t position) {
  if (e.dispatch_mode > CUDAQ_DISPATCH_HOST_CALL)
    return make_finding(CUDAQ_ERR_INVALID_ARG, "table->entries[%u].dispatch_mode is %u, allowed: 0..2", position,
                        e.dispatch_mode);
  if (e.dispatch_mode == CUDAQ_DISPATCH_HOST_CALL && e.handler.host_fn == nullptr)
    return make_finding(CUDAQ_ERR_INVALID_ARG, "table->entries[%u].handler.host_fn is NULL", position);
  return check_schema(e.schema, "table->entries", position);
}

finding validate_host_table(const cudaq_function_table_t &t) {
  finding found = check_table_pointer(t);
  for (std::uint32_t e = 0; !found && e < t.count; ++e)
    found = check_entry(t.entries[e], e);
  return found;
}

finding check_struct_size(const char *name, std::uint32_t given, std::size_t known) {
  if (given == 0 || given > known || given % sizeof(std::uint32_t) != 0) // no field is smaller
    return make_finding(CUDAQ_ERR_INVALID_ARG,
                        "%s: struct_size is %u, this library knows %zu bytes (0.1: fill it with sizeof)", name, given,
                        known);
  return {};
}

finding check_option_enums(const cudaq_dispatcher_options_t &o) {
  if (o.ordering > CUDAQ_ORDERING_ANY)
    return out_of_range("options->ordering", o.ordering, "0 (FIFO), 1 (ANY)");
  if (o.unknown_function > CUDAQ_UNKNOWN_FUNCTION_ANSWER)
    return out_of_range("options->unknown_function", o.unknown_function, "0 (drop), 1 (answer)");
  if (o.wait_policy > CUDAQ_WAIT_BLOCK)
    return out_of_range("options->wait_policy", o.wait_policy, "0 (spin), 1 (spin then yield), 2 (block)");
  if (o.wait_policy == CUDAQ_WAIT_BLOCK && (o.block_interval_ns == 0 || o.block_interval_ns > 100000000u))
    return out_of_range("options->block_interval_ns", o.block_interval_ns, "1..100000000");
  return {};
}

finding check_pool_size(const cudaq_dispatcher_options_t &o) {
  if (o.handler_pool_size > kMaxPoolThreads)
    return out_of_range("options->handler_pool_size", o.handler_pool_size, "0..64");
  return {};
}

finding check_placement(const cudaq_dispatcher_options_t &o) {
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

finding validate_options(const cudaq_dispatcher_options_t &o) {
  return first_of([&] { return check_option_enums(o); }, [&] { return check_pool_size(o); },
                  [&] { return check_placement(o); });
}

finding validate_ring_options(const cudaq_ringbuffer_options_t &o) {
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
    return make_finding(CUDAQ_ERR_UNSUPPORTED,
                        "options->hugepages and numa_node are for plain host memory; "
                        "memory_kind is %u",
                        o.memory_kind);
  return {};
}

} // namespace cudaq::realtime::detail
