// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/server/stream_builder.h"

#include "lib/qec/server/decoder/served_decoder.h"
#include "lib/qec/stream/repeating_model.h"

#include <algorithm>
#include <charconv>
#include <numeric>

namespace cudaq::qec::realtime {
namespace {

constexpr std::uint64_t kDigestRepetitions = 4;
/// Of a window whose size is the distance of the code, which is not known yet.
constexpr std::uint64_t kUsualRounds = 32;
/// make_stream_decoder builds no more detectors in advance, of each of two kinds of windows.
constexpr std::uint64_t kMaxBuiltDetectors = std::uint64_t{1} << 21;

/// The number of a setting; 0: it is missing or no number.
std::uint64_t number_of(const settings_list &given, std::string_view key) {
  std::uint64_t number = 0;
  for (const auto &[name, value] : given)
    if (name == key &&
        std::from_chars(value.data(), value.data() + value.size(), number).ptr != value.data() + value.size())
      return 0;
  return number;
}

} // namespace

expected<settings_list> windows_of_foreign_settings(const settings_list &given) {
  constexpr const char *kSizes[] = {"window_size", "step_size", "num_syndromes_per_round"};
  for (const char *key : kSizes)
    if (number_of(given, key) == 0)
      return reason(std::string("decoder_custom_args.") + key + ": sliding_window needs it, a whole number from 1 on");
  const std::uint64_t window = number_of(given, "window_size"), step = number_of(given, "step_size");
  if (step >= window)
    return reason("decoder_custom_args.step_size: " + std::to_string(step) + " is not below window_size, " +
                  std::to_string(window) + ": a window needs rounds after those that it makes final");
  settings_list ours = {{"commit", std::to_string(step)},
                        {"buffer", std::to_string(window - step)},
                        {"rounds", "index:" + std::to_string(number_of(given, "num_syndromes_per_round"))}};
  for (const auto &[key, value] : given) {
    if (std::ranges::find(kSizes, key) != std::end(kSizes))
      continue;
    if (key != "inner_decoder_name") {
      ours.emplace_back(key, value);
      continue;
    }
    const auto inner = decoder_type_of(value);
    if (inner.failed() || inner->table_of_errors || inner->relay_settings)
      return reason("decoder_custom_args.inner_decoder_name: \"" + value + "\": " +
                    (inner.failed()          ? inner.text()
                     : inner->relay_settings ? "use relay-bp or bp-osd"
                                             : "use lookup or pymatching"));
    ours.emplace_back("inner", inner->name);
  }
  return ours;
}

expected<model_facts> stream_facts(const stream_source &source, const std::optional<std::string> &readout) {
  const repeating_model &model = source.model;
  const auto unrolled = model.unrolled(kDigestRepetitions);
  if (unrolled.failed())
    return unrolled.reason();
  const std::uint64_t digest = model_digest(*unrolled) ^ source.heralds.digest(); // other heralds, other answers
  return model_facts{model.body_detectors(), 0, model.num_observables(),
                     readout ? digest_with(digest, *readout) : digest};
}

std::string stream_name(const stream_options &options, const stream_decoder &made) {
  constexpr std::string_view kRace = "race:";
  std::string inner = options.decoder, settings;
  if (inner.starts_with(kRace)) { // in a list of settings it has parentheses
    inner = "race(" + inner.substr(kRace.size()) + ")";
  } else if (const std::size_t plugin = inner.find(".so:"); plugin != inner.npos) { // it may have a mode, too
    inner = inner.substr(0, plugin + 3) + "(" + inner.substr(plugin + 4) + ")";
  } else if (const std::size_t colon = inner.find(':'); colon != inner.npos) {
    settings = inner.substr(colon + 1);
    inner.resize(colon);
  }
  std::string name = "sliding-window:inner=" + inner;
  const auto add = [&name](const char *key, const std::string &value) { name.append(",").append(key).append(value); };
  if (options.commit != 0)
    add("commit=", std::to_string(options.commit));
  if (options.buffer != 0)
    add("buffer=", std::to_string(options.buffer));
  add("rounds=", options.rounds);
  add("mode=", made.is_parallel() ? "parallel" : "sequential");
  if (!options.heralds.empty())
    add("heralds=", options.heralds);
  if (!settings.empty())
    add("", settings);
  return name;
}

std::uint64_t model_bytes(const detector_error_model &model) noexcept {
  constexpr std::uint64_t kBytesPerModelByte = 8;
  return kBytesPerModelByte *
         (model.components.size() * sizeof(dem_component) + model.targets.size() * sizeof(std::uint64_t));
}

expected<std::uint64_t> estimated_stream_bytes(const stream_source &source, std::uint32_t queue_length) {
  const auto &options = source.options;
  const repeating_model &model = source.model;
  const auto unrolled = model.unrolled(1);
  if (unrolled.failed())
    return unrolled.reason();
  const std::uint64_t commit = options.commit != 0 ? options.commit : kUsualRounds;
  const std::uint64_t buffer = options.buffer != 0 ? options.buffer : kUsualRounds;
  const std::uint64_t body = model.body().size(), head = model.head().size();
  // Windows of the head, and until windows and repetitions begin together again; and the last ones.
  const std::uint64_t windows = head / commit + 4 + std::lcm(commit, body) / commit + std::lcm(commit, body) / body;
  const std::uint64_t detectors =
      std::min(windows * model.first_detector(head + commit + buffer), 2 * kMaxBuiltDetectors);
  // Parallel windows of one kind have as many decoders as threads may decode them at the same time: window_set.
  const std::uint64_t threads =
      options.pool == nullptr || options.mode == stream_mode::sequential ? 1 : options.pool->count();
  const std::uint64_t kinds = std::lcm(2 * commit, body) / commit / 2;
  const std::uint64_t decoders = std::min(threads, (threads - 1) / kinds + 2);
  const std::uint64_t longest = std::max({model.head_detectors(), model.body_detectors(), model.tail_detectors()});
  const std::uint64_t of_model = model_bytes(*unrolled) + 2 * source.heralds.bytes() + source.readout.bytes();
  return sizeof(served_decoder) + replay_bytes(model.num_observables()) +
         of_model / std::max<std::uint64_t>(unrolled->num_detectors, 1) * detectors * decoders +
         queue_bytes(queue_length, (longest_stream_request_bits(longest) + 7) / 8 +
                                       longest_stream_request_values(source.readout.info()));
}

} // namespace cudaq::qec::realtime
