// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cudaq/qec/decoding/decoder.h"

#include "lib/qec/decoding/decoder_model.h"

#include <memory>
#include <string>

namespace cudaq::qec::realtime {

/// A predecoder (predecoder.h) and then `second`, as one decoder. It gives neither edges nor a weight. `predecoder`:
/// a name that make_predecoder knows and check_predecoder_before accepts.
[[nodiscard]] decoder_result make_predecoded_decoder(const std::string &predecoder, std::unique_ptr<decoder> second,
                                                     const decoder_model &model);

} // namespace cudaq::qec::realtime
