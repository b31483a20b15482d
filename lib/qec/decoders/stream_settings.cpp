// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/decoders/stream_settings.h"

#include <algorithm>
#include <array>
#include <string>

namespace cudaq::qec::realtime {

expected<stream_options> read_stream_settings(const decoder_settings::list &all) {
  constexpr std::array<std::string_view, 5> kOwnKeys = {"inner", "commit", "buffer", "rounds", "mode"};
  constexpr std::uint64_t kMostRounds = 1'000'000;
  decoder_settings::list own, inner;
  for (const auto &setting : all)
    (std::ranges::find(kOwnKeys, setting.first) != kOwnKeys.end() ? own : inner).push_back(setting);
  decoder_settings settings(std::move(own));
  stream_options options;
  options.decoder = settings.text("inner", "auto");
  options.commit = settings.number("commit", 0, 0, kMostRounds);
  options.buffer = settings.number("buffer", 0, 0, kMostRounds);
  options.rounds = settings.text("rounds", "time");
  options.mode = settings.choice("mode", "sequential", {"sequential", "parallel"}) == "parallel"
                     ? stream_mode::parallel
                     : stream_mode::sequential;
  if (const std::string bad = settings.error(); !bad.empty())
    return reason("sliding-window: " + bad);
  char before = ':';
  for (const auto &[key, value] : inner) {
    options.decoder.append(1, before).append(key).append("=").append(value);
    before = ',';
  }
  return options;
}

expected<stream_options> read_stream_name(std::string_view name) {
  const auto parsed = decoder_name::parse(name);
  if (parsed.failed())
    return parsed.reason();
  if (parsed->name != "sliding-window")
    return reason("\"" + parsed->name + "\" decodes shots; a stream needs sliding-window:inner=" + parsed->name);
  return read_stream_settings(parsed->settings.rest());
}

} // namespace cudaq::qec::realtime
