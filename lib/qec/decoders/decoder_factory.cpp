// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/decoders/decoder_factories.h"

#include "cudaq/qec/decoding/heralds.h"
#include "lib/base/similar_words.h"
#include "lib/qec/decoders/heralds/heralded_decoder.h"
#include "lib/qec/decoders/predecoded_decoder.h"

#include <array>
#include <cmath>
#include <new>
#include <optional>
#include <utility>

namespace cudaq::qec::realtime {
namespace {

struct known_decoder {
  std::string_view name;
  /// Null: make_named has a call of its own.
  decoder_result (*make)(const decoder_model &model, decoder_settings &settings);
  error_form errors = error_form::whole; ///< of a race: see error_form_of
  bool edges_only = false;               ///< of a race: see takes_edges_only
  bool is_listed = true;                 ///< false: it needs settings, a model with a loop, or a GPU
};
constexpr std::array kDecoders{
    known_decoder{
        .name = "pymatching", .make = &make_pymatching_decoder, .errors = error_form::components, .edges_only = true},
    known_decoder{.name = "pymatching-correlated",
                  .make = &make_correlated_decoder,
                  .errors = error_form::joined,
                  .edges_only = true},
    known_decoder{.name = "lookup", .make = &make_lookup_decoder, .errors = error_form::components},
    known_decoder{.name = "bp-osd", .make = &make_bp_osd_decoder},
    known_decoder{.name = "relay-bp", .make = &make_relay_bp_decoder},
    known_decoder{.name = "relay-bp-gpu", .make = &make_relay_bp_gpu_decoder, .is_listed = false},
    known_decoder{
        .name = "model-gpu", .make = &make_model_gpu_decoder, .errors = error_form::components, .is_listed = false},
    known_decoder{.name = "sliding-window", .make = nullptr, .is_listed = false},
    known_decoder{.name = "race", .make = &make_race_decoder, .is_listed = false},
};

bool is_built(const known_decoder &one) { return !one.name.starts_with("pymatching") || pymatching_available(); }

const known_decoder *find_decoder(std::string_view name) {
  for (const known_decoder &one : kDecoders)
    if (one.name == name)
      return &one;
  return nullptr;
}

/// A table gives no gaps.
const char *first_of_auto(decoder_settings settings) {
  return pymatching_available() ? "pymatching" : settings.text("confidence", "0") == "0" ? "lookup" : "bp-osd";
}

/// What a caller has read.
struct given_heralds {
  std::optional<std::string_view> text{};    ///< heralds beside the name, which then has no such setting
  std::optional<std::string_view> of_file{}; ///< the contents of the file of the setting, which is not read again
};

decoder_result with_heralds(decoder_result made, const given_heralds &given, const std::string &file,
                            const decoder_model &model) {
  if (!made || (!given.text && file.empty()))
    return made;
  if (given.text && !file.empty())
    return {nullptr, "heralds=" + file + ": the heralds are given as a text, too"};
  auto list = given.text ? parse_heralds(*given.text, model) : load_heralds(file, given.of_file, model);
  if (list.failed())
    return {nullptr, "heralds: " + list.text(), list.status() == CUDAQ_ERR_UNSUPPORTED};
  return make_heralded_decoder(std::move(*list), std::move(made.instance), model);
}

decoder_result make_named(decoder_name &wanted, const decoder_model &model, const given_heralds &heralds) {
  constexpr double kLongestUs = 1e9;
  const std::string before = wanted.settings.text("predecoder", "none");
  const bool has_windows = wanted.name == "sliding-window"; // each of them has its heralds, and its time
  const std::string heralds_file = has_windows ? "" : wanted.settings.text("heralds", "");
  const double budget_us = has_windows ? 0 : wanted.settings.real("deadline_us", 0, 0, kLongestUs);
  decoder_result made = wanted.is_plugin() ? make_plugin_decoder(wanted.name, model, wanted.settings)
                        : has_windows      ? make_sliding_window_decoder(model, wanted.settings, heralds.of_file)
                                           : find_decoder(wanted.name)->make(model, wanted.settings);
  if (made && before != "none")
    made = make_predecoded_decoder(before, std::move(made.instance), model);
  made = with_heralds(std::move(made), heralds, heralds_file, model);
  if (made)
    made.instance->set_budget(static_cast<std::uint64_t>(std::ceil(budget_us * 1000)));
  return made;
}

/// The decoder may be made elsewhere or later. Decoders make a text of what they catch.
bool machine_lacks(const decoder_result &made) {
  return made.machine_lacks || made.error.ends_with(std::bad_alloc().what());
}

/// A setting that the first choice does not know is an error, not a reason to take another decoder.
chosen_decoder make_auto(const decoder_settings &settings, const decoder_model &model, const given_heralds &heralds) {
  constexpr const char *kLast = "bp-osd";
  decoder_name first{first_of_auto(settings), settings};
  decoder_result made = make_named(first, model, heralds);
  if (first.name == kLast)
    return {std::move(made), "auto took bp-osd, because this build has no PyMatching, and its first choice without it, "
                             "lookup, gives no gaps"};
  if (made || machine_lacks(made))
    return {std::move(made), {}};
  std::string refusal = made.error;
  if (first.settings.check().failed() || first.settings.text("predecoder", "none") != "none" ||
      !first.settings.text("heralds", "").empty() || heralds.text) {
    decoder_name without_settings{first.name, decoder_settings{}};
    decoder_result plain = make_named(without_settings, model, {});
    if (machine_lacks(plain))
      return {std::move(plain), {}};
    if (plain)
      return {std::move(made), {}};
    refusal = plain.error;
  }
  if (model.errors().failed())
    return {std::move(made), {}};
  decoder_name second{kLast, settings};
  decoder_result other = make_named(second, model, heralds);
  if (!other)
    return {{nullptr, made.error + "; " + other.error}, {}};
  std::string why =
      std::string("auto took ") + other.instance->name() + ", because its first choice refuses the model: " + refusal;
  return {std::move(other), std::move(why)};
}

} // namespace

expected<> check_decoder_name(std::string_view name) {
  const auto wanted = decoder_name::parse(name);
  if (wanted.failed())
    return wanted.reason();
  if (wanted->name == "auto" || wanted->is_plugin() || find_decoder(wanted->name) != nullptr)
    return {};
  std::string text = "unknown decoder \"" + wanted->name + "\": known are ";
  for (const std::string &known : decoder_names())
    text += known + ", ";
  std::vector<std::string> all{"auto"};
  for (const known_decoder &known : kDecoders)
    all.emplace_back(known.name);
  const std::string similar =
      cudaq::realtime::detail::did_you_mean(cudaq::realtime::detail::similar_words(wanted->name, all));
  return reason(
      text +
      "auto, sliding-window for models with a loop, race:NAME|NAME, relay-bp-gpu, model-gpu, and the path of a "
      "plug-in" +
      (similar.empty() ? "" : "." + similar));
}

namespace {

chosen_decoder choose(std::string_view name, const decoder_model &model, const given_heralds &heralds) {
  try {
    if (expected<> result = check_decoder_name(name); result.failed())
      return {{nullptr, result.text()}, {}};
    auto wanted = decoder_name::parse(name);
    chosen_decoder made = wanted->name == "auto" ? make_auto(wanted->settings, model, heralds)
                                                 : chosen_decoder{make_named(*wanted, model, heralds), {}};
    made.machine_lacks = machine_lacks(made);
    return made;
  } catch (const std::exception &failure) { // out of memory
    return {{nullptr, std::string(name) + " decoder: " + failure.what(), true}, {}};
  }
}

} // namespace

chosen_decoder choose_decoder(std::string_view name, const decoder_model &model,
                              std::optional<std::string_view> heralds) {
  return choose(name, model, {.of_file = heralds});
}

decoder_result make_decoder(std::string_view name, std::string_view dem_text) {
  return choose(name, decoder_model(dem_text), {});
}

decoder_result make_decoder(std::string_view name, std::string_view dem_text, std::string_view heralds) {
  return choose(name, decoder_model(dem_text), {.text = heralds});
}

expected<error_form> error_form_of(std::string_view name) {
  if (expected<> result = check_decoder_name(name); result.failed())
    return result.reason();
  auto wanted = decoder_name::parse(name);
  if (wanted->is_plugin())
    return error_form_of_plugin(wanted->name);
  if (wanted->name == "race")
    return error_form_of_race(wanted->settings.text("members", ""));
  return find_decoder(wanted->name == "auto" ? first_of_auto(wanted->settings) : wanted->name)->errors;
}

bool takes_edges_only(std::string_view name) {
  auto wanted = decoder_name::parse(name);
  if (wanted.failed() || wanted->is_plugin())
    return false;
  if (wanted->name == "race")
    return race_takes_edges_only(wanted->settings.text("members", ""));
  const known_decoder *const one =
      find_decoder(wanted->name == "auto" ? first_of_auto(wanted->settings) : wanted->name);
  return one != nullptr && one->edges_only;
}

std::vector<std::string> decoder_names() {
  std::vector<std::string> names;
  for (const known_decoder &one : kDecoders)
    if (is_built(one) && one.is_listed)
      names.emplace_back(one.name);
  return names;
}

} // namespace cudaq::qec::realtime
