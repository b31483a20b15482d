// SPDX-License-Identifier: Apache-2.0
// The name of a stream's decoder. The grammar is the same wherever a stream gets one.
#pragma once

#include "cudaq/qec/decoding/stream.h"
#include "lib/qec/decoders/decoder_name.h"

namespace cudaq::qec::realtime {

/// The settings of sliding-window: inner, commit, buffer, rounds, mode, heralds; all others are those of the inner
/// decoder, which judges them. The inner decoder may have settings of its own in parentheses: so a race has its
/// mode. Refused: a value that is no number of rounds or no mode; an inner decoder that has windows.
[[nodiscard]] expected<stream_options> read_stream_settings(const decoder_settings::list &all);

/// `options` with the settings of its name. options.decoder is the decoder of each window, "pymatching", or the whole
/// form, "sliding-window:inner=pymatching,commit=5,mode=parallel". In the result it is that of each window. Refused:
/// what read_stream_settings refuses; a setting that name and options have with different values.
[[nodiscard]] expected<stream_options> with_settings_of_name(stream_options options);

/// A refusal by the inner decoder, which got each setting that sliding-window does not know: if it does not know one
/// either, the text also has the settings of sliding-window, those that the key may mean, and where a setting of
/// sliding-window belongs. `is_whole_form`: the name was that of sliding-window.
[[nodiscard]] std::string with_settings_of_stream(std::string refusal, bool is_whole_form);

} // namespace cudaq::qec::realtime
