// SPDX-License-Identifier: Apache-2.0
// The counters of a running router, as Prometheus text.
#pragma once

#include "lib/transport/route/router_engine.h"
#include "tools/route/route_config.h"
#include "tools/services/provider_service.h"

namespace cudaq::realtime::tools {

/// Prometheus' text format, version 0.0.4.
std::string route_counters_text(const detail::router_engine &engine, const std::vector<route_node> &nodes,
                                const provider_service &transport);

} // namespace cudaq::realtime::tools
