// SPDX-License-Identifier: Apache-2.0
// The JSON schema and the reader accept the same texts: a small validator of the schema's keywords judges the examples
// and their broken forms, and must agree with the reader.
#include "lib/qec/decoding/whole_file.h"
#include "lib/qec/server/config_fields.h"
#include "lib/qec/server/server_config.h"
#include "unittests/qec/server/server_test_support.h"
#include "unittests/support/program_paths.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace cudaq::qec::realtime::test {
namespace {

using nlohmann::json;

/// A YAML tree as JSON, as a schema-aware editor sees it.
json as_json(const config_node &node) {
  if (node.what == config_node::kind::list) {
    json list = json::array();
    for (const config_node &item : node.items)
      list.push_back(as_json(item));
    return list;
  }
  if (node.what == config_node::kind::map) {
    json map = json::object();
    for (std::size_t i = 0; i + 1 < node.items.size(); i += 2)
      map[node.items[i].text] = as_json(node.items[i + 1]);
    return map;
  }
  if (node.what == config_node::kind::empty)
    return nullptr;
  const json value = json::parse(node.text, nullptr, false);
  return value.is_number() || value.is_boolean() ? value : json(node.text);
}

bool is_type(const json &value, const std::string &type) {
  return (type == "object" && value.is_object()) || (type == "array" && value.is_array()) ||
         (type == "string" && value.is_string()) || (type == "number" && value.is_number()) ||
         (type == "integer" && value.is_number_integer()) || (type == "boolean" && value.is_boolean());
}

bool valid(const json &value, const json &schema);

bool valid_object(const json &value, const json &schema) {
  for (const json &name : schema.at("required"))
    if (!value.contains(name.get<std::string>()))
      return false;
  for (const auto &[name, field] : value.items()) {
    const json &properties = schema.at("properties"), &others = schema.at("additionalProperties");
    if (properties.contains(name) ? !valid(field, properties.at(name)) : !others.is_object() || !valid(field, others))
      return false;
  }
  return true;
}

bool valid(const json &value, const json &schema) {
  if (schema.contains("enum"))
    return std::find(schema["enum"].begin(), schema["enum"].end(), value) != schema["enum"].end();
  const json &type = schema.at("type");
  const json types = type.is_array() ? type : json::array({type});
  if (std::none_of(types.begin(), types.end(), [&](const json &t) { return is_type(value, t.get<std::string>()); }))
    return false;
  if (schema.contains("minimum") && (value < schema["minimum"] || value > schema["maximum"]))
    return false;
  if (value.is_array())
    return value.size() >= schema.value("minItems", std::size_t{0}) &&
           std::all_of(value.begin(), value.end(), [&](const json &item) { return valid(item, schema.at("items")); });
  return !value.is_object() || valid_object(value, schema);
}

TEST(ConfigSchema, AgreesWithTheReader) {
  const json schema = json::parse(config_json_schema());
  std::vector<std::string> texts = {
      "decoders: []\n",
      "transport: {}\n",
      "decoders: [{id: 1}]\n",
      "decoders: [{id: 1, type: lookup, speed: 3}]\n",
      "decoders: [{id: 1.5, type: lookup}]\n",
      "decoders: [{id: 1, type: lookup, H_sparse: [0, -2]}]\n",
      "decoders: [{id: 1, type: lookup, queue_length: 65537}]\n",
      "decoders: [{id: 1, type: lookup, counter: none}]\n",
      "decoders: [{id: 1, type: lookup, decoder_custom_args: {error_rate: 0.6}}]\n",
      "decoders: [{id: 1, type: lookup, decoder_custom_args: {own: x, error_rate_vec: [0.1, 1]}}]\n",
      "decoders: [{id: 1, type: lookup}]\ntransport: {provider: udp, args: [--port, 1], device_graph: {provider: x}}\n",
      "decoders: [{id: 1, type: lookup}]\ntransport: {args: --port}\n",
      "decoders: [{id: 1, type: lookup}]\nrealtime: {loop_core: 2, pool_cores: [3], lock_memory: true}\n",
      "decoders: [{id: 1, type: lookup}]\nrealtime: {priority: 100}\n",
      "decoders: [{id: 1, type: lookup, stream: true}]\n",
      "decoders: 5\n"};
  for (const char *name : {"surface_d3.yaml", "repetition_matrices.yaml"})
    texts.push_back(*read_whole_file(std::string(CUDAQ_TEST_SERVER_CONFIGS) + "/" + name));
  std::size_t accepted = 0;
  for (const std::string &text : texts) {
    const auto tree = read_yaml(text);
    ASSERT_TRUE(tree.ok()) << tree.text();
    const expected<> result = check_fields(*tree, config_root());
    EXPECT_EQ(valid(as_json(*tree), schema), result.ok()) << text << result.text();
    accepted += result.ok() ? 1 : 0;
  }
  EXPECT_EQ(accepted, 6u);
}

TEST(ConfigSchema, DescribesEveryField) {
  const json schema = json::parse(config_json_schema());
  EXPECT_EQ(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
  const json &decoder = schema["properties"]["decoders"]["items"]["properties"];
  for (const char *name : {"id", "type", "dispatch", "cuda_device_id", "block_size", "syndrome_size", "H_sparse",
                           "O_sparse", "D_sparse", "decoder_custom_args", "dem", "dem_file", "queue_length"})
    EXPECT_GT(decoder.at(name).at("description").get<std::string>().size(), 10u) << name;
}

// The configurations of docs/transport/server.md, with the models of the source tree.

/// Its blocks that begin with `decoders:`. Their models are those of tools/data; model.dem is one with a loop.
std::vector<std::string> configurations() {
  const auto page = read_whole_file(CUDAQ_TEST_SERVER_PAGE);
  if (page.failed())
    throw std::runtime_error(page.text());
  const std::string begin = "```text\ndecoders:\n";
  std::vector<std::string> found;
  for (std::size_t at = page->find(begin); at != std::string::npos; at = page->find(begin, at + 1)) {
    const std::size_t text = at + std::string("```text\n").size();
    found.push_back(page->substr(text, page->find("```", text) - text));
    for (const auto &[written, here] :
         {std::pair<std::string, std::string>{"/usr/share/cudaq-realtime/data", CUDAQ_TEST_DATA_DIR},
          {"model.dem", std::string(CUDAQ_TEST_DATA_DIR) + "/surface_loop_d3_p0.004.dem"}})
      if (const std::size_t place = found.back().find(written); place != std::string::npos)
        found.back().replace(place, written.size(), here);
  }
  return found;
}

TEST(ServerPage, HasConfigurationsThatAreTaken) {
  const std::vector<std::string> texts = configurations();
  EXPECT_EQ(texts.size(), 3U);
  for (const std::string &text : texts) {
    if (text.find("pymatching") != std::string::npos && !pymatching_available())
      continue;
    const auto config = read_server_config(text);
    ASSERT_TRUE(config.ok()) << text << config.text();
    const auto setups = build_decoders(*config, ".");
    ASSERT_TRUE(setups.ok()) << text << setups.text();
  }
}

TEST(ServerPage, HasARaceUnderADeadline) {
  for (const std::string &text : configurations()) {
    if (text.find("type: race:") == std::string::npos)
      continue;
    const auto config = read_server_config(text);
    ASSERT_TRUE(config.ok()) << config.text();
    auto setups = build_decoders(*config, ".");
    ASSERT_TRUE(setups.ok()) << setups.text();
    const auto identity = setups->front().unit->identity();
    EXPECT_EQ(identity->members, (std::vector<std::string>{"relay-bp:num_sets=60", "bp-osd:osd_order=0"}));
    EXPECT_NE(identity->name.find("mode=best"), std::string::npos) << identity->name;
    setups->front().limits.queue_length = 0; // this thread decodes
    const std::string shot(setups->front().unit->bits_per_shot(), '0');
    decoding_server server(std::move(*setups));
    const full_answer answer = call(server, kEnqueueFunctionId, enqueue_payload(0, 0, shot));
    const deadline_counts deadlines = server.decoders()[0]->counts().deadlines;
    EXPECT_EQ(deadlines.met + deadlines.missed, 1U);
    if (deadlines.met == 1) {
      EXPECT_EQ(answer, answered(server_status::ok));
    }
    return;
  }
  FAIL() << "the page has no race";
}

} // namespace
} // namespace cudaq::qec::realtime::test
