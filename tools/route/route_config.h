// SPDX-License-Identifier: Apache-2.0
// The configuration of the router, in YAML: docs/transport/route.md.
#pragma once

#include "lib/qec/decoding/qec_expected.h"
#include "lib/transport/route/request_router.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cudaq::realtime::tools {

struct route_node {
  std::string name, address;
  std::uint32_t port = 0;
  bool drain = false;
};

struct route_config {
  std::vector<route_node> nodes;
  detail::route_table table;    ///< of the functions of the decoding server, and those of the file
  detail::router_limits limits; ///< those that the file has
  std::string tls;
  std::string transport; ///< name or path of the provider in front; "" if it is missing
  std::vector<std::string> transport_args;
};

/// Reads a YAML text. An error names place, field, value, and what is accepted.
[[nodiscard]] cudaq::qec::realtime::expected<route_config> read_route_config(std::string_view text);

/// The bits of the nodes that are drained.
[[nodiscard]] std::uint64_t drained_nodes(const route_config &config);

/// "": only `drain` of nodes differs. Else the first difference that a running router cannot take.
[[nodiscard]] std::string fixed_difference(const route_config &now, const route_config &wanted);

[[nodiscard]] std::string route_json_schema();

} // namespace cudaq::realtime::tools
