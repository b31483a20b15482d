// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/decoders/confidence/confident_decoder.h"
#include "lib/qec/decoders/decoder_factories.h"
#include "lib/qec/decoders/decoder_name.h"
#include "lib/qec/decoders/lookup_decoder.h"
#include "lib/qec/decoders/readout/readout_content.h"
#include "lib/qec/decoding/decoder_model.h"
#include "lib/qec/decoding/model_text_file.h"
#include "lib/qec/decoding/predecoder.h"
#include "lib/qec/decoding/whole_file.h"
#include "lib/qec/learning/learned_rates.h"
#include "lib/qec/server/decoder_types.h"
#include "lib/qec/server/learning/decoder_learner.h"
#include "lib/qec/server/model_detectors.h"
#include "lib/qec/server/server_config.h"
#include "lib/qec/server/sparse_model.h"
#include "lib/qec/server/stream_builder.h"
#include "lib/qec/stream/worker_pool.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <optional>

namespace cudaq::qec::realtime {
namespace {

/// The probability of an error if the configuration names none. Matching and the lookup table depend on the ratios of
/// the probabilities only, so its value matters to bp-osd alone. The detectors have no rates of the model then.
constexpr double kDefaultRate = 0.01;

/// The setting with the file of a table: docs/decoders/soft.md.
constexpr std::string_view kReadout = "readout";
/// A refusal of read_stream that is about the table.
constexpr std::string_view kReadoutRefused = "readout: ";
/// The setting of decoders that give gaps: docs/decoders/confidence.md.
constexpr std::string_view kConfidence = "confidence";

/// One row of H_sparse or O_sparse for each index below `rows`.
expected<sparse_rows> matrix(const char *field, const std::vector<std::int64_t> &values, std::uint64_t columns) {
  auto read = read_sparse(values, columns);
  if (read.failed())
    return reason(std::string(field) + ": " + read.text());
  if (read->rows() == 0)
    return reason(std::string(field) + ": it has no row; every row ends with -1");
  return read;
}

/// Whether the configuration has the probabilities of the errors of H_sparse.
bool has_rates(const decoder_config &c) { return c.error_rate >= 0 || !c.error_rates.empty(); }

/// The probabilities of the errors of H_sparse.
expected<std::vector<double>> rates_of(const decoder_config &c, const decoder_type &type) {
  if (has_rates(c) && type.table_of_errors)
    return reason(c.type + " takes no error_rate and no error_rate_vec: all errors count the same; use lookup");
  if (c.error_rate >= 0 && !c.error_rates.empty())
    return reason("error_rate and error_rate_vec exclude each other");
  if (!c.error_rates.empty() && c.error_rates.size() != c.block_size)
    return reason("error_rate_vec has " + std::to_string(c.error_rates.size()) + " elements, block_size is " +
                  std::to_string(c.block_size));
  if (!c.error_rates.empty())
    return c.error_rates;
  return std::vector<double>(static_cast<std::size_t>(c.block_size), c.error_rate >= 0 ? c.error_rate : kDefaultRate);
}

expected<std::string> model_from_matrices(const decoder_config &c, const decoder_type &type) {
  if (c.block_size == 0 || c.syndrome_size == 0 || !c.has_observables)
    return reason("H_sparse needs block_size, syndrome_size and O_sparse");
  const auto checks = matrix("H_sparse", c.checks, c.block_size);
  if (checks.failed())
    return checks.reason();
  if (checks->rows() != c.syndrome_size)
    return reason("H_sparse has " + std::to_string(checks->rows()) + " rows, syndrome_size is " +
                  std::to_string(c.syndrome_size));
  const auto observables = matrix("O_sparse", c.observables, c.block_size);
  if (observables.failed())
    return observables.reason();
  const auto rates = rates_of(c, type);
  if (rates.failed())
    return rates.reason();
  return model_of_matrices(*checks, *observables, *rates);
}

expected<std::string> model_text(const decoder_config &c, const decoder_type &type, const std::string &folder) {
  const std::string &file = c.dem_file.empty() ? c.stim_dem_path : c.dem_file;
  const int sources = (c.dem.empty() ? 0 : 1) + (c.dem_file.empty() ? 0 : 1) + (c.stim_dem_path.empty() ? 0 : 1) +
                      (c.has_checks ? 1 : 0);
  if (sources != 1)
    return reason(std::string(sources == 0 ? "it has no model" : "it has more than one model") +
                  "; give one of dem, dem_file, H_sparse");
  if (c.has_checks)
    return model_from_matrices(c, type);
  if (c.has_observables || c.block_size != 0 || c.error_rate >= 0 || !c.error_rates.empty())
    return reason("O_sparse, block_size, error_rate and error_rate_vec are for H_sparse; " +
                  std::string(c.dem.empty() ? "the file" : "dem") + " has their contents");
  if (type.table_of_errors)
    return reason(c.type + " is for H_sparse, because all errors count the same; use lookup");
  if (!c.dem.empty())
    return c.dem;
  return read_whole_file(path_in(folder, file));
}

expected<std::shared_ptr<const decoder_model>> model_of(const decoder_config &c, const decoder_type &type,
                                                        const std::string &folder) {
  if (c.model != nullptr)
    return c.model;
  auto text = model_text(c, type, folder);
  if (text.failed())
    return text.reason();
  return decoder_model::of_text(std::move(*text));
}

/// The name for make_decoder: the type, and the settings after it.
expected<std::string> name_with_settings(const decoder_config &c, const decoder_type &type) {
  std::string name = type.name;
  char separator = name.find(':') == std::string::npos ? ':' : ',';
  const auto settings = type.relay_settings          ? relay_of_foreign_settings(c.settings)
                        : c.type == "sliding_window" ? windows_of_foreign_settings(c.settings)
                                                     : expected<settings_list>(c.settings);
  if (settings.failed())
    return settings.reason();
  for (const auto &[key, value] : *settings) {
    if (key == kReadout) // of the server: see read_readout
      continue;
    if (const foreign_setting *const foreign = find_foreign_setting(type.name, key); foreign != nullptr) {
      if (foreign->accepted == "*" || (!value.empty() && is_one_of(foreign->accepted, value)))
        continue;
      return reason("decoder_custom_args." + key + ": \"" + value + "\" is not available for " + c.type + ": " +
                    std::string(foreign->reason));
    }
    if (key.find_first_of(",=:") != std::string::npos || value.find(',') != std::string::npos)
      return reason("decoder_custom_args." + key + ": \"" + value + "\": a setting has no comma, and " +
                    "its name no comma, colon or equals sign");
    name.append(1, separator).append(key).append("=").append(value);
    separator = ',';
  }
  if (c.deadline_us != 0)
    name.append(1, separator).append("deadline_us=").append(std::to_string(c.deadline_us));
  return name;
}

const std::string *setting_of(const decoder_config &c, std::string_view key) {
  const auto found = std::ranges::find(c.settings, key, &settings_list::value_type::first);
  return found == c.settings.end() ? nullptr : &found->second;
}

/// Every strategy gives the same if no two errors have the same detectors.
expected<> check_merge_strategy(const decoder_config &c, const detector_error_model *model) {
  const std::string *const strategy = setting_of(c, "merge_strategy");
  if (strategy == nullptr || *strategy == "independent")
    return {};
  std::map<std::vector<std::uint64_t>, std::uint64_t> line_of;
  bool is_equal = model == nullptr;
  std::string where;
  for (std::size_t k = 0; model != nullptr && k < model->components.size() && !is_equal; ++k) {
    const auto detectors = model->detectors_of(model->components[k]);
    const std::uint64_t line = model->components[k].line;
    const auto [found, added] = line_of.try_emplace({detectors.begin(), detectors.end()}, line);
    is_equal = !added;
    if (is_equal)
      where = ", but those of line " + std::to_string(found->second) + " and line " + std::to_string(line) +
              " have the same detectors";
  }
  if (!is_equal)
    return {};
  return reason("decoder_custom_args.merge_strategy: \"" + *strategy + "\" is not available for " + c.type + ": " +
                std::string(find_foreign_setting("pymatching", "merge_strategy")->reason) + where);
}

/// The setting of a table of errors that has not every syndrome.
std::string depth_of(const decoder_config &c) {
  const std::string *const given = setting_of(c, "lut_error_depth");
  return "depth=" + (given == nullptr || c.type == "single_error_lut" ? "1" : *given);
}

/// The name of the same decoder on the GPU. If that is not there, make_decoder says why.
expected<std::string> name_on_gpu(const decoder_config &c, const std::string &name) {
  auto parsed = decoder_name::parse(name);
  if (parsed.failed())
    return parsed.reason();
  const std::string device = "device=" + std::to_string(c.cuda_device_id);
  std::string on_gpu;
  if (parsed->name == "relay-bp")
    on_gpu = "relay-bp-gpu:" + device;
  else if (const std::string before = parsed->name == "pymatching" ? parsed->settings.text("predecoder", "") : "";
           is_learned_predecoder(before))
    on_gpu = "model-gpu:weights=" + std::string(learned_predecoder_file(before)) + "," + device;
  else
    return reason("dispatch: \"device_graph\" is not available for " + c.type +
                  ": only relay-bp, and pymatching after a network (predecoder=model=FILE), decode on a GPU; use host");
  for (const auto &[key, value] : parsed->settings.rest())
    on_gpu.append(1, ',').append(key).append(1, '=').append(value);
  return on_gpu;
}

/// Bits of a shot in the stream; 0: those of the model.
std::uint64_t stream_bits(const decoder_config &c) {
  if (!c.has_measurements || c.measurements != 0)
    return c.measurements;
  const auto highest = std::max_element(c.from_measurements.begin(), c.from_measurements.end());
  return highest == c.from_measurements.end() ? 0 : static_cast<std::uint64_t>(*highest + 1);
}

expected<std::unique_ptr<decoding_unit>> unit_with(std::unique_ptr<decoder> with, const decoder_config &c,
                                                   std::uint64_t digest) {
  const std::uint64_t detectors = with->num_detectors();
  if (detectors == 0 || with->num_observables() == 0)
    return reason("the model has " + std::to_string(detectors) + " detectors and " +
                  std::to_string(with->num_observables()) + " observables; it needs one of each");
  if (c.syndrome_size != 0 && c.syndrome_size != detectors)
    return reason("syndrome_size is " + std::to_string(c.syndrome_size) + ", the model has " +
                  std::to_string(detectors) + " detectors");
  const std::uint64_t bits = stream_bits(c);
  if (!c.has_measurements) {
    if (bits != 0)
      return reason("measurements is for D_sparse");
    return std::make_unique<decoding_unit>(std::move(with), sparse_rows{}, detectors, digest);
  }
  auto rows = matrix("D_sparse", c.from_measurements, bits);
  if (rows.failed())
    return rows.reason();
  if (rows->rows() != detectors)
    return reason("D_sparse has " + std::to_string(rows->rows()) + " rows, the model has " + std::to_string(detectors) +
                  " detectors");
  if (bits == 0)
    return reason("D_sparse names no measurement");
  return std::make_unique<decoding_unit>(std::move(with), std::move(*rows), bits, digest);
}

/// The memory of all decoders of a configuration, estimated: it is added before it is needed.
class memory_budget {
public:
  expected<> add(std::uint64_t bytes) {
    bytes_ += bytes;
    if (bytes_ <= kMaxDecoderBytes)
      return {};
    return reason("the decoders up to this one need about " + std::to_string(bytes_ >> 20) + " MiB, at most " +
                  std::to_string(kMaxDecoderBytes >> 20) +
                  " are accepted; give fewer decoders, a smaller queue_length, or smaller models");
  }

private:
  std::uint64_t bytes_ = 0;
};

/// What choose_decoder gets, and the table of a readout.
struct decoder_plan {
  std::string name;
  std::shared_ptr<const decoder_model> model; ///< read once, for all who need it
  std::uint64_t digest = 0;                   ///< of the model, and of the file of heralds
  std::string heralds{};                      ///< the contents of the file of this setting; "" without it
  std::unique_ptr<unit_readout> readout{};    ///< null without a table
  std::optional<stream_source> stream{};
};

/// The file of the setting heralds; "" without it.
expected<std::string> heralds_text_of(const std::string &name) {
  auto parsed = decoder_name::parse(name); // what is no name is refused by make_decoder
  const std::string file = parsed.ok() ? parsed->settings.text("heralds", "") : "";
  if (file.empty())
    return std::string();
  auto text = read_whole_file(file);
  if (text.failed())
    return reason(text.status(), "heralds: " + text.text());
  return text;
}

std::uint64_t estimated_bytes(const decoder_config &c, const std::string &name, const detector_error_model &model,
                              const std::string &heralds) {
  // A line of the file has one herald at most. A pair of it has at least 4 characters, and is kept in two lists.
  const std::uint64_t detectors =
      model.num_detectors + static_cast<std::uint64_t>(std::ranges::count(heralds, '\n')) + (heralds.empty() ? 0 : 1);
  const std::uint64_t herald_bytes = heralds.size() + heralds.size() / 4 * 2 * sizeof(error_probability);
  const std::uint64_t of_detector =
      sizeof(std::uint64_t) + (c.detector_rates != 0 ? sizeof(model_detector) + sizeof(std::uint64_t) : 0);
  std::uint64_t bytes =
      sizeof(served_decoder) + detectors * of_detector + model.num_observables + model_bytes(model) + herald_bytes;
  if (name.starts_with("lookup")) // a table of all syndromes of one part; parts of a model share its detectors
    bytes += std::min(kLookupMaxBytes, (model.num_observables / 8 + 1)
                                           << std::min<std::uint64_t>(detectors, kLookupMaxPartDetectors));
  std::size_t gap_bytes = 0;
  if (const std::string *const confidence = setting_of(c, kConfidence); confidence != nullptr && *confidence != "0") {
    gap_bytes = sizeof(float);
    bytes += std::min(model.num_observables, kMaxGaps) * model_bytes(model); // a decoder for each
    if (detectors <= event_distances::kMaxDetectors)
      bytes += detectors * detectors * sizeof(float);
  }
  if (c.learn.is_on) // a candidate is a second decoder, with rates of its own
    bytes +=
        bytes + shot_tap::kShots * (detectors / 8 + model.num_observables / 8 + 3) + decoder_learner::bytes_for(model);
  return bytes + replay_bytes(model.num_observables, gap_bytes) +
         queue_bytes(c.limits.queue_length,
                     (longest_request_bits(std::max(stream_bits(c), detectors), detectors) + 7) / 8);
}

/// A text about a model counts the lines of the model, not those of the configuration.
std::string with_its_lines(const decoder_config &c, const std::string &text) {
  if (text.find("line ") == std::string::npos || text.starts_with("heralds: ") || text.starts_with("readout: "))
    return text;
  if (c.has_checks)
    return text + " (line N is column N - 1 of H_sparse)";
  const std::string &file = c.dem_file.empty() ? c.stim_dem_path : c.dem_file;
  return text + (file.empty() ? " (a line of the field dem)" : " (a line of " + file + ")");
}

/// The text of a table in the file `path`.
expected<std::string> readout_text_of(const std::string &path, memory_budget &budget) {
  auto text = read_model_text(path);
  if (text.failed())
    return reason(text.status(), "readout: " + text.text());
  constexpr std::uint64_t kBytesPerCharacter = 8; // a pair of two digits and two spaces is kept in 16 to 24 bytes
  if (expected<> result = budget.add(text->size() * kBytesPerCharacter); result.failed())
    return result.reason();
  return text;
}

/// The rest of a plan with a table of a readout in the file `path`.
expected<> plan_readout(const decoder_config &c, const std::string &path, decoder_plan &plan, memory_budget &budget) {
  const auto text = readout_text_of(path, budget);
  if (text.failed())
    return text.reason();
  auto table = parse_readout_table(*text, *plan.model);
  if (table.failed())
    return reason("readout: " + path + ": " + table.text());
  plan.readout = std::make_unique<unit_readout>(std::move(*table));
  const readout_facts &facts = plan.readout->facts();
  if (facts.measurements != 0 && facts.kinds == 0)
    return reason("readout: " + path + ": " + kNoKindSuits);
  plan.digest = digest_with(plan.digest, *text);
  return budget.add((c.limits.queue_length + std::uint64_t{1}) * facts.longest_bytes());
}

/// The rest of a plan for a stream. `readout`: the file of its table; "": none.
expected<> plan_stream(const decoder_config &c, const std::shared_ptr<stream_workers> &workers,
                       const std::string &readout, decoder_plan &plan, memory_budget &budget) {
  if (c.has_measurements || c.measurements != 0)
    return reason("D_sparse and measurements are for shots: the bits of a stream are detection events");
  if (c.syndrome_size != 0 && !c.has_checks)
    return reason("syndrome_size is for shots; a stream has no such size");
  if (c.has_checks)
    return reason("H_sparse has no loop; a stream needs dem or dem_file with one (repeat)");
  stream_options options{.decoder = plan.name, .pool = workers};
  if (!readout.empty()) {
    auto text = readout_text_of(readout, budget);
    if (text.failed())
      return text.reason();
    options.readout = std::move(*text);
  }
  auto source = read_stream(*plan.model, options);
  if (source.failed() && source.text().starts_with(kReadoutRefused))
    return reason(std::string(kReadoutRefused) + readout + ": " + source.text().substr(kReadoutRefused.size()));
  if (source.failed())
    return reason(with_its_lines(c, source.text()));
  const auto facts = stream_facts(*source, options.readout);
  if (facts.failed())
    return facts.reason();
  const auto bytes = estimated_stream_bytes(*source, c.limits.queue_length);
  if (bytes.failed())
    return bytes.reason();
  plan.digest = facts->digest;
  plan.stream = std::move(*source);
  return budget.add(plan.model->bytes() + *bytes);
}

expected<decoder_plan> plan_for(const decoder_config &c, const std::shared_ptr<stream_workers> &workers,
                                const std::string &folder, memory_budget &budget) {
  const auto type = decoder_type_of(c.type);
  if (type.failed())
    return reason("type: \"" + c.type + "\": " + type.text());
  auto name = name_with_settings(c, *type);
  if (name.ok() && c.is_on_gpu)
    name = name_on_gpu(c, *name);
  if (name.failed())
    return name.reason();
  *name = with_folder(*name, folder);
  auto model = model_of(c, *type, folder);
  if (model.failed())
    return model.reason();
  decoder_plan plan{std::move(*name), std::move(*model)};
  const std::string *const readout = setting_of(c, kReadout);
  if (c.stream) {
    if (setting_of(c, kConfidence) != nullptr)
      return reason("decoder_custom_args.confidence: a stream gives no gaps; only decoders of shots do");
    if (expected<> result = check_merge_strategy(c, nullptr); result.failed())
      return result.reason();
    const std::string table = readout == nullptr ? "" : path_in(folder, *readout);
    if (expected<> result = plan_stream(c, workers, table, plan, budget); result.failed())
      return result.reason();
    return plan;
  }
  // A text that cannot be parsed is refused by the decoder.
  if (const auto errors = plan.model->errors(); errors.ok()) {
    if (expected<> result = check_merge_strategy(c, *errors); result.failed())
      return reason(with_its_lines(c, result.text()));
    if (type->table_of_errors && !fits_lookup_table(**errors))
      plan.name += (plan.name == "lookup" ? ":" : ",") + depth_of(c);
    auto heralds = heralds_text_of(plan.name);
    if (heralds.failed())
      return heralds.reason();
    plan.heralds = std::move(*heralds);
    const std::uint64_t bytes = plan.model->bytes() + estimated_bytes(c, plan.name, **errors, plan.heralds);
    if (expected<> result = budget.add(bytes); result.failed())
      return result.reason();
    plan.digest = model_digest(**errors);
    if (!plan.heralds.empty())
      plan.digest = digest_with(plan.digest, plan.heralds);
    if (readout != nullptr)
      if (expected<> result = plan_readout(c, path_in(folder, *readout), plan, budget); result.failed())
        return result.reason();
  }
  return plan;
}

/// The longest deadline_us of a name; that of members and inner decoders, too. 0: none. A whole shot that is decoded in
/// windows has none: each of its windows has the time.
std::uint64_t deadline_ns_of(const std::string &name, bool is_stream) {
  constexpr std::string_view kKey = "deadline_us=";
  double longest_us = 0;
  if (is_stream || !name.starts_with("sliding-window"))
    for (std::size_t at = name.find(kKey); at != std::string::npos; at = name.find(kKey, at + 1)) {
      double us = 0;
      const char *const begin = name.data() + at + kKey.size();
      if (std::from_chars(begin, name.data() + name.size(), us).ec == std::errc())
        longest_us = std::max(longest_us, us);
    }
  return static_cast<std::uint64_t>(longest_us * 1000);
}

expected<std::unique_ptr<decoding_unit>> build_stream(const decoder_plan &plan) {
  const repeating_model &model = plan.stream->model;
  stream_result made = make_stream_decoder(
      *plan.stream,
      longest_stream_request_bits(std::max({model.head_detectors(), model.body_detectors(), model.tail_detectors()})));
  if (!made)
    return reason(made.machine_lacks ? CUDAQ_ERR_UNSUPPORTED : CUDAQ_ERR_INVALID_ARG, made.error);
  if (made.instance->num_observables() == 0)
    return reason("the model has no observables; it needs one");
  std::string name = stream_name(plan.stream->options, *made.instance);
  auto unit = std::make_unique<decoding_unit>(std::move(made.instance), plan.digest);
  unit->identity()->name = std::move(name);
  unit->identity()->deadline_ns = deadline_ns_of(plan.name, true);
  return unit;
}

expected<std::unique_ptr<decoding_unit>> build(const decoder_config &c, decoder_plan &plan) {
  if (c.stream)
    return build_stream(plan);
  // The file is not read a second time: the digest is that of these heralds.
  chosen_decoder made = choose_decoder(
      plan.name, *plan.model, plan.heralds.empty() ? std::nullopt : std::optional<std::string_view>(plan.heralds));
  if (!made)
    return reason(made.machine_lacks ? CUDAQ_ERR_UNSUPPORTED : CUDAQ_ERR_INVALID_ARG, with_its_lines(c, made.error));
  if (plan.readout != nullptr)
    if (const std::string refusal = refuses_readout(*made.instance, plan.readout->table()); !refusal.empty())
      return reason("readout: " + refusal);
  const std::string *const confidence = setting_of(c, kConfidence);
  if (const char *const refusal = made.instance->refuses_gaps();
      refusal != nullptr && confidence != nullptr && *confidence != "0")
    return reason("decoder_custom_args.confidence: " + std::string(refusal));
  // What `auto` has chosen here may not be what it chooses elsewhere.
  constexpr std::string_view kChosen = "auto";
  const bool chosen = plan.name == kChosen || plan.name.starts_with("auto:");
  std::string name = plan.name;
  if (chosen) { // "heralds+pymatching": the settings say what is before the decoder
    name = made.instance->name();
    name = name.substr(name.rfind('+') + 1) + plan.name.substr(kChosen.size());
  }
  auto unit = unit_with(std::move(made.instance), c, plan.digest);
  if (unit.ok()) {
    (*unit)->need_readout(std::move(plan.readout));
    (*unit)->identity()->name = std::move(name);
    (*unit)->identity()->deadline_ns = deadline_ns_of(plan.name, false);
  }
  return unit;
}

expected<> count_rates(const decoder_config &c, const decoder_plan &plan, const decoding_unit &unit) {
  if (c.detector_rates == 0)
    return {};
  auto detectors = plan.stream ? detectors_of(*plan.stream) : detectors_of(*plan.model, plan.heralds);
  if (detectors.failed())
    return detectors.reason();
  if (c.has_checks && !has_rates(c)) // kDefaultRate is no measurement
    for (model_detector &detector : detectors->all)
      detector.rate = kUnknown;
  if (plan.stream || detectors->body == unit.num_detectors()) // a plug-in may leave detectors out
    unit.identity()->rates = std::make_unique<detector_rates>(std::move(*detectors), c.detector_rates);
  return {};
}

/// The groups of the file of learn.ties; none without it.
expected<tied_errors> read_ties(const decoder_config &c, const decoder_plan &plan, const std::string &folder) {
  if (c.learn.ties.empty())
    return tied_errors();
  const std::string path = path_in(folder, c.learn.ties);
  const auto text = read_model_text(path);
  if (text.failed())
    return reason(text.status(), "learn.ties: " + text.text());
  auto groups = parse_tied(*text, crc32_of(plan.model->text()));
  if (groups.failed())
    return reason("learn.ties: " + path + ": " + groups.text());
  return groups;
}

/// What a learning thread reads. The limits of learning are checked here, before the decoder serves.
expected<> tap_shots(const decoder_config &c, const decoder_plan &plan, const std::string &folder,
                     const decoding_unit &unit) {
  if (!c.learn.is_on)
    return {};
  if (plan.stream)
    return reason("learn: it is for shots, and not for streams");
  if (!plan.heralds.empty())
    return reason("learn: it is not for models with heralds, whose errors have another probability in each shot");
  if (setting_of(c, kReadout) != nullptr)
    return reason("learn: it is not for decoders with a readout, whose errors have another probability in each shot");
  if (const auto type = decoder_type_of(c.type); type.ok() && type->table_of_errors)
    return reason("learn: for " + c.type + " all errors count the same; use lookup");
  auto ties = read_ties(c, plan, folder);
  if (ties.failed())
    return ties.reason();
  learning_options options{.tied = std::move(*ties)};
  const auto errors = plan.model->errors();
  auto sets = errors.ok() ? learnable_sets(**errors, options) : errors.reason();
  if (sets.failed())
    return reason("learn: " + sets.text());
  unit.identity()->tap = std::make_shared<shot_tap>((unit.num_detectors() + 7) / 8, (unit.num_observables() + 7) / 8,
                                                    learned_source{plan.model, std::move(*sets), std::move(options)});
  return {};
}

} // namespace

expected<std::vector<decoder_setup>> build_decoders(const server_config &config, const std::string &folder) {
  const auto failure = [](const decoder_config &c, const reason &why) {
    return reason(why.status, c.place + " (id " + std::to_string(c.limits.id) + "): " + why.text);
  };
  std::shared_ptr<stream_workers> workers;
  if (config.stream_workers != 0 && std::ranges::any_of(config.decoders, &decoder_config::stream)) {
    workers_result made = make_placed_workers(config.stream_workers, config.realtime.streams());
    if (!made) // the schema has checked the number
      return reason(CUDAQ_ERR_UNSUPPORTED, made.error);
    workers = std::move(made.instance);
  }
  std::vector<decoder_plan> plans;
  memory_budget budget;
  for (const decoder_config &c : config.decoders) {
    auto plan = plan_for(c, workers, folder, budget);
    if (plan.failed())
      return failure(c, plan.reason());
    plans.push_back(std::move(*plan));
  }
  std::vector<decoder_setup> setups;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const decoder_config &c = config.decoders[i];
    auto unit = build(c, plans[i]);
    if (unit.failed())
      return failure(c, unit.reason());
    if (expected<> result = count_rates(c, plans[i], **unit); result.failed())
      return failure(c, result.reason());
    if (expected<> result = tap_shots(c, plans[i], folder, **unit); result.failed())
      return failure(c, result.reason());
    plans[i] = {};
    setups.push_back({c.limits, std::move(*unit), c.place});
  }
  return setups;
}

} // namespace cudaq::qec::realtime
