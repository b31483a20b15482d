// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/qec/decoding/predecoding/rule_graph.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace cudaq::qec::realtime {

/// Weight (or number of edges, if `steps`) of the lightest closed way from `start` that flips an observable an odd
/// number of times, or `known` if none is lighter. Nothing if there is no such way; but a search that ends at `known`
/// may not see that. flips: which lists contain the observable. distance: UINT64_MAX for two copies of each node,
/// before and after.
[[nodiscard]] std::optional<std::uint64_t> lightest_logical(const rule_graph &graph, std::uint32_t part,
                                                            std::uint32_t start, const std::vector<bool> &flips,
                                                            bool steps, std::uint64_t known,
                                                            std::vector<std::uint64_t> &distance);

} // namespace cudaq::qec::realtime
