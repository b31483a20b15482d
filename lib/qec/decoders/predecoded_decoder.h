// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cudaq/qec/decoding/decoder.h"

#include <memory>
#include <string>
#include <string_view>

namespace cudaq::qec::realtime {

/// A predecoder (predecoder.h) and then `second`, as one decoder. It gives neither edges nor a weight. `predecoder`:
/// a name that make_predecoder knows and check_predecoder_before accepts.
[[nodiscard]] decoder_result make_predecoded_decoder(const std::string &predecoder, std::unique_ptr<decoder> second,
                                                     std::string_view dem_text);

} // namespace cudaq::qec::realtime
