// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/qec/decoding/predecoder.h"

#include <memory>
#include <string>

namespace cudaq::qec::realtime {

/// "model": a network of training/predecoder on the CPU, for memories of the rotated surface code with Stim's
/// coordinates. file: its path. Each predecoder has its own copy of the weights.
[[nodiscard]] expected<std::unique_ptr<predecoder>> make_learned_predecoder(const std::string &file,
                                                                            const decoder_model &model);

} // namespace cudaq::qec::realtime
