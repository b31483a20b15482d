// SPDX-License-Identifier: Apache-2.0
// The graphs of a function table. Several entries with one function id and routing key are a pool. The function index
// has one route for the whole pool.
#pragma once

#include "cudaq/realtime/daemon/dispatcher/realtime_types.h"
#include "cudaq/realtime/detail/ring/function_index.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace cudaq::realtime::detail {

/// A GRAPH_LAUNCH entry.
struct graph_binding {
  std::uint64_t exec = 0; ///< cudaGraphExec_t
  std::uint64_t io = 0;   ///< device address of its GraphIOContext
  std::uint32_t entry = 0, route = 0;
  bool publishes = false; ///< io is a GraphIOContextV2
};

inline bool is_graph(const cudaq_function_entry_t &e) { return e.dispatch_mode == CUDAQ_DISPATCH_GRAPH_LAUNCH; }

/// Position of the first GRAPH_LAUNCH entry that has no graph, or the number of entries.
inline std::uint32_t first_without_graph(const std::vector<cudaq_function_entry_t> &entries) {
  const auto found = std::find_if(entries.begin(), entries.end(), [](const cudaq_function_entry_t &e) {
    return is_graph(e) && e.handler.graph_exec == nullptr;
  });
  return static_cast<std::uint32_t>(found - entries.begin());
}

/// Removes all entries of each pool except the first. Returns the former position of each entry that is left.
inline std::vector<std::uint32_t> keep_one_of_each_pool(std::vector<cudaq_function_entry_t> &entries) {
  std::vector<cudaq_function_entry_t> kept;
  std::vector<std::uint32_t> stood;
  for (std::uint32_t at = 0; at < entries.size(); ++at) {
    const cudaq_function_entry_t &e = entries[at];
    if (is_graph(e) && std::any_of(kept.begin(), kept.end(), [&](const cudaq_function_entry_t &k) {
          return is_graph(k) && k.function_id == e.function_id && k.routing_key == e.routing_key;
        }))
      continue;
    kept.push_back(e);
    stood.push_back(at);
  }
  entries = std::move(kept);
  return stood;
}

/// Two entries with one graph and different contexts. The graph's arguments hold the address of one context, so the
/// graph would never read the other one. nullptr, nullptr: no such pair.
inline std::pair<const graph_binding *, const graph_binding *>
graph_of_two_contexts(const std::vector<graph_binding> &graphs) {
  for (std::size_t a = 0; a < graphs.size(); ++a)
    for (std::size_t b = a + 1; b < graphs.size(); ++b)
      if (graphs[a].exec == graphs[b].exec && graphs[a].io != graphs[b].io)
        return {&graphs[a], &graphs[b]};
  return {};
}

/// All graphs of a table, with their routes in the index.
inline std::vector<graph_binding> bind_graphs(const std::vector<cudaq_function_entry_t> &entries,
                                              const function_index_view &index) {
  std::vector<graph_binding> bindings;
  for (std::uint32_t e = 0; e < entries.size(); ++e) {
    if (!is_graph(entries[e]))
      continue;
    graph_binding b;
    b.exec = reinterpret_cast<std::uint64_t>(entries[e].handler.graph_exec);
    b.entry = e;
    const function_bucket &run = index.bucket(entries[e].function_id);
    while (b.route < run.first || index.routes[b.route].routing_key != entries[e].routing_key)
      ++b.route;
    bindings.push_back(b);
  }
  return bindings;
}

} // namespace cudaq::realtime::detail
