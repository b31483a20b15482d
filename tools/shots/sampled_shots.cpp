// SPDX-License-Identifier: Apache-2.0
#include "tools/shots/sampled_shots.h"

#include "tools/common/report.h"

#include <fmt/format.h>
#include <span>

namespace cudaq::realtime::tools {

std::mt19937_64 random_of_batch(std::uint64_t seed, std::uint64_t k) {
  std::seed_seq seeds{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32),
                      static_cast<std::uint32_t>(k), static_cast<std::uint32_t>(k >> 32)};
  return std::mt19937_64(seeds);
}

qec::shot_set sample_shots(const std::string &name, const std::string &dem_text, std::uint64_t number,
                           std::uint64_t seed) {
  const auto model = qec::parse_dem(dem_text);
  if (model.failed())
    throw usage_error(fmt::format("{}: {}", name, model.text()));
  if (model->num_detectors == 0 || model->num_observables == 0)
    throw usage_error(fmt::format("{}: {} detectors and {} observables; a model to sample has one of each", name,
                                  model->num_detectors, model->num_observables));
  const qec::model_sampler sampler(*model);
  const std::size_t shot_bytes = sampler.shot_bytes(), truth_bytes = sampler.observable_bytes();
  if (number > kMaxSampledBytes / (shot_bytes + truth_bytes))
    throw usage_error(
        fmt::format("--shots {}: sampled shots are kept in memory, {} bytes each; at most {} are accepted", number,
                    shot_bytes + truth_bytes, kMaxSampledBytes / (shot_bytes + truth_bytes)));
  qec::shot_set set;
  set.name = name + ", sampled";
  set.dem_text = dem_text;
  set.num_detectors = model->num_detectors;
  set.num_observables = model->num_observables;
  set.shots = number;
  set.detections.resize(static_cast<std::size_t>(number) * shot_bytes);
  set.observables.resize(static_cast<std::size_t>(number) * truth_bytes);
  std::mt19937_64 random;
  for (std::size_t i = 0; i < number; ++i) {
    if (i % kSampledBatch == 0)
      random = random_of_batch(seed, i / kSampledBatch);
    sampler.sample(random, std::span(set.detections).subspan(i * shot_bytes, shot_bytes),
                   std::span(set.observables).subspan(i * truth_bytes, truth_bytes));
  }
  return set;
}

} // namespace cudaq::realtime::tools
