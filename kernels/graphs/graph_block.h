// SPDX-License-Identifier: Apache-2.0
// The state of a graph scheduler before the first launch. Host code.
#pragma once

#include "cudaq/realtime/detail/kernel_abi/graph_bindings.h"
#include "lib/kernel_abi/graph_params.h"

#include <new>
#include <unordered_map>

namespace cudaq::realtime::detail {

/// Host memory with the alignment that the parts of the state need.
class graph_block {
public:
  explicit graph_block(std::size_t bytes) : lines_((bytes + sizeof(line) - 1) / sizeof(line)) {}
  std::uint8_t *data() { return reinterpret_cast<std::uint8_t *>(lines_.data()); }
  const std::uint8_t *data() const { return reinterpret_cast<const std::uint8_t *>(lines_.data()); }
  std::size_t size() const { return lines_.size() * sizeof(line); }

private:
  struct alignas(128) line {
    std::uint8_t bytes[128];
  };
  std::vector<line> lines_;
};

/// The input of a graph scheduler: ring and table, graphs, options.
struct graph_plan {
  dispatch_params dispatch;
  std::vector<graph_binding> graphs;
  std::uint32_t members = kUsualMembers;
  bool order_by_key = false;              ///< ANY ordering: one queue for each route
  bool own_streams = false;               ///< one stream for each member; else one launch starts all members
  std::uint64_t grace_ns = kUsualGraceNs; ///< how long a stop waits for waiting requests and for graphs in flight
  std::uint64_t triggered = 0;            ///< the graph that DEVICE_CALL handlers trigger; 0: none
  graph_report *report = nullptr;         ///< as the device addresses it; only with a dispatcher
  std::uint8_t *shutdown_word = nullptr;  ///< library_shutdown as the host addresses it; only without a dispatcher
};

/// Makes the block of the state as it is before the first launch, and fills `layout` in.
inline graph_block make_graph_block(const graph_plan &plan, const function_index_view &host_index,
                                    graph_layout &layout) {
  std::vector<std::uint32_t> queue_of(host_index.num_routes);
  std::uint32_t num_queues = 0;
  for (std::uint32_t r = 0; r < host_index.num_routes; ++r) { // sorted by function id
    const bool same = r != 0 && host_index.routes[r].function_id == host_index.routes[r - 1].function_id;
    queue_of[r] = same && !plan.order_by_key ? num_queues - 1 : num_queues++;
  }
  layout = make_graph_layout(static_cast<std::uint32_t>(plan.graphs.size()), host_index.num_routes, num_queues,
                             plan.dispatch.ring.num_slots);
  graph_block block(layout.bytes);
  auto &state = *new (block.data()) graph_scheduler_words{};
  state.cursor = plan.dispatch.first_slot;
  state.grace_ns = plan.grace_ns;
  state.trigger.exec = plan.triggered;
  state.report = plan.report;
  state.first_waiting = state.last_waiting = kNoGraph;
  auto *pools = reinterpret_cast<graph_pool *>(block.data() + layout.pools);
  for (std::uint32_t r = 0; r < layout.num_pools; ++r)
    pools[r] = {kNoGraph, kNoGraph, queue_of[r], 0, 0, 0, 0};
  auto *queues = reinterpret_cast<wait_queue *>(block.data() + layout.queues);
  for (std::uint32_t l = 0; l < num_queues; ++l)
    queues[l] = {kNoGraph, kNoGraph, kUnlisted, 0};
  auto *graphs = reinterpret_cast<graph_instance *>(block.data() + layout.graphs);
  std::unordered_map<std::uint64_t, std::uint32_t> first_with; ///< context -> its first instance
  for (std::uint32_t g = 0; g < layout.num_graphs; ++g) {
    const graph_binding &b = plan.graphs[g];
    graph_pool &pool = pools[b.route];
    graphs[g] = {b.exec, b.io,        0, b.route, kNoGraph, 0, static_cast<std::uint32_t>(graph_phase::idle),
                 0,      b.publishes, g, 0};
    if (const auto [first, alone] = first_with.emplace(b.io, g); !alone)
      std::swap(graphs[g].sibling, graphs[first->second].sibling);
    (pool.first_idle == kNoGraph ? pool.first_idle : graphs[pool.last_idle].next) = g;
    pool.last_idle = g;
    ++pool.idle;
  }
  return block;
}

} // namespace cudaq::realtime::detail
