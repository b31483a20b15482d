// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/qec/decoding/learned/memory_lattice.h"
#include "lib/qec/decoding/learned/predecoder_network.h"
#include "lib/qec/decoding/predecoder.h"

#include <memory>
#include <string>

namespace cudaq::qec::realtime {

/// A network, and where its inputs and outputs are in a model of errors.
struct learned_model {
  predecoder_network network;
  memory_lattice lattice;
  predecoder_layout layout;
};
/// file: the path of the weights. Refused, with the reason: what predecoder_network::parse and read_memory_lattice
/// refuse. Throws std::bad_alloc.
[[nodiscard]] expected<learned_model> read_learned_model(const std::string &file, const decoder_model &model);

/// "model": a network of training/predecoder on the CPU, for memories of the rotated surface code with Stim's
/// coordinates. file: its path. Each predecoder has its own copy of the weights.
[[nodiscard]] expected<std::unique_ptr<predecoder>> make_learned_predecoder(const std::string &file,
                                                                            const decoder_model &model);

} // namespace cudaq::qec::realtime
