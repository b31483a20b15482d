// SPDX-License-Identifier: Apache-2.0
// Shots that are sampled from a model, the same ones for the same seed in every subcommand.
#pragma once

#include "lib/qec/decoding/model_sampler.h"
#include "tools/shots/own_data.h"

#include <cstdint>
#include <random>
#include <string>

namespace cudaq::realtime::tools {

inline constexpr std::uint64_t kMaxSampledBytes = std::uint64_t{1} << 30; ///< that a run keeps in memory
inline constexpr std::size_t kSampledBatch = 256; ///< shots that come from one state of the generator

/// The generator of batch k: the shots of a batch depend on the seed and k alone.
std::mt19937_64 random_of_batch(std::uint64_t seed, std::uint64_t k);

/// `number` independent shots with their observables, for repetition by name `name`. Throws usage_error if the text is
/// no model, or if the shots need more memory than 1 GiB.
qec::shot_set sample_shots(const std::string &name, const std::string &dem_text, std::uint64_t number,
                           std::uint64_t seed);

} // namespace cudaq::realtime::tools
