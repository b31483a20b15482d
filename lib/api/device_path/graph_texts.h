// SPDX-License-Identifier: Apache-2.0
// Texts about graphs that have not ended as they should, from the report of a scheduler of graphs.
#pragma once

#include "lib/kernel_abi/graph_params.h"

#include <string>
#include <vector>

namespace cudaq::realtime::detail {

/// For a graph_in_slot: the graph's name, then the slot. names: by the number of the graph.
std::string describe_graph(std::uint64_t graph, const std::vector<std::string> &names);
/// Lines for dump_state about graphs that have ended without their flag, and about one that has not ended. under_way:
/// the run has not ended.
std::string describe_stop_of_graphs(const graph_report &seen, bool under_way, const std::vector<std::string> &names);

} // namespace cudaq::realtime::detail
