// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cudaq/qec/decoding/stream.h"
#include "lib/qec/stream/repeating_model.h"

namespace cudaq::qec::realtime {

/// make_stream_decoder for a text that was read before. options.rounds is not used.
[[nodiscard]] stream_result make_stream_decoder(const repeating_model &model, const stream_options &options);

} // namespace cudaq::qec::realtime
