// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/decoders/relay_bp/grouped_graph.h"

#include <algorithm>
#include <numeric>

namespace cudaq::qec::realtime {

grouped_graph::grouped_graph(const tanner_graph &graph, const grouping &wanted) {
  const std::uint32_t lanes = wanted.lanes, stride = wanted.stride;
  std::vector<std::uint32_t> degree(graph.num_checks);
  for (const std::uint32_t check : graph.checks)
    ++degree[check];
  std::vector<std::uint32_t> order(graph.num_checks);
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, {}, [&](std::uint32_t check) { return degree[check]; });
  lane_of_check.resize(graph.num_checks);
  const std::uint32_t shared_by = wanted.check_lanes;
  const std::size_t check_lanes = order.size() * shared_by; // that are used
  for (std::size_t first = 0; first < check_lanes; first += lanes) {
    check_group group{num_cells, UINT32_MAX, 0};
    for (std::size_t k = first; k < first + lanes; ++k) {
      const std::size_t among = k % shared_by; // message i of a check is in lane i % shared_by of its lanes
      const std::uint32_t check = k < check_lanes ? order[k / shared_by] : 0;
      const std::uint32_t rows =
          k < check_lanes ? (degree[check] + shared_by - 1 - static_cast<std::uint32_t>(among)) / shared_by : 0;
      if (k < check_lanes && among == 0)
        lane_of_check[check] = static_cast<std::uint32_t>(k);
      rows_of_check.push_back(rows);
      group.full_rows = std::min(group.full_rows, rows);
      group.rows = std::max(group.rows, rows);
    }
    num_cells += group.rows * stride;
    check_groups.push_back(group);
  }

  const auto rows_of = [&](std::uint32_t column) { return static_cast<std::uint32_t>(graph.checks_of(column).size()); };
  std::vector<std::uint32_t> columns(graph.num_columns());
  std::iota(columns.begin(), columns.end(), 0U);
  std::vector<std::uint32_t> used(graph.num_checks); // messages of each check that have a column
  for (std::size_t begin = 0; begin < columns.size(); begin += wanted.block) {
    const auto block = std::span(columns).subspan(begin, std::min<std::size_t>(wanted.block, columns.size() - begin));
    std::ranges::stable_sort(block, {}, rows_of);
    for (std::size_t at = 0; at < block.size();) {
      const column_group group{static_cast<std::uint32_t>(places.size()), rows_of(block[at])};
      places.resize(places.size() + std::size_t{group.rows} * lanes);
      max_rows = std::max(max_rows, group.rows);
      for (std::uint32_t lane = 0; lane < lanes; ++lane) {
        const bool is_used = at < block.size() && rows_of(block[at]) == group.rows;
        column_at.push_back(is_used ? block[at] : kUnused);
        for (std::uint32_t row = 0; row < group.rows; ++row) {
          std::uint32_t &place = places[group.first_place + row * lanes + lane];
          if (is_used) {
            const std::uint32_t check = graph.checks_of(block[at])[row], at_lane = lane_of_check[check];
            const std::uint32_t message = used[check]++;
            place = check_groups[at_lane / lanes].first_cell + message / shared_by * stride + at_lane % lanes +
                    message % shared_by;
          } else {
            place = num_cells + lane; // a cell of no check
          }
        }
        at += is_used ? 1 : 0;
      }
      column_groups.push_back(group);
    }
  }
  num_cells += lanes; // those of unused lanes
}

} // namespace cudaq::qec::realtime
