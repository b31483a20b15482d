// SPDX-License-Identifier: Apache-2.0
// Builds a function_index_view from a function table. Host only; allocates memory; used once, at start.
#pragma once

#include "cudaq/realtime/detail/ring/function_index.h"

#include <algorithm>
#include <vector>

namespace cudaq::realtime::detail {

/// Owns the arrays of a view.
class function_index {
public:
  enum class problem { none, duplicate, mixed_modes };
  struct build_result {
    problem what = problem::none;
    std::uint32_t first = 0, second = 0; ///< positions of the two entries that contradict each other
  };

  /// Refuses two entries with the same (function id, routing key), and one id in two dispatch modes.
  build_result build(const cudaq_function_entry_t *entries, std::uint32_t count) {
    routes_.clear();
    for (std::uint32_t e = 0; e < count; ++e)
      routes_.push_back(make_route(entries[e], e));
    std::sort(routes_.begin(), routes_.end(), [](const function_route &a, const function_route &b) {
      return a.function_id != b.function_id ? a.function_id < b.function_id : a.routing_key < b.routing_key;
    });
    for (std::size_t r = 1; r < routes_.size(); ++r) {
      const function_route &a = routes_[r - 1], &b = routes_[r];
      if (a.function_id != b.function_id)
        continue;
      if (a.mode != b.mode)
        return {problem::mixed_modes, a.entry, b.entry};
      if (a.routing_key == b.routing_key || a.mode != CUDAQ_DISPATCH_GRAPH_LAUNCH)
        return {problem::duplicate, a.entry, b.entry};
    }
    fill_buckets();
    return {};
  }

  function_index_view view() const {
    return {buckets_.data(), routes_.data(), static_cast<std::uint32_t>(buckets_.size() - 1),
            static_cast<std::uint32_t>(routes_.size())};
  }

private:
  static function_route make_route(const cudaq_function_entry_t &entry, std::uint32_t position) {
    function_route route;
    route.routing_key = entry.dispatch_mode == CUDAQ_DISPATCH_GRAPH_LAUNCH ? entry.routing_key : 0;
    route.function_id = entry.function_id;
    route.entry = position;
    route.mode = entry.dispatch_mode;
    const auto add_up = [](const cudaq_type_desc_t *types, std::uint8_t n, std::uint32_t &bytes) {
      bool fixed = true;
      std::uint64_t sum = 0; // 64 bits: sums that no slot can hold become UINT32_MAX
      for (std::uint8_t i = 0; i < n; ++i) {
        sum += types[i].size_bytes;
        fixed = fixed && types[i].size_bytes != 0;
      }
      bytes = sum > UINT32_MAX ? UINT32_MAX : static_cast<std::uint32_t>(sum);
      return fixed;
    };
    const cudaq_handler_schema_t &s = entry.schema;
    route.args_stated = s.num_args != 0;
    route.args_fixed = route.args_stated && add_up(s.args, s.num_args, route.args_bytes);
    route.results_fixed = s.num_results != 0 && add_up(s.results, s.num_results, route.results_bytes);
    return route;
  }

  void fill_buckets() {
    std::size_t size = 2;
    while (size < 2 * routes_.size())
      size *= 2;
    buckets_.assign(size, {});
    const std::uint32_t mask = static_cast<std::uint32_t>(size - 1);
    for (std::uint32_t r = 0; r < routes_.size(); ++r) {
      std::uint32_t b = function_index_view::hash(routes_[r].function_id) & mask;
      while (buckets_[b].count != 0 && buckets_[b].function_id != routes_[r].function_id)
        b = (b + 1) & mask;
      if (buckets_[b].count++ == 0) {
        buckets_[b].function_id = routes_[r].function_id;
        buckets_[b].first = r;
        buckets_[b].mode = routes_[r].mode;
      }
    }
  }

  std::vector<function_bucket> buckets_ = std::vector<function_bucket>(2);
  std::vector<function_route> routes_;
};

} // namespace cudaq::realtime::detail
