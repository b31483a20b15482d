// SPDX-License-Identifier: Apache-2.0
#include "tools/route/route_counters.h"

#include "tools/services/transport_counters.h"

#include <fmt/core.h>

namespace cudaq::realtime::tools {
namespace {

using detail::node_state;

void route_family(std::string &text, const char *name, const char *type, const char *help) {
  text += fmt::format("# HELP {0} {2}\n# TYPE {0} {1}\n", name, type, help);
}

} // namespace

std::string route_counters_text(const detail::router_engine &engine, const std::vector<route_node> &nodes,
                                const provider_service &transport) {
  std::string text;
  route_family(text, "cudaq_router_requests_total", "counter", "Requests that the transport delivered.");
  text += fmt::format("cudaq_router_requests_total {}\n", transport.processed());
  route_family(text, "cudaq_router_stray_messages_total", "counter", "Messages that belong to no session.");
  text += fmt::format("cudaq_router_stray_messages_total {}\n", engine.router().stray_messages().value());
  const auto each = [&](const char *name, const char *type, const char *help, const auto &value) {
    route_family(text, name, type, help);
    for (std::uint32_t node = 0; node < nodes.size(); ++node)
      text += fmt::format("{}{{node=\"{}\"}} {}\n", name, nodes[node].name, value(engine.router().counters(node)));
  };
  using counts = detail::route_node_counters;
  each("cudaq_router_node_joined", "gauge", "1 while the node takes requests.",
       [](const counts &c) { return c.state.load() == static_cast<std::uint32_t>(node_state::joined) ? 1 : 0; });
  each("cudaq_router_node_forwarded_total", "counter", "Requests that were sent to the node.",
       [](const counts &c) { return c.forwarded.value(); });
  each("cudaq_router_node_answered_total", "counter", "Answers of the node that were delivered.",
       [](const counts &c) { return c.answered.value(); });
  each("cudaq_router_node_lost_total", "counter", "Requests that were sent and had no answer in time.",
       [](const counts &c) { return c.lost.value(); });
  each("cudaq_router_node_refused_total", "counter", "Requests for the node that were not sent.",
       [](const counts &c) { return c.refused.value(); });
  each("cudaq_router_node_late_total", "counter", "Answers that came too late and were dropped.",
       [](const counts &c) { return c.late.value(); });
  each("cudaq_router_node_joins_total", "counter", "Sessions that began.",
       [](const counts &c) { return c.joins.value(); });
  each("cudaq_router_node_losses_total", "counter", "Sessions that ended.",
       [](const counts &c) { return c.losses.value(); });
  return text + transport_counters_text(transport) + "# EOF\n";
}

} // namespace cudaq::realtime::tools
