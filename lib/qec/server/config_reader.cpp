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
void take_number(const config_node &map, std::string_view field, Number &value) {
  if (const config_node *const found = map.find(field); found != nullptr)
    value = to_number<Number>(*found);
}

void take_text(const config_node &map, std::string_view field, std::string &value) {
  if (const config_node *const found = map.find(field); found != nullptr)
    value = found->text;
}

template <class Number>
bool take_numbers(const config_node &map, std::string_view field, std::vector<Number> &values) {
  const config_node *const found = map.find(field);
  if (found == nullptr)
    return false;
  values.reserve(found->items.size());
  for (const config_node &item : found->items)
    values.push_back(to_number<Number>(item));
  return true;
}

/// A map becomes a setting for each of its members, a list one with commas.
void take_setting(const std::string &key, const config_node &value, settings_list &settings) {
  if (value.what == config_node::kind::map) {
    for (std::size_t i = 0; i + 1 < value.items.size(); i += 2)
      take_setting(key + "." + value.items[i].text, value.items[i + 1], settings);
    return;
  }
  std::string text = value.text;
  for (const config_node &item : value.items)
    text += (text.empty() ? "" : ",") + item.text;
  settings.emplace_back(key, text);
}

void take_custom_args(const config_node &map, decoder_config &config) {
  const config_node *const custom = map.find("decoder_custom_args");
  if (custom == nullptr)
    return;
  take_number(*custom, "error_rate", config.error_rate);
  take_numbers(*custom, "error_rate_vec", config.error_rates);
  for (std::size_t i = 0; i + 1 < custom->items.size(); i += 2) {
    const std::string &key = custom->items[i].text;
    if (key != "error_rate" && key != "error_rate_vec")
      take_setting(key, custom->items[i + 1], config.settings);
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

void take_learn(const config_node &map, learn_settings &settings) {
  const config_node *const learn = map.find("learn");
  settings.is_on = learn != nullptr;
  if (learn == nullptr)
    return;
  take_number(*learn, "shots", settings.shots);
  take_number(*learn, "held_out", settings.held_out);
  take_number(*learn, "sigmas", settings.sigmas);
  take_number(*learn, "shadow", settings.shadow);
  std::string swap = "true";
  take_text(*learn, "swap", swap);
  settings.swaps = swap == "true";
  std::string priority = "idle";
  take_text(*learn, "priority", priority);
  settings.is_idle = priority == "idle";
}

decoder_config decoder_of(const config_node &map, std::size_t index) {
  decoder_config config;
  config.place = place_of(map) + "decoders[" + std::to_string(index) + "]";
  take_number(map, "id", config.limits.id);
  take_text(map, "type", config.type);
  take_text(map, "dem", config.dem);
  take_text(map, "dem_file", config.dem_file);
  take_text(map, "stim_dem_path", config.stim_dem_path);
  std::string stream;
  take_text(map, "stream", stream);
  config.stream = stream == "true";
  take_number(map, "block_size", config.block_size);
  take_number(map, "syndrome_size", config.syndrome_size);
  take_number(map, "measurements", config.measurements);
  config.has_checks = take_numbers(map, "H_sparse", config.checks);
  config.has_observables = take_numbers(map, "O_sparse", config.observables);
  config.has_measurements = take_numbers(map, "D_sparse", config.from_measurements);
  take_number(map, "deadline_us", config.deadline_us);
  take_number(map, "detector_rates", config.detector_rates);
  take_learn(map, config.learn);
  std::string dispatch = "host";
  take_text(map, "dispatch", dispatch);
  config.is_on_gpu = dispatch == "device_graph";
  take_number(map, "cuda_device_id", config.cuda_device_id);
  take_custom_args(map, config);
  std::string counter = "sequence";
  take_text(map, "counter", counter);
  config.limits.sequence = counter == "sequence";
  config.limits.queue_length = 64;
  take_number(map, "queue_length", config.limits.queue_length);
  take_number(map, "age_limit_us", config.limits.age_limit_ns);
  config.limits.age_limit_ns *= 1000;
  return config;
}

realtime_config realtime_of(const config_node &map) {
  realtime_config config;
  take_number(map, "loop_core", config.loop_core);
  take_numbers(map, "pool_cores", config.pool_cores);
  take_numbers(map, "stream_cores", config.stream_cores);
  take_number(map, "priority", config.priority);
  std::string lock;
  take_text(map, "lock_memory", lock);
  config.lock_memory = lock == "true";
  take_number(map, "cpu_dma_latency_us", config.cpu_dma_latency_us);
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
  take_number(*root, "stream_workers", config.stream_workers);
  if (const config_node *const realtime = root->find("realtime"); realtime != nullptr)
    config.realtime = realtime_of(*realtime);
  if (const config_node *const record = root->find("record"); record != nullptr) {
    take_text(*record, "file", config.record.file);
    take_number(*record, "requests", config.record.requests);
    if (config.record.file.empty())
      return reason(place_of(*record->find("file")) + "record.file: it is empty; it is the path of a file");
  }
  if (const config_node *const transport = root->find("transport"); transport != nullptr) {
    take_text(*transport, "provider", config.transport);
    if (const config_node *const args = transport->find("args"); args != nullptr)
      for (const config_node &arg : args->items)
        config.transport_args.push_back(arg.text);
  }
  return config;
}

} // namespace cudaq::qec::realtime
