// SPDX-License-Identifier: Apache-2.0
// Rules for the configuration and the function table.
#include "lib/api/rules.h"
#include "lib/api/validation.h"
#include "lib/base/enum_number.h"

namespace cudaq::realtime::detail {

expected<> check_enums(const cudaq_dispatcher_config_t &c) {
  const int kernel = number_in(c.kernel_type), mode = number_in(c.dispatch_mode), path = number_in(c.dispatch_path);
  if (kernel < CUDAQ_KERNEL_REGULAR || kernel > CUDAQ_KERNEL_UNIFIED)
    return out_of_range("config->kernel_type", kernel, "0 (regular), 1 (cooperative), 2 (unified)");
  if (mode < CUDAQ_DISPATCH_DEVICE_CALL || mode > CUDAQ_DISPATCH_HOST_CALL)
    return out_of_range("config->dispatch_mode", mode, "0 (device call), 1 (graph launch), 2 (host call)");
  if (path < CUDAQ_DISPATCH_PATH_DEVICE || path > CUDAQ_DISPATCH_PATH_HOST)
    return out_of_range("config->dispatch_path", path, "0 (device), 1 (host)");
  return {};
}

expected<> check_slots(const cudaq_dispatcher_config_t &c) {
  if (c.kernel_type == CUDAQ_KERNEL_UNIFIED && c.dispatch_path == CUDAQ_DISPATCH_PATH_DEVICE)
    return {};
  const bool may_be_unknown = is_unified_host(c); // see cudaq_dispatcher_set_cpu_dataplane
  if ((c.num_slots == 0 && !may_be_unknown) || c.num_slots > kMaxSlots)
    return out_of_range("config->num_slots", c.num_slots, "1..16777216");
  if (c.slot_size != 0 && c.slot_size < CUDAQ_RPC_HEADER_SIZE)
    return out_of_range("config->slot_size", c.slot_size, "0 (the stride), or at least the 24 bytes of a header");
  return {};
}

expected<> check_path_is_served(const cudaq_dispatcher_config_t &c) {
  if (c.dispatch_path == CUDAQ_DISPATCH_PATH_DEVICE)
    return check_device_path(c);
  if (c.kernel_type == CUDAQ_KERNEL_COOPERATIVE)
    return make_reason(
        CUDAQ_ERR_UNSUPPORTED,
        "config->kernel_type is 1 (cooperative): the host path supports 0 (regular), and 2 (unified) for "
        "a CPU dataplane");
  if (is_unified_host(c) && c.shared_ring_mode != 0)
    return make_reason(
        CUDAQ_ERR_UNSUPPORTED,
        "config->shared_ring_mode is %u but config->kernel_type is 2 (unified): a dataplane has one loop",
        c.shared_ring_mode);
  return {};
}

expected<> check_device_path(const cudaq_dispatcher_config_t &c) {
#if !defined(CUDAQ_REALTIME_HAS_CUDART)
  return make_reason(CUDAQ_ERR_UNSUPPORTED,
                     "config->dispatch_path is %d (device): this library was built without the "
                     "CUDA runtime; it serves the host path only, CUDAQ_DISPATCH_PATH_HOST",
                     static_cast<int>(c.dispatch_path));
#else
  if (c.dispatch_mode == CUDAQ_DISPATCH_HOST_CALL)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "config->dispatch_mode is 2 (host call) but config->dispatch_path is 0 "
                                              "(device), also if it was not set, whose kernels cannot call host "
                                              "functions: set it to CUDAQ_DISPATCH_PATH_HOST");
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

expected<> check_device_id(const cudaq_dispatcher_config_t &c) {
  const bool has_device = c.dispatch_path != CUDAQ_DISPATCH_PATH_HOST; // else negative: that of the calling thread
  return c.device_id < 0 && has_device ? out_of_range("config->device_id", c.device_id, "0 or more") : expected<>{};
}

expected<> validate_config(const cudaq_dispatcher_config_t &c) {
  return first_of([&] { return check_enums(c); }, [&] { return check_slots(c); }, [&] { return check_device_id(c); },
                  [&] { return check_path_is_served(c); });
}

expected<> check_control(const volatile int *shutdown_flag, const std::uint64_t *stats) {
  const auto check = [](const char *name, const volatile void *word, std::uintptr_t size) -> expected<> {
    if (word == nullptr)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "%s is NULL", name);
    if (reinterpret_cast<std::uintptr_t>(word) % size != 0)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "%s is %p, not a multiple of %zu", name, const_cast<const void *>(word),
                         static_cast<std::size_t>(size));
    return {};
  };
  return first_of([&] { return check("shutdown_flag", shutdown_flag, sizeof(*shutdown_flag)); },
                  [&] { return check("stats", stats, sizeof(*stats)); });
}

expected<> check_table_pointer(const cudaq_function_table_t &t) {
  if (t.entries == nullptr && t.count != 0)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "table->entries is NULL but table->count is %u", t.count);
  return {};
}

expected<> check_schema(const cudaq_handler_schema_t &s, const char *whose, std::uint32_t number) {
  if (s.num_args > CUDAQ_MAX_ARGS)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "%s %u: schema.num_args is %u, allowed: at most 8", whose, number,
                       s.num_args);
  if (s.num_results > CUDAQ_MAX_RESULTS)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "%s %u: schema.num_results is %u, allowed: at most 4", whose, number,
                       s.num_results);
  return {};
}

// A table may have modes that this dispatcher does not serve: their requests are answered MODE_NOT_SERVED.
expected<> check_entry(const cudaq_function_entry_t &e, std::uint32_t position) {
  if (e.dispatch_mode > CUDAQ_DISPATCH_HOST_CALL)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "table->entries[%u].dispatch_mode is %u, allowed: 0..2", position,
                       e.dispatch_mode);
  if (e.dispatch_mode == CUDAQ_DISPATCH_HOST_CALL && e.handler.host_fn == nullptr)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "table->entries[%u].handler.host_fn is NULL", position);
  return check_schema(e.schema, "table->entries", position);
}

expected<> validate_host_table(const cudaq_function_table_t &t) {
  expected<> result = check_table_pointer(t);
  for (std::uint32_t e = 0; result.ok() && e < t.count; ++e)
    result = check_entry(t.entries[e], e);
  return result;
}

} // namespace cudaq::realtime::detail
