// SPDX-License-Identifier: Apache-2.0
// GRAPH_LAUNCH on the device path: the graphs of the table, and the graph schedulers that the launch function makes for
// them.
#include "cudaq/realtime/daemon/dispatcher/rpc_types.h"
#include "lib/api/device_path/device_back_end.h"
#include "lib/api/device_path/graph_texts.h"
#include "lib/base/cuda_device.h"
#include "lib/host_dispatcher/diagnostics.h"
#include "lib/kernel_abi/graph_params.h"

#include <cinttypes>

namespace cudaq::realtime::detail {

expected<> device_back_end::prepare_graphs(const wiring &w, graph_launch_state &state) {
  if (!launches_graphs())
    return {};
  int major = 0;
  if (const cudaError_t error = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, config_.device_id))
    return cuda_failed("cudaDeviceGetAttribute", error);
  if (!has_device_graphs(major))
    return make_reason(CUDAQ_ERR_UNSUPPORTED,
                       "config->dispatch_mode is 1 (graph launch): device %d has compute capability %d.x; graph "
                       "launches from a device need 9.0 or later",
                       config_.device_id, major);
  if (w.graph_contexts.size() != w.table->count)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "graph_io->num_contexts is %zu, the function table has %u entries",
                       w.graph_contexts.size(), w.table->count);
  for (graph_binding &b : graphs_) {
    b.io = reinterpret_cast<std::uint64_t>(w.graph_contexts[b.entry]);
    b.publishes = w.graph_io->graph_io_kind == CUDAQ_GRAPH_IO_PUBLISHING;
    if (b.io == 0 || b.io % alignof(GraphIOContext) != 0)
      return make_reason(CUDAQ_ERR_INVALID_ARG,
                         "graph_io->contexts[%u] is %p; a GRAPH_LAUNCH entry needs the device address of its "
                         "GraphIOContext, a multiple of 8",
                         b.entry, w.graph_contexts[b.entry]);
  }
  if (const auto [a, b] = graph_of_two_contexts(graphs_); a != nullptr)
    return make_reason(CUDAQ_ERR_INVALID_ARG,
                       "table->entries[%u] and [%u] have the same graph but different graph_io->contexts", a->entry,
                       b->entry);
  state.graphs = graphs_.data();
  state.num_graphs = static_cast<std::uint32_t>(graphs_.size());
  state.members = w.graph_io->num_schedulers == 0 ? kUsualMembers : w.graph_io->num_schedulers;
  state.grace_ns = w.options.grace_period_ns;
  state.order_by_key = w.options.ordering == CUDAQ_ORDERING_ANY;
  state.host_index = table_.host_index().view();
  manager_.make_room_for_spare_graphs();
  if (schedulers_.made == nullptr)
    schedulers_ = manager_.take_spare_graphs(config_.device_id);
  state.made = schedulers_.made;
  state.destroy = schedulers_.destroy;
  return {};
}

/// A graph as the caller knows it, for each number that a graph_report may contain.
std::vector<std::string> device_back_end::graph_names() const {
  std::vector<std::string> names;
  const function_index_view index = table_.host_index().view();
  for (const graph_binding &b : graphs_) {
    std::string &name = names.emplace_back();
    append(name, "the graph of table->entries[%u] (function 0x%08x, routing key %" PRIu64 ")", b.entry,
           index.routes[b.route].function_id, index.routes[b.route].routing_key);
  }
  return names;
}

/// The scheduler begins the grace period when it sees the stop, and ends somewhat after its end.
steady_clock::time_point device_back_end::end_deadline(std::uint64_t timeout_ns,
                                                       steady_clock::time_point deadline) const {
  constexpr std::chrono::nanoseconds kMore(kEndAfterGraceNs);
  const bool lasts = launches_graphs() && timeout_ns >= account_.options.grace_period_ns;
  return lasts && deadline < steady_clock::time_point::max() - kMore ? deadline + kMore : deadline;
}

std::string device_back_end::late_graph() const {
  const std::uint64_t late = launches_graphs() ? reports_.graphs().late_graph : 0;
  return late == 0 ? "" : "; it waits for the end of " + describe_graph(late, account_.graph_names);
}

/// Keeps the schedulers that the launch function has made. If it belongs to another module or kernel, it has not used
/// the old ones, which become spare.
void device_back_end::take_made(const graph_launch_state &state) {
  if (schedulers_.made != nullptr && schedulers_.made != state.made)
    manager_.keep_spare_graphs(schedulers_);
  schedulers_ = {config_.device_id, state.made, state.destroy};
}

expected<> device_back_end::gave_up() const {
  const cudaError_t error = reports_.fault();
  if (error == kNotAttached && unified())
    return make_reason(CUDAQ_ERR_INTERNAL, "cudaq_dev_transport_attach returned NULL: the transport refused "
                                           "transport_ctx, or the program was linked without device hooks");
  if (error == kWrongFrames && unified())
    return make_reason(CUDAQ_ERR_INTERNAL, "cudaq_dev_rx_poll returned a frame that is NULL or not aligned, or the "
                                           "same for request and response; the kernel has ended");
  return error == cudaSuccess
             ? expected<>{}
             : cuda_failed("no graph scheduler could continue; the requests that they had accepted are answered",
                           error);
}

std::string device_back_end::describe_graphs() const {
  account now;
  {
    const std::lock_guard lock(reading_);
    now = account_;
  }
  std::string text;
  if (!launches_graphs())
    return text;
  cudaq_dispatcher_stats_t stats{};
  reports_.read(stats);
  append(text,
         "graphs: %u, %" PRIu64 " launches, by %u schedulers that have taken turns %" PRIu64 " times, %" PRIu64
         " of them without a successor; %" PRIu64 " requests accepted and not answered\n",
         now.graphs, stats.launches, now.schedulers, stats.relaunches, reports_.unrelieved(), stats.in_flight);
  return text + describe_stop_of_graphs(reports_.graphs(), under_way_.load() != 0, now.graph_names);
}

} // namespace cudaq::realtime::detail
