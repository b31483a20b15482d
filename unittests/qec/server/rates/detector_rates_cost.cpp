// SPDX-License-Identifier: Apache-2.0
// What the count of a shot's detection events costs, on one thread: docs/performance.md, "The decoding server". The
// least of many blocks counts, which other programs hardly disturb.
//
//   detector_rates_cost MODEL.dem
#include "lib/qec/decoding/model_sampler.h"
#include "lib/qec/decoding/whole_file.h"
#include "lib/qec/server/model_detectors.h"

#include "lib/base/ticks.h"

#include <algorithm>
#include <bit>
#include <cstdio>

int main(int argc, char **argv) {
  using namespace cudaq::qec::realtime;
  using cudaq::realtime::detail::steady_ns;
  constexpr std::size_t kShots = 1000;
  constexpr int kBlocks = 300;
  const auto text = read_whole_file(argc == 2 ? argv[1] : "");
  const auto errors = decoder_model::of_text(text.ok() ? *text : "");
  const auto model = errors->errors();
  auto detectors = text.ok() ? detectors_of(*errors, "") : expected<model_detectors>(text.reason());
  if (detectors.failed()) {
    std::fprintf(stderr, "detector_rates_cost MODEL.dem: %s\n", detectors.text().c_str());
    return 2;
  }
  const model_sampler sampler(**model);
  std::mt19937_64 random(1);
  std::vector<std::uint8_t> shots(kShots * sampler.shot_bytes()), observables(sampler.observable_bytes());
  const auto shot = [&](std::size_t k) {
    return std::span(shots).subspan(k * sampler.shot_bytes(), sampler.shot_bytes());
  };
  for (std::size_t k = 0; k < kShots; ++k)
    sampler.sample(random, shot(k), observables);
  std::size_t events = 0;
  for (const std::uint8_t byte : shots)
    events += static_cast<std::size_t>(std::popcount(byte));
  detector_rates rates(std::move(*detectors), 1 << 16);
  double least = 1e18;
  for (int block = 0; block < kBlocks; ++block) {
    const std::uint64_t begin = steady_ns();
    for (std::size_t k = 0; k < kShots; ++k)
      rates.count_shot(shot(k));
    least = std::min(least, static_cast<double>(steady_ns() - begin) / kShots);
  }
  std::printf("%llu detectors, %.2f events a shot: %.1f ns a shot\n",
              static_cast<unsigned long long>((*model)->num_detectors), static_cast<double>(events) / kShots, least);
  return rates.read().shots > 0 ? 0 : 1;
}
