// SPDX-License-Identifier: Apache-2.0
#include "tools/route/route_config.h"

#include "cudaq/realtime/daemon/dispatcher/rpc_types.h"
#include "lib/qec/server/config_fields.h"
#include "lib/qec/server/session/wire_requests.h"

#include <algorithm>
#include <arpa/inet.h>
#include <charconv>
#include <iterator>
#include <map>

namespace cudaq::realtime::tools {
namespace {

namespace server_ns = cudaq::qec::realtime;
using server_ns::config_field;
using server_ns::config_node;
using server_ns::config_object;
using server_ns::expected;
using server_ns::place_of;
using server_ns::reason;
using enum server_ns::field_type;

constexpr double kMaxIds = 9007199254740991.0; // 2^53 - 1: exact in JSON, too
constexpr std::uint64_t kMaxKeys = 1u << 20;
constexpr std::size_t kMaxNodes = 64;

constexpr config_field kNodeFields[] = {
    {"name", text, true, 0, 0, "", "name for lines, counters and functions; each is used once", nullptr},
    {"address", text, false, 0, 0, "", "IPv4 address; 127.0.0.1 if it is missing", nullptr},
    {"port", number, true, 1, 65535, "", "port of the node: serve --transport ucx -- --port=N", nullptr},
    {"decoders", numbers, false, 0, kMaxIds, "", "ids of the decoders that the node has", nullptr},
    {"first_decoder", number, false, 0, kMaxIds, "", "with last_decoder: all ids from this one", nullptr},
    {"last_decoder", number, false, 0, kMaxIds, "", "to this one", nullptr},
    {"drain", choice, false, 0, 0, "true|false", "true: no new requests for this node. Read again at SIGHUP", nullptr},
};
constexpr config_object kNode{kNodeFields};

constexpr config_field kFunctionFields[] = {
    {"name", text, false, 0, 0, "", "name of the function, such as qec_decode; its id is the hash of it", nullptr},
    {"id", number, false, 0, 4294967295.0, "", "id of the function, instead of its name", nullptr},
    {"node", text, false, 0, 0, "",
     "the node that gets all requests; without it the decoder id (the first 8 bytes) "
     "chooses",
     nullptr},
};
constexpr config_object kFunction{kFunctionFields};

constexpr config_field kTransportFields[] = {
    {"provider", text, false, 0, 0, "", "name (shm, udp, roce) or path of a provider", nullptr},
    {"args", texts, false, 0, 0, "", "options of the provider, as after -- on the command line", nullptr},
};
constexpr config_object kTransport{kTransportFields};

constexpr double kMaxMs = 3600000;
constexpr config_field kRootFields[] = {
    {"nodes", objects, true, 0, 0, "", "at least one node, at most 64", &kNode},
    {"functions", objects, false, 0, 0, "",
     "functions beside enqueue_syndromes, enqueue_readout, get_corrections, reset_decoder, begin_tail, get_committed, "
     "describe_decoder and get_decoder_name, which are always there",
     &kFunction},
    {"transport", object, false, 0, 0, "", "how requests arrive; the command line stands above it", &kTransport},
    {"heartbeat_ms", number, false, 1, kMaxMs, "", "time between two pings to a node; 100 if it is missing", nullptr},
    {"lost_after_ms", number, false, 2, kMaxMs, "",
     "a node that has sent nothing for this time is lost; 1000 if it is missing, at least twice heartbeat_ms", nullptr},
    {"reconnect_ms", number, false, 1, kMaxMs, "",
     "pause before the next connection to a lost node; 200 if it is "
     "missing",
     nullptr},
    {"answer_limit_ms", number, false, 0, kMaxMs, "",
     "a request without an answer for this time is answered SYNDROMES_DROPPED; 10000 if it is missing, 0: no limit",
     nullptr},
    {"credits", number, false, 1, 65536, "",
     "most requests that one node has at the same time; 1024 if it is missing. "
     "A node may allow fewer",
     nullptr},
    {"queue_length", number, false, 0, 65536, "",
     "requests that may wait for a credit of one node; 64 if it is missing. One more is answered BUSY", nullptr},
    {"tls", text, false, 0, 0, "", "transports of UCX, as UCX_TLS, such as tcp", nullptr},
};
constexpr config_object kRoot{kRootFields};

std::uint64_t field_number(const config_node &node) {
  std::uint64_t value = 0;
  std::from_chars(node.text.data(), node.text.data() + node.text.size(), value);
  return value;
}

template <class Number>
void read_field(const config_node &map, std::string_view field, Number &value) {
  if (const config_node *const found = map.find(field))
    value = static_cast<Number>(field_number(*found));
}
void read_field(const config_node &map, std::string_view field, std::string &value) {
  if (const config_node *const found = map.find(field))
    value = found->text;
}
void read_ms(const config_node &map, std::string_view field, std::chrono::nanoseconds &value) {
  if (const config_node *const found = map.find(field))
    value = std::chrono::milliseconds(field_number(*found));
}

/// Fills a config from a checked tree; `error` has the first offence that the table cannot express.
class route_reader {
public:
  explicit route_reader(const config_node &root) : root_(root) {}
  expected<> read(route_config &config);

private:
  expected<> add_keys(const config_node &at, const std::string &path, std::uint64_t first, std::uint64_t last,
                      std::uint32_t node);
  expected<> read_node(const config_node &map, std::size_t index);
  expected<> read_range(const config_node &map, const std::string &path, std::uint32_t index);
  expected<> read_function(const config_node &map, std::size_t index);

