// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/server/config_fields.h"

#include "lib/base/similar_words.h"
#include "lib/qec/server/record/record_file.h"
#include "lib/qec/server/session/detector_rates.h"

#include <algorithm>
#include <charconv>
#include <set>

namespace cudaq::qec::realtime {
namespace {

using enum field_type;

constexpr double kMaxIds = 9007199254740991.0; // 2^53 - 1: exact in JSON, too
constexpr double kMaxColumns = 16777216.0, kMaxDetectors = 1048576.0;

constexpr config_field kRelayFields[] = {
    {"pre_iter", number, false, 1, 1e6, "", "the most iterations of the first leg", nullptr},
    {"num_sets", number, false, 0, 1e6, "", "the most further legs", nullptr},
    {"stopping_criterion", choice, false, 0, 0, "All|FirstConv|NConv", "when the legs end", nullptr},
    {"stop_nconv", number, false, 1, 1e6, "", "of NConv: solutions after which the lightest is the answer", nullptr},
};
constexpr config_object kRelay{kRelayFields};
constexpr config_object kNoFields{};

constexpr config_field kCustomFields[] = {
    {"error_rate", real, false, 0, 0.5, "", "probability of every error (column of H_sparse); 0.01 if it is missing",
     nullptr},
    {"error_rate_vec", reals, false, 0, 1, "", "probability of each error, one for each column of H_sparse", nullptr},
    {"lut_error_depth", number, false, 1, kMaxColumns, "",
     "of multi_error_lut: errors of a set, where a table of every syndrome would be too large", nullptr},
    {"srelay_config", object, false, 0, 0, "", "of nv-qldpc-decoder", &kRelay},
    {"gamma_dist", reals, false, -1, 1, "", "of nv-qldpc-decoder: the lowest and the highest memory strength", nullptr},
    {"opt_results", settings, false, 0, 0, "", "of nv-qldpc-decoder; without effect", &kNoFields},
};
constexpr config_object kCustom{kCustomFields};

constexpr double kMaxShots = 1e9;
constexpr config_field kLearnFields[] = {
    {"shots", number, false, 10000, kMaxShots, "", "shots of a round, 1000000 if it is missing", nullptr},
    {"held_out", number, false, 20480, kMaxShots, "",
     "shots by which a learned model is judged, after those of the round; 500000 if it is missing", nullptr},
    {"sigmas", real, false, 3, 1000, "", "by how many standard deviations it must be better, 3 if it is missing",
     nullptr},
    {"shadow", number, false, 0, 1e6, "",
     "of so many held-out shots one is decoded with the learned model, too, and compared; 16 if it is missing. 0: none",
     nullptr},
    {"swap", choice, false, 0, 0, "true|false",
     "true or missing: a learned model that is better by enough takes the place of the served one. false: it is "
     "reported only",
     nullptr},
    {"ties", text, false, 0, 0, "",
     "file with groups of errors that share one factor, as --tied of cudaq-realtime learn; a relative path begins in "
     "the folder of the configuration",
     nullptr},
    {"priority", choice, false, 0, 0, "idle|normal",
     "idle or missing: it learns in the time of the cores that nothing else wants (SCHED_IDLE). normal: as other "
     "threads; one such decoder is enough for all that learn",
     nullptr},
};
constexpr config_object kLearn{kLearnFields};

constexpr config_field kDecoderFields[] = {
    {"id", number, true, 0, kMaxIds, "", "number by which requests name the decoder; each is used once", nullptr},
    {"type", text, true, 0, 0, "",
     "pymatching, pymatching-correlated, bp-osd, relay-bp, lookup, race, auto, sliding-window, or the path of a "
     "plug-in, with a /; a relative path begins in the folder of the configuration. Settings may follow: "
     "NAME:key=value,...",
     nullptr},
    {"stream", choice, false, 0, 0, "true|false",
     "true: the rounds have no end until begin_tail; needs a model with a loop. The type is sliding-window, or the "
     "decoder of each window. false or missing: whole shots",
     nullptr},
    {"dispatch", choice, false, 0, 0, "host|device_graph",
     "host: the decoder runs on the CPU. device_graph: on the GPU cuda_device_id, for relay-bp, and for "
     "pymatching after a network (predecoder=model=FILE)",
     nullptr},
    {"cuda_device_id", number, false, 0, 255, "", "the GPU of dispatch device_graph, 0 if it is missing", nullptr},
    {"block_size", number, false, 1, kMaxColumns, "", "columns of H_sparse, the errors of the model", nullptr},
    {"syndrome_size", number, false, 1, kMaxDetectors, "", "rows of H_sparse, the detectors of the model", nullptr},
    {"H_sparse", numbers, false, -1, kMaxColumns, "",
     "for each detector the columns of the errors that flip it; a row ends with -1", nullptr},
    {"O_sparse", numbers, false, -1, kMaxColumns, "",
     "for each observable the columns of the errors that flip it; a row ends with -1", nullptr},
    {"D_sparse", numbers, false, -1, kMaxDetectors, "",
     "for each detector the measurements of a shot whose XOR it is; a row ends with -1. Without it the bits of a shot "
     "are the detection events",
     nullptr},
    {"measurements", number, false, 1, kMaxDetectors, "",
     "bits of a shot with D_sparse; without it one more than the highest measurement of D_sparse", nullptr},
    {"dem", text, false, 0, 0, "", "detector error model as text, instead of H_sparse and O_sparse", nullptr},
    {"dem_file", text, false, 0, 0, "",
     "file with a detector error model, instead of H_sparse and O_sparse; a relative path begins in the folder of the "
     "configuration",
     nullptr},
    {"stim_dem_path", text, false, 0, 0, "", "the same as dem_file, for files of other servers", nullptr},
    {"decoder_custom_args", settings, false, 0, 0, "",
     "settings of the decoder (share/doc/cudaq-realtime/docs/decoding.md), and the probabilities of the errors of "
     "H_sparse",
     &kCustom},
    {"counter", choice, false, 0, 0, "sequence|any",
     "sequence: the counter of enqueue requests must ascend by 1 from one to the next, so that a lost one is detected. "
     "any: it is ignored",
     nullptr},
    {"queue_length", number, false, 0, 65536, "",
     "requests that may wait for the decoder, 64 if it is missing; one more is answered BUSY. 0: the thread of the "
     "transport decodes, nothing waits",
     nullptr},
    {"age_limit_us", number, false, 0, 1e9, "",
     "a request that waited longer in the queue is not served; 0 or missing: without limit", nullptr},
    {"deadline_us", number, false, 0, 1e9, "",
     "the time for the decode of a shot from its begin; then the answer is DEADLINE. 0 or missing: without limit",
     nullptr},
    {"detector_rates", number, false, 0, detector_rates::kLongestWindow, "",
     "shots after which the counts of detection events are halved, 65536 if it is missing: how long a rate of a "
     "detector remembers. 0: they are not counted",
     nullptr},
    {"learn", object, false, 0, 0, "",
     "the rates of the model's errors are learned from the shots that it serves, and a better model takes its place",
     &kLearn},
};
constexpr config_object kDecoder{kDecoderFields};

constexpr config_field kDeviceGraphFields[] = {
    {"provider", text, false, 0, 0, "", "name or path of a provider", nullptr},
    {"args", texts, false, 0, 0, "", "options of the provider", nullptr},
};
constexpr config_object kDeviceGraph{kDeviceGraphFields};

constexpr config_field kTransportFields[] = {
    {"provider", text, false, 0, 0, "", "name (shm, udp, roce) or path of a provider", nullptr},
    {"args", texts, false, 0, 0, "", "options of the provider, as after -- on the command line", nullptr},
    {"device_graph", object, false, 0, 0, "",
     "accepted for files of other servers; without effect, because requests reach all decoders by one transport",
     &kDeviceGraph},
};
constexpr config_object kTransport{kTransportFields};

constexpr double kMaxCore = 1023; // the largest of a cpu_set_t
constexpr config_field kRealtimeFields[] = {
    {"loop_core", number, false, 0, kMaxCore, "", "core of the thread that takes requests from the transport", nullptr},
    {"pool_cores", numbers, false, 0, kMaxCore, "",
     "cores of the threads that the decoders share: thread k is on core k of the list, which begins again at its end",
     nullptr},
    {"stream_cores", numbers, false, 0, kMaxCore, "", "the same for stream_workers", nullptr},
    {"priority", number, false, 0, 99, "", "real-time priority (SCHED_FIFO) of all of these; 0 or missing: unchanged",
     nullptr},
    {"lock_memory", choice, false, 0, 0, "true|false",
     "true: the memory of the process is in RAM, and stays there (mlockall). serve only", nullptr},
    {"cpu_dma_latency_us", number, false, 0, 1e6, "",
     "the most that a core may need to wake up, in microseconds; 0: no core sleeps deeply. serve only", nullptr},
    {"required", choice, false, 0, 0, "true|false",
     "true: the start and --check fail if one of these is refused. false or missing: serve goes on without it, "
     "except for a core that the machine does not have. serve only",
     nullptr},
};
constexpr config_object kRealtime{kRealtimeFields};

constexpr config_field kRecordFields[] = {
    {"file", text, true, 0, 0, "",
     "the file; a relative path begins in the folder of the configuration. An earlier recording gets the suffix .1",
     nullptr},
    {"requests", number, false, 1, static_cast<double>(kMaxRecords), "",
     "the last requests that are kept, up to the next power of two; 65536 if it is missing", nullptr},
};
constexpr config_object kRecord{kRecordFields};

constexpr config_field kRootFields[] = {
    {"decoders", objects, true, 0, 0, "", "at least one decoder; qec_decode uses the first", &kDecoder},
    {"stream_workers", number, false, 0, 1024, "",
     "threads that decode the windows of all streams. 0 or missing: the thread that serves a request with bits decodes",
     nullptr},
    {"transport", object, false, 0, 0, "", "how requests arrive; the command line stands above it", &kTransport},
    {"realtime", object, false, 0, 0, "", "cores, priority and memory of the server; the command line stands above it",
     &kRealtime},
    {"record", object, false, 0, 0, "",
     "the last requests with their answers, in a file that outlives the server; the command line stands above it",
     &kRecord},
};
constexpr config_object kRoot{kRootFields};

std::string quoted(const config_node &node) {
  if (node.what == config_node::kind::empty)
    return "no value";
  if (node.what == config_node::kind::list)
    return "a list";
  if (node.what == config_node::kind::map)
    return "a map";
  constexpr std::size_t kMax = 60;
  return std::string("\"").append(node.text, 0, kMax).append(node.text.size() > kMax ? "...\"" : "\"");
}

std::string whole(double value) { return std::to_string(static_cast<long long>(value)); }

std::string number_text(double value) {
  char digits[32];
  const auto end = std::to_chars(std::begin(digits), std::end(digits), value).ptr;
  return std::string(digits, end);
}

/// What a value of this field, or an element of it, must be.
std::string accepted(const config_field &field) {
  switch (field.type) {
  case number:
  case numbers:
    return "a whole number from " + whole(field.lowest) + " to " + whole(field.highest);
  case real:
  case reals:
    return "a number from " + number_text(field.lowest) + " to " + number_text(field.highest);
  case choice: {
    std::string words(field.words);
    for (std::size_t at = words.find('|'); at != std::string::npos; at = words.find('|', at))
      words.replace(at, 1, " or ");
    return words;
  }
  case text:
  case texts:
    return "a text";
  case settings:
  case object:
    return "a map";
  case objects:
    break;
  }
  return "a list of maps";
}

bool is_word_of(std::string_view words, std::string_view text) {
  for (std::size_t end; (end = words.find('|')) != std::string_view::npos; words.remove_prefix(end + 1))
    if (words.substr(0, end) == text)
      return true;
  return words == text;
}

bool is_scalar_of(const config_node &node, const config_field &field) {
  if (node.what != config_node::kind::scalar)
    return false;
  const char *const begin = node.text.data(), *const end = begin + node.text.size();
  if (field.type == number || field.type == numbers) {
    long long value = 0;
    const auto [rest, error] = std::from_chars(begin, end, value);
    return error == std::errc() && rest == end && static_cast<double>(value) >= field.lowest &&
           static_cast<double>(value) <= field.highest;
  }
  if (field.type == real || field.type == reals) {
    double value = 0;
    const auto [rest, error] = std::from_chars(begin, end, value);
    return error == std::errc() && rest == end && value >= field.lowest && value <= field.highest;
  }
  return field.type != choice || is_word_of(field.words, node.text);
}

expected<> check_map(const config_node &node, const config_object &object, const std::string &path, bool open);

expected<> check_value(const config_node &node, const config_field &field, const std::string &path) {
  const auto refused = [&](const config_node &at, const std::string &where, const std::string &wanted) {
    return reason(place_of(at) + where + ": " + quoted(at) + " is not " + wanted);
  };
  const bool list = node.what == config_node::kind::list;
  switch (field.type) {
  case settings:
  case object:
    return node.what == config_node::kind::map ? check_map(node, *field.inside, path + ".", field.type == settings)
                                               : refused(node, path, accepted(field));
  case objects:
    if (!list || node.items.empty())
      return refused(node, path, "a list of at least one map");
    for (std::size_t i = 0; i < node.items.size(); ++i) {
      const std::string here = path + "[" + std::to_string(i) + "]";
      if (node.items[i].what != config_node::kind::map)
        return refused(node.items[i], here, "a map");
      if (expected<> result = check_map(node.items[i], *field.inside, here + ".", false); result.failed())
        return result;
    }
    return {};
  case numbers:
  case reals:
  case texts:
    if (!list)
      return refused(node, path, "a list; each element is " + accepted(field));
    for (std::size_t i = 0; i < node.items.size(); ++i)
      if (!is_scalar_of(node.items[i], field))
        return refused(node.items[i], path + "[" + std::to_string(i) + "]", accepted(field));
    return {};
  default:
    return is_scalar_of(node, field) ? expected<>{} : refused(node, path, accepted(field));
  }
}

expected<> check_map(const config_node &node, const config_object &object, const std::string &path, bool open) {
  std::set<std::string_view> seen;
  for (std::size_t i = 0; i + 1 < node.items.size(); i += 2) {
    const config_node &key = node.items[i], &value = node.items[i + 1];
    if (!seen.insert(key.text).second)
      return reason(place_of(key) + path + key.text + ": the field is there twice");
    const auto field = std::find_if(object.fields.begin(), object.fields.end(),
                                    [&](const config_field &f) { return f.name == key.text; });
    if (field != object.fields.end()) {
      if (expected<> result = check_value(value, *field, path + key.text); result.failed())
        return result;
      continue;
    }
    if (open && value.what == config_node::kind::scalar)
      continue;
    if (open)
      return reason(place_of(value) + path + key.text + ": " + quoted(value) + " is not a text or a number");
    std::string all;
    std::vector<std::string> names;
    for (const config_field &f : object.fields) {
      all += (all.empty() ? "" : ", ") + std::string(f.name);
      names.emplace_back(f.name);
    }
    const std::string similar =
        cudaq::realtime::detail::did_you_mean(cudaq::realtime::detail::similar_words(key.text, names));
    return reason(place_of(key) + path + key.text + ": unknown field with the value " + quoted(value) +
                  "; accepted: " + all + (similar.empty() ? "" : "." + similar));
  }
  for (const config_field &field : object.fields)
    if (field.required && !seen.contains(field.name))
      return reason(place_of(node) + path + std::string(field.name) + ": the field is missing; it is " +
                    accepted(field));
  return {};
}

} // namespace

const config_node *config_node::find(std::string_view key) const noexcept {
  if (what != kind::map)
    return nullptr;
  for (std::size_t i = 0; i + 1 < items.size(); i += 2)
    if (items[i].text == key)
      return &items[i + 1];
  return nullptr;
}

std::string place_of(const config_node &node) {
  return "line " + std::to_string(node.line) + ", column " + std::to_string(node.column) + ": ";
}

const config_object &config_root() noexcept { return kRoot; }
const config_object &config_realtime() noexcept { return kRealtime; }

expected<> check_fields(const config_node &node, const config_object &object) {
  if (node.what != config_node::kind::map)
    return reason(place_of(node) + "the configuration is " + quoted(node) + ", not a map");
  return check_map(node, object, "", false);
}

} // namespace cudaq::qec::realtime
