// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/decoders/predecoder_choice.h"

#include "lib/qec/decoders/offline_decoder.h"
#include "lib/qec/decoding/predecoder.h"
#include "lib/qec/decoding/predecoding/model_sampler.h"
#include "lib/qec/decoding/thread_clock.h"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace cudaq::qec::realtime {
namespace {

constexpr std::size_t kBatch = 32;
constexpr std::uint64_t kFewestShots = 64;
constexpr int kLongest = 10; ///< budgets, after which the measurement is given up
constexpr double kLeastGain = 0.05;

std::string text_of(double seconds_per_shot) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.3g us", seconds_per_shot * 1e6);
  return text;
}

} // namespace

predecoder_choice choose_predecoder(std::string_view dem_text, std::string_view decoder_name,
                                    std::chrono::milliseconds budget) {
  const auto model = parse_dem(dem_text);
  if (model.failed())
    return {"passthrough", model.text()};
  auto local = make_predecoder("local", dem_text, local_rule::isolated);
  decoder_result alone = make_decoder(decoder_name, dem_text), after = make_decoder(decoder_name, dem_text);
  if (local.failed() || !alone || !after)
    return {"passthrough", local.ok() ? alone.error : local.text()};
  const model_sampler sampler(*model);
  offline_decoder cases[] = {{nullptr, std::move(alone.instance)}, {std::move(*local), std::move(after.instance)}};
  double seconds[2] = {};
  std::uint64_t shots = 0, events[2] = {};
  std::mt19937_64 random(1);
  std::vector<std::uint8_t> batch(kBatch * sampler.shot_bytes()), ignored(sampler.observable_bytes());
  const auto begin_all = std::chrono::steady_clock::now();
  const auto spent = [begin_all] { return std::chrono::steady_clock::now() - begin_all; };
  while (shots < kFewestShots || spent() < budget) {
    std::ranges::fill(batch, std::uint8_t{0});
    for (std::size_t shot = 0; shot < kBatch; ++shot)
      sampler.sample(random, std::span(batch).subspan(shot * sampler.shot_bytes(), sampler.shot_bytes()), ignored);
    for (std::uint64_t turn = 0; turn < 2; ++turn) {
      const std::uint64_t which = (turn + shots / kBatch) % 2; // in turn: the second one finds the shots in the caches
      const double begin = thread_seconds();
      for (std::size_t shot = 0; shot < kBatch; ++shot) {
        if (cases[which].decode(std::span(batch).subspan(shot * sampler.shot_bytes(), sampler.shot_bytes())) !=
            decode_status::ok)
          return {"passthrough", "nothing was measured: a sampled shot could not be decoded"};
        events[which] += cases[which].decoded_events();
        if (spent() > kLongest * budget)
          return {"passthrough", "nothing was measured: the decoder is too slow for that"};
      }
      seconds[which] += thread_seconds() - begin;
    }
    shots += kBatch;
  }
  const bool pays = seconds[1] < (1 - kLeastGain) * seconds[0];
  const auto n = static_cast<double>(shots);
  char removed[32];
  std::snprintf(removed, sizeof(removed), "%.0f %%",
                events[0] == 0 ? 0 : 100 - 100 * static_cast<double>(events[1]) / static_cast<double>(events[0]));
  return {pays ? "local" : "passthrough",
          std::string(pays ? "the local predecoder pays: " : "the local predecoder does not pay: ") +
              text_of(seconds[0] / n) + " a shot by the decoder alone, " + text_of(seconds[1] / n) +
              " with the predecoder, which removes " + removed + " of the events (" + std::to_string(shots) +
              " sampled shots on this machine)"};
}

} // namespace cudaq::qec::realtime
