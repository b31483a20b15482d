// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/decoders/stream_settings.h"

#include "lib/base/similar_words.h"

#include <algorithm>
#include <array>
#include <string>

namespace cudaq::qec::realtime {
namespace {

constexpr std::array<std::string_view, 6> kOwnKeys = {"inner", "commit", "buffer", "rounds", "mode", "heralds"};

bool has_windows(std::string_view name) { return name.substr(0, name.find_first_of(":(")) == "sliding-window"; }

} // namespace

expected<stream_options> read_stream_settings(const decoder_settings::list &all) {
  constexpr std::uint64_t kMaxRounds = 1'000'000;
  decoder_settings::list own, inner;
  for (const auto &setting : all)
    (std::ranges::find(kOwnKeys, setting.first) != kOwnKeys.end() ? own : inner).push_back(setting);
  decoder_settings settings(std::move(own));
  stream_options options;
  options.decoder = settings.text("inner", "auto");
  options.commit = settings.number("commit", 0, 0, kMaxRounds);
  options.buffer = settings.number("buffer", 0, 0, kMaxRounds);
  options.rounds = settings.text("rounds", "time");
  options.heralds = settings.text("heralds", "");
  const std::string mode = settings.choice("mode", "auto", {"auto", "sequential", "parallel"});
  options.mode = mode == "auto"         ? stream_mode::automatic
                 : mode == "sequential" ? stream_mode::sequential
                                        : stream_mode::parallel;
  if (const expected<> result = settings.check(); result.failed())
    return reason("sliding-window: " + result.text() +
                  (mode == "first" || mode == "best"
                       ? "; the mode of a race stands in its parentheses: inner=race(NAME|NAME,mode=" + mode + ")"
                       : ""));
  if (has_windows(options.decoder))
    return reason("sliding-window: inner=" + options.decoder + ": the decoder of a window has no windows itself");
  options.decoder = without_parentheses(options.decoder);
  char before = options.decoder.find(':') == std::string::npos ? ':' : ',';
  for (const auto &[key, value] : inner) {
    options.decoder.append(1, before).append(key).append("=").append(value);
    before = ',';
  }
  return options;
}

expected<stream_options> with_settings_of_name(stream_options options) {
  if (!has_windows(options.decoder))
    return options;
  const auto parsed = decoder_name::parse(options.decoder);
  if (parsed.failed())
    return parsed.reason();
  const auto settings = parsed->settings.rest();
  const auto named = read_stream_settings(settings);
  if (named.failed())
    return named.reason();
  std::string twice;
  // A default value in the name counts, too: "rounds=time" is not "index:3" outside of it.
  const auto set_from_name = [&](const char *what, auto &option, const auto &of_name, const auto &absent) {
    if (std::ranges::find(settings, what, &decoder_settings::list::value_type::first) == settings.end())
      return;
    if (option != absent && option != of_name && twice.empty())
      twice = what;
    option = of_name;
  };
  set_from_name("commit", options.commit, named->commit, std::uint64_t{0});
  set_from_name("buffer", options.buffer, named->buffer, std::uint64_t{0});
  set_from_name("rounds", options.rounds, named->rounds, std::string("time"));
  set_from_name("heralds", options.heralds, named->heralds, std::string());
  set_from_name("mode", options.mode, named->mode, stream_mode::automatic);
  if (!twice.empty())
    return reason(options.decoder + ": " + twice + " is also given outside of the name, with another value");
  options.decoder = named->decoder;
  return options;
}

std::string with_settings_of_stream(std::string refusal, bool is_whole_form) {
  namespace rt = cudaq::realtime::detail;
  constexpr std::string_view kUnknown = "unknown setting \"", kSuggestion = ". Did you mean";
  const std::size_t at = refusal.find(kUnknown);
  if (at == std::string::npos)
    return refusal;
  const std::string_view rest = std::string_view(refusal).substr(at + kUnknown.size());
  const std::vector<std::string> own(kOwnKeys.begin(), kOwnKeys.end());
  const std::string_view key = rest.substr(0, rest.find('"'));
  const bool is_own = std::ranges::find(kOwnKeys, key) != kOwnKeys.end(); // after the name of another decoder
  const std::string similar = is_own ? "" : rt::did_you_mean(rt::similar_words(key, own));
  const std::size_t end = std::min(refusal.find(kSuggestion, at), refusal.size());
  std::string known = "; of the windows:";
  for (const std::string &one : own)
    known += (one == own.front() ? " " : ", ") + one;
  if (is_own)
    known += is_whole_form ? ", which stand outside of the parentheses of inner"
                           : ", which need the decoder sliding-window (type: sliding-window in the file of serve) "
                             "with this one as its inner";
  if (!similar.empty())
    refusal.replace(end, std::string::npos, "." + similar);
  return refusal.insert(end, known);
}

} // namespace cudaq::qec::realtime