  const config_node &root_;
  route_config *config_ = nullptr;
  std::map<std::string, std::uint32_t> names_;
  std::map<std::uint64_t, std::uint64_t> ranges_; ///< of ids: the last one of each, by its first one
};

expected<> route_reader::add_keys(const config_node &at, const std::string &path, std::uint64_t first,
                                  std::uint64_t last, std::uint32_t node) {
  const auto after = ranges_.upper_bound(first);
  const bool first_is_there = after != ranges_.begin() && std::prev(after)->second >= first;
  if (first_is_there || (after != ranges_.end() && after->first <= last))
    return reason(place_of(at) + path + ": decoder " + std::to_string(first_is_there ? first : after->first) +
                  " is there twice; each belongs to one node");
  if (config_->table.keys.size() + (last - first) >= kMaxKeys)
    return reason(place_of(at) + path + ": more than " + std::to_string(kMaxKeys) + " decoders in all nodes");
  ranges_.emplace(first, last);
  for (std::uint64_t id = first; id <= last; ++id)
    config_->table.keys.push_back({id, node});
  return {};
}

expected<> route_reader::read_range(const config_node &map, const std::string &path, std::uint32_t index) {
  const config_node *const first = map.find("first_decoder"), *const last = map.find("last_decoder");
  if (first == nullptr && last == nullptr)
    return {};
  if (first == nullptr || last == nullptr)
    return reason(place_of(first != nullptr ? *first : *last) + path + "first_decoder and last_decoder: both or none");
  const std::uint64_t from = field_number(*first), to = field_number(*last);
  if (to < from || to - from >= kMaxKeys)
    return reason(place_of(*last) + path + "last_decoder: \"" + last->text +
                  "\" is not a number from first_decoder to " + std::to_string(kMaxKeys - 1) + " above it");
  return add_keys(*first, path + "first_decoder", from, to, index);
}

expected<> route_reader::read_node(const config_node &map, std::size_t index) {
  const std::string path = "nodes[" + std::to_string(index) + "].";
  route_node node;
  node.address = "127.0.0.1";
  read_field(map, "name", node.name);
  read_field(map, "address", node.address);
  read_field(map, "port", node.port);
  node.drain = map.find("drain") != nullptr && map.find("drain")->text == "true";
  const auto number = static_cast<std::uint32_t>(index);
  // The name is a label of the metrics, whose page is UTF-8.
  const auto is_good = [](char c) { return c > ' ' && c < '\x7f' && c != '=' && c != '"' && c != '\\'; };
  if (node.name.empty() || !std::ranges::all_of(node.name, is_good))
    return reason(place_of(*map.find("name")) + path + "name: \"" + node.name +
                  "\" is not a word of ASCII without space, = and quotes");
  if (in_addr parsed{}; inet_pton(AF_INET, node.address.c_str(), &parsed) != 1)
    return reason(place_of(*map.find("address")) + path + "address: \"" + node.address + "\" is not an IPv4 address");
  if (!names_.emplace(node.name, number).second)
    return reason(place_of(*map.find("name")) + path + "name: " + node.name + " is the name of an earlier node");
  if (const config_node *const decoders = map.find("decoders"))
    for (const config_node &item : decoders->items)
      if (expected<> result = add_keys(item, path + "decoders", field_number(item), field_number(item), number);
          result.failed())
        return result;
  config_->nodes.push_back(std::move(node));
  return read_range(map, path, number);
}

expected<> route_reader::read_function(const config_node &map, std::size_t index) {
  const std::string path = "functions[" + std::to_string(index) + "].";
  const config_node *const name = map.find("name"), *const id = map.find("id"), *const node = map.find("node");
  if ((name == nullptr) == (id == nullptr))
    return reason(place_of(map) + path + "name or id: one of the two is given");
  detail::route_function function;
  function.function_id =
      name != nullptr ? fnv1a_hash(name->text.c_str()) : static_cast<std::uint32_t>(field_number(*id));
  function.by_key = node == nullptr;
  if (node != nullptr) {
    const auto found = names_.find(node->text);
    if (found == names_.end())
      return reason(place_of(*node) + path + "node: \"" + node->text + "\" is not the name of a node");
    function.node = found->second;
  }
  auto &functions = config_->table.functions;
  const auto other = std::ranges::find(functions, function.function_id, &detail::route_function::function_id);
  if (other == functions.end())
    functions.push_back(function);
  else if (!other->has_state) // all questions to one node, by wish
    *other = function;
  else
    return reason(place_of(name != nullptr ? *name : *id) + path + (name != nullptr ? "name: " : "id: ") +
                  (name != nullptr ? name->text : id->text) + " is routed already");
  return {};
}

expected<> route_reader::read(route_config &config) {
  config_ = &config;
  for (const std::uint32_t id :
       {server_ns::kEnqueueFunctionId, server_ns::kEnqueueReadoutFunctionId, server_ns::kGetCorrectionsFunctionId,
        server_ns::kResetFunctionId, server_ns::kBeginTailFunctionId, server_ns::kGetCommittedFunctionId})
    config.table.functions.push_back({id, true, 0, id == server_ns::kResetFunctionId, true});
  for (const std::uint32_t id : {server_ns::kDescribeFunctionId, server_ns::kNameFunctionId})
    config.table.functions.push_back({id, true, 0, false, true, false});
  config.table.functions.push_back({server_ns::kOneShotReadoutFunctionId, true, 0, false, false, false});
  const config_node &nodes = *root_.find("nodes");
  if (nodes.items.size() > kMaxNodes)
    return reason(place_of(nodes) + "nodes: " + std::to_string(nodes.items.size()) + " nodes; at most " +
                  std::to_string(kMaxNodes) + " are accepted");
  for (std::size_t i = 0; i < nodes.items.size(); ++i)
    if (expected<> result = read_node(nodes.items[i], i); result.failed())
      return result;
  config.table.num_nodes = static_cast<std::uint32_t>(config.nodes.size());
  if (const config_node *const functions = root_.find("functions"))
    for (std::size_t i = 0; i < functions->items.size(); ++i)
      if (expected<> result = read_function(functions->items[i], i); result.failed())
        return result;
  read_ms(root_, "heartbeat_ms", config.limits.heartbeat);
  read_ms(root_, "lost_after_ms", config.limits.lost_after);
  read_ms(root_, "reconnect_ms", config.limits.reconnect);
  read_ms(root_, "answer_limit_ms", config.limits.answer_limit);
  read_field(root_, "credits", config.limits.max_credits);
  read_field(root_, "queue_length", config.limits.queue_length);
  read_field(root_, "tls", config.tls);
  if (config.limits.lost_after < 2 * config.limits.heartbeat) {
    const config_node *const field = root_.find("lost_after_ms");
    return reason(place_of(field != nullptr ? *field : root_) + "lost_after_ms: it is at least twice heartbeat_ms");
  }
  if (const config_node *const transport = root_.find("transport")) {
    read_field(*transport, "provider", config.transport);
    if (const config_node *const args = transport->find("args"))
      for (const config_node &arg : args->items)
        config.transport_args.push_back(arg.text);
  }
  return {};
}

} // namespace

expected<route_config> read_route_config(std::string_view yaml) {
  auto root = server_ns::read_yaml(yaml);
  if (root.failed())
    return root.reason();
  if (expected<> result = server_ns::check_fields(*root, kRoot); result.failed())
    return result.reason();
  route_config config;
  if (expected<> result = route_reader(*root).read(config); result.failed())
    return result.reason();
  return config;
}

std::uint64_t drained_nodes(const route_config &config) {
  std::uint64_t mask = 0;
  for (std::size_t i = 0; i < config.nodes.size(); ++i)
    mask |= std::uint64_t{config.nodes[i].drain ? 1u : 0u} << i;
  return mask;
}

std::string fixed_difference(const route_config &now, const route_config &wanted) {
  const auto same_node = [](const route_node &a, const route_node &b) {
    return a.name == b.name && a.address == b.address && a.port == b.port;
  };
  const auto same_key = [](const detail::route_key &a, const detail::route_key &b) {
    return a.key == b.key && a.node == b.node;
  };
  if (!std::equal(now.nodes.begin(), now.nodes.end(), wanted.nodes.begin(), wanted.nodes.end(), same_node) ||
      !std::equal(now.table.keys.begin(), now.table.keys.end(), wanted.table.keys.begin(), wanted.table.keys.end(),
                  same_key))
    return "nodes: only drain can change while the router runs; start it again for other changes";
  const auto same_function = [](const detail::route_function &a, const detail::route_function &b) {
    return a.function_id == b.function_id && a.by_key == b.by_key && a.node == b.node;
  };
  const auto &f = now.table.functions, &g = wanted.table.functions;
  if (!std::equal(f.begin(), f.end(), g.begin(), g.end(), same_function))
    return "functions: they cannot change while the router runs; start it again";
  const detail::router_limits &a = now.limits, &b = wanted.limits;
  if (a.heartbeat != b.heartbeat || a.lost_after != b.lost_after || a.reconnect != b.reconnect ||
      a.answer_limit != b.answer_limit || a.max_credits != b.max_credits || a.queue_length != b.queue_length)
    return "the times, credits and queue_length cannot change while the router runs; start it again";
  if (now.tls != wanted.tls || now.transport != wanted.transport || now.transport_args != wanted.transport_args)
    return "tls and transport cannot change while the router runs; start it again";
  return "";
}

std::string route_json_schema() { return server_ns::json_schema_of("Configuration of cudaq-realtime route", kRoot); }

} // namespace cudaq::realtime::tools
