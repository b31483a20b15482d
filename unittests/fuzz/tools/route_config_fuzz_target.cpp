// SPDX-License-Identifier: Apache-2.0
// The input is a configuration of the router. It is refused with a place, or its table names only nodes that are there
// and the router can be made of it.
#include "tools/route/route_config.cpp"
#include "unittests/fuzz/fuzz_input.h"

#include <set>
#include <vector>

using namespace cudaq::realtime;
using test::require;
using tools::route_config;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  const auto config =
      tools::read_route_config({reinterpret_cast<const char *>(data), std::min<std::size_t>(size, 65536)});
  if (config.failed()) {
    require(config.text().starts_with("line ") || config.text().starts_with("this build has no YAML parser"),
            "a refusal names its place: " + config.text());
    return 0;
  }
  const std::size_t nodes = config->nodes.size();
  require(nodes != 0 && nodes <= 64 && config->table.num_nodes == nodes, "from 1 to 64 nodes");
  std::set<std::string> names;
  for (const tools::route_node &node : config->nodes)
    require(names.insert(node.name).second && node.port >= 1 && node.port <= 65535, "a node has a name and a port");
  std::vector<std::uint64_t> keys;
  for (const detail::route_key &key : config->table.keys) {
    keys.push_back(key.key);
    if (key.node >= nodes)
      require(false, "a decoder belongs to a node");
  }
  std::ranges::sort(keys);
  require(std::ranges::adjacent_find(keys) == keys.end(), "a decoder belongs to one node");
  std::set<std::uint32_t> functions;
  for (const detail::route_function &function : config->table.functions)
    require(functions.insert(function.function_id).second && function.node < nodes, "a function has one way");
  require(functions.size() >= 3, "the functions of the decoding server are there");
  require(nodes == 64 || tools::drained_nodes(*config) >> nodes == 0, "only nodes are drained");
  require(config->limits.lost_after >= 2 * config->limits.heartbeat, "a node answers before it is lost");
  require(tools::fixed_difference(*config, *config).empty(), "a configuration equals itself");
  return 0;
}
