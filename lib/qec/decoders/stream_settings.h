// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cudaq/qec/decoding/stream.h"
#include "lib/qec/decoders/decoder_name.h"

namespace cudaq::qec::realtime {

/// The settings of sliding-window: inner, commit, buffer, rounds, mode; all others are those of the inner decoder,
/// which judges them. Refused: a value that is no number of rounds or no mode.
[[nodiscard]] expected<stream_options> read_stream_settings(const decoder_settings::list &all);

/// The same for a whole name, "sliding-window:inner=pymatching,commit=5". Refused: another name, too.
[[nodiscard]] expected<stream_options> read_stream_name(std::string_view name);

} // namespace cudaq::qec::realtime
