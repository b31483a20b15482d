// SPDX-License-Identifier: Apache-2.0
// Rules for the structs that carry a struct_size: options, graph contexts, ring memory.
#include "lib/api/rules.h"
#include "lib/api/validation.h"
#include "lib/host_dispatcher/host_dispatcher.h"
#include "lib/kernel_abi/graph_params.h"

namespace cudaq::realtime::detail {

expected<> check_struct_size(const char *name, std::uint32_t given, std::size_t known) {
  if (given == 0 || given > known || given % sizeof(std::uint32_t) != 0) // no field has fewer than 4 bytes
    return make_reason(CUDAQ_ERR_INVALID_ARG,
                       "%s: struct_size is %u, but this library knows %zu bytes; set it with sizeof", name, given,
                       known);
  return {};
}

expected<> check_option_enums(const cudaq_dispatcher_options_t &o) {
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
  if (o.mailbox_content > CUDAQ_MAILBOX_IO_CONTEXT)
    return out_of_range("options->mailbox_content", o.mailbox_content, "0 (RX slot), 1 (io context)");
  if (o.block_interval_ns == 0 || o.block_interval_ns > 100000000u) // also if no thread sleeps now
    return out_of_range("options->block_interval_ns", o.block_interval_ns, "1..100000000");
  return {};
}

expected<> check_pool_size(const cudaq_dispatcher_options_t &o) {
  if (o.handler_pool_size > kMaxPoolThreads)
    return out_of_range("options->handler_pool_size", o.handler_pool_size, "0..64");
  return {};
}

expected<> check_placement(const cudaq_dispatcher_options_t &o) {
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

expected<> validate_options(const cudaq_dispatcher_options_t &o) {
  return first_of([&] { return check_option_enums(o); }, [&] { return check_pool_size(o); },
                  [&] { return check_placement(o); });
}

expected<> check_device_options(const cudaq_dispatcher_options_t &o, const cudaq_dispatcher_config_t &c) {
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

expected<> validate_graph_io(const cudaq_dispatch_graph_io_t &g) {
  if (g.graph_io_kind > CUDAQ_GRAPH_IO_PUBLISHING)
    return out_of_range("graph_io->graph_io_kind", g.graph_io_kind, "0 (forwarded), 1 (publishing)");
  if (g.num_schedulers > kMaxMembers)
    return out_of_range("graph_io->num_schedulers", g.num_schedulers, "0 (8), 1..32");
  if (g.contexts == nullptr && g.num_contexts != 0)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "graph_io->contexts is NULL but graph_io->num_contexts is %u",
                       g.num_contexts);
  return {};
}

expected<> validate_ring_options(const cudaq_ringbuffer_options_t &o) {
  if (o.memory_kind > CUDAQ_MEMORY_AUTO)
    return out_of_range("options->memory_kind", o.memory_kind,
                        "0 (host), 1 (mapped), 2 (device), 3 (requests in device memory), 4 (auto)");
  if (o.memory_kind == CUDAQ_MEMORY_DEVICE_RX && o.in_place != 0)
    return make_reason(CUDAQ_ERR_UNSUPPORTED,
                       "options->in_place is %u, but memory_kind is 3 (requests in device memory): an answer in the "
                       "request's place would be read by the CPU across the bus; use in_place 0",
                       o.in_place);
  if (o.nic_registration > 1)
    return out_of_range("options->nic_registration", o.nic_registration, "0 (no), 1 (yes)");
  if (o.nic_registration != 0 && o.memory_kind != CUDAQ_MEMORY_DEVICE_RX)
    return make_reason(
        CUDAQ_ERR_UNSUPPORTED,
        "options->nic_registration is 1, but memory_kind is %u; only 3 (requests in device memory) has it",
        o.memory_kind);
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
