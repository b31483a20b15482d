// SPDX-License-Identifier: Apache-2.0
// Streams of a configuration: the models and settings of files, judged before anything is built.
#pragma once

#include "lib/qec/decoding/dem.h"
#include "lib/qec/server/decoder_types.h"
#include "lib/qec/server/session/wire_requests.h"
#include "lib/qec/stream/stream_factory.h"

#include <cstdint>
#include <optional>
#include <string>

namespace cudaq::qec::realtime {

/// The settings of the existing server's sliding_window as those of sliding-window here: step_size becomes commit,
/// window_size - step_size becomes buffer, num_syndromes_per_round becomes rounds, inner_decoder_name becomes inner.
/// Others are left as they are. Refused: values without an equal here.
[[nodiscard]] expected<settings_list> windows_of_foreign_settings(const settings_list &given);

/// What describe_decoder answers for such a stream: the digest is that of the model with four repetitions, so it does
/// not depend on the number in the text, of the heralds, and of the text of the table of a readout.
[[nodiscard]] expected<model_facts> stream_facts(const stream_source &source,
                                                 const std::optional<std::string> &readout = {});

/// The whole name of a stream's decoder, with the mode that it has: another stream of this name and of the same model
/// has the same windows and the same inner decoder.
[[nodiscard]] std::string stream_name(const stream_options &options, const stream_decoder &made);

/// Memory of a decoder for this model, estimated: decoders keep several times that of a parsed model, for graphs,
/// indices and scratch memory.
[[nodiscard]] std::uint64_t model_bytes(const detector_error_model &model) noexcept;
/// Memory of a stream decoder, estimated from the sizes of its windows, and from the threads that decode them.
[[nodiscard]] expected<std::uint64_t> estimated_stream_bytes(const stream_source &source, std::uint32_t queue_length);

} // namespace cudaq::qec::realtime
