// SPDX-License-Identifier: Apache-2.0
// A tree that was checked against the table becomes a server_config.
#include "lib/qec/server/config_fields.h"
#include "lib/qec/server/decoder_types.h"
#include "lib/qec/server/server_config.h"

#include <charconv>
#include <set>

namespace cudaq::qec::realtime {
namespace {

/// The scalar was checked: it is a number in the field's range.
template <class Number>
Number to_number(const config_node &node) {
  Number value{};
  std::from_chars(node.text.data(), node.text.data() + node.text.size(), value);
  return value;
}

template <class Number>
void read_field(const config_node &map, std::string_view field, Number &value) {
  if (const config_node *const found = map.find(field); found != nullptr)
    value = to_number<Number>(*found);
}

void read_field(const config_node &map, std::string_view field, std::string &value) {
  if (const config_node *const found = map.find(field); found != nullptr)
    value = found->text;
}

template <class Number>
bool read_list(const config_node &map, std::string_view field, std::vector<Number> &values) {
  const config_node *const found = map.find(field);
  if (found == nullptr)
    return false;
  values.reserve(found->items.size());
  for (const config_node &item : found->items)
    values.push_back(to_number<Number>(item));
  return true;
}

/// A map becomes a setting for each of its members, a list one with commas.
void add_setting(const std::string &key, const config_node &value, settings_list &settings) {
  if (value.what == config_node::kind::map) {
    for (std::size_t i = 0; i + 1 < value.items.size(); i += 2)
      add_setting(key + "." + value.items[i].text, value.items[i + 1], settings);
    return;
  }
  std::string text = value.text;
  for (const config_node &item : value.items)
    text += (text.empty() ? "" : ",") + item.text;
  settings.emplace_back(key, text);
}

void read_custom_args(const config_node &map, decoder_config &config) {
  const config_node *const custom = map.find("decoder_custom_args");
  if (custom == nullptr)
    return;
  read_field(*custom, "error_rate", config.error_rate);
  read_list(*custom, "error_rate_vec", config.error_rates);
  for (std::size_t i = 0; i + 1 < custom->items.size(); i += 2) {
    const std::string &key = custom->items[i].text;
    if (key != "error_rate" && key != "error_rate_vec")
      add_setting(key, custom->items[i + 1], config.settings);
  }
}

/// A type that is not here is refused before its settings, whose form is not known.
expected<> check_types(const config_node &decoders) {
  for (std::size_t i = 0; i < decoders.items.size(); ++i)
    if (const config_node *const type = decoders.items[i].find("type"); type != nullptr)
      for (const foreign_type &foreign : foreign_types())
        if (type->text == foreign.type)
          return reason(place_of(*type) + "decoders[" + std::to_string(i) + "].type: \"" + type->text +
                        "\": " + std::string(foreign.instead));
  return {};
}

void read_learn(const config_node &map, learn_settings &settings) {
  const config_node *const learn = map.find("learn");
  settings.is_on = learn != nullptr;
  if (learn == nullptr)
    return;
  read_field(*learn, "shots", settings.shots);
  read_field(*learn, "held_out", settings.held_out);
  read_field(*learn, "sigmas", settings.sigmas);
  read_field(*learn, "shadow", settings.shadow);
  read_field(*learn, "ties", settings.ties);
  std::string swap = "true";
  read_field(*learn, "swap", swap);
  settings.swaps = swap == "true";
  std::string priority = "idle";
  read_field(*learn, "priority", priority);
  settings.is_idle = priority == "idle";
}

decoder_config decoder_of(const config_node &map, std::size_t index) {
  decoder_config config;
  config.place = place_of(map) + "decoders[" + std::to_string(index) + "]";
  read_field(map, "id", config.limits.id);
  read_field(map, "type", config.type);
  read_field(map, "dem", config.dem);
  read_field(map, "dem_file", config.dem_file);
  read_field(map, "stim_dem_path", config.stim_dem_path);
  std::string stream;
  read_field(map, "stream", stream);
  config.stream = stream == "true";
  read_field(map, "block_size", config.block_size);
  read_field(map, "syndrome_size", config.syndrome_size);
  read_field(map, "measurements", config.measurements);
  config.has_checks = read_list(map, "H_sparse", config.checks);
  config.has_observables = read_list(map, "O_sparse", config.observables);
  config.has_measurements = read_list(map, "D_sparse", config.from_measurements);
  read_field(map, "deadline_us", config.deadline_us);
  read_field(map, "detector_rates", config.detector_rates);
  read_learn(map, config.learn);
  std::string dispatch = "host";
  read_field(map, "dispatch", dispatch);
  config.is_on_gpu = dispatch == "device_graph";
  read_field(map, "cuda_device_id", config.cuda_device_id);
  read_custom_args(map, config);
  std::string counter = "sequence";
  read_field(map, "counter", counter);
  config.limits.sequence = counter == "sequence";
  config.limits.queue_length = 64;
  read_field(map, "queue_length", config.limits.queue_length);
  read_field(map, "age_limit_us", config.limits.age_limit_ns);
  config.limits.age_limit_ns *= 1000;
  return config;
}

realtime_config realtime_of(const config_node &map) {
  realtime_config config;
  read_field(map, "loop_core", config.loop_core);
  read_list(map, "pool_cores", config.pool_cores);
  read_list(map, "stream_cores", config.stream_cores);
  read_field(map, "priority", config.priority);
  std::string lock;
  read_field(map, "lock_memory", lock);
  config.lock_memory = lock == "true";
  read_field(map, "cpu_dma_latency_us", config.cpu_dma_latency_us);
  std::string required;
  read_field(map, "required", required);
  config.required = required == "true";
  return config;
}

} // namespace

expected<realtime_config> read_realtime_config(std::string_view fields) {
  auto map = read_yaml(std::string("{").append(fields).append("}"));
  if (map.failed())
    return map.reason();
  if (expected<> result = check_fields(*map, config_realtime()); result.failed())
    return result.reason();
  return realtime_of(*map);
}

expected<server_config> read_server_config(std::string_view text) {
  auto root = read_yaml(text);
  if (root.failed())
    return root.reason();
  // Files of other servers may give a model in parts.
  if (const config_node *const decoders = root->find("decoders"); decoders != nullptr)
    for (const config_node &decoder : decoders->items)
      if (const config_node *const chunks = decoder.find("dem_chunks"); chunks != nullptr)
        return reason(place_of(*chunks) + "dem_chunks: a model in parts is not available; give the whole model as " +
                      "dem, dem_file or H_sparse");
  if (const config_node *const decoders = root->find("decoders"); decoders != nullptr)
    if (expected<> result = check_types(*decoders); result.failed())
      return result.reason();
  if (expected<> result = check_fields(*root, config_root()); result.failed())
    return result.reason();
  server_config config;
  const config_node &decoders = *root->find("decoders");
  std::set<std::uint64_t> ids;
  for (std::size_t i = 0; i < decoders.items.size(); ++i) {
    config.decoders.push_back(decoder_of(decoders.items[i], i));
    const std::uint64_t id = config.decoders.back().limits.id;
    if (!ids.insert(id).second)
      return reason(place_of(*decoders.items[i].find("id")) + "decoders[" + std::to_string(i) +
                    "].id: " + std::to_string(id) + " is the id of an earlier decoder; each is used once");
  }
  read_field(*root, "stream_workers", config.stream_workers);
  if (const config_node *const realtime = root->find("realtime"); realtime != nullptr)
    config.realtime = realtime_of(*realtime);
  if (const config_node *const record = root->find("record"); record != nullptr) {
    read_field(*record, "file", config.record.file);
    read_field(*record, "requests", config.record.requests);
    if (config.record.file.empty())
      return reason(place_of(*record->find("file")) + "record.file: it is empty; it is the path of a file");
  }
  if (const config_node *const transport = root->find("transport"); transport != nullptr) {
    read_field(*transport, "provider", config.transport);
    if (const config_node *const args = transport->find("args"); args != nullptr)
      for (const config_node &arg : args->items)
        config.transport_args.push_back(arg.text);
  }
  return config;
}

} // namespace cudaq::qec::realtime
