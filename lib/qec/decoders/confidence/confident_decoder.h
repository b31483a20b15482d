// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cudaq/qec/decoding/decoder.h"

#include "lib/qec/decoders/confidence/both_values.h"
#include "lib/qec/decoding/decoder_model.h"

#include <functional>
#include <memory>
#include <vector>

namespace cudaq::qec::realtime {

/// The most observables of a decoder with gaps: each has a decoder of its own.
inline constexpr std::uint64_t kMaxGaps = 64;

/// Makes the decoder of a model, with the same settings as the first one. It gives a weight.
using decoder_maker = std::function<decoder_result(const decoder_model &model)>;

/// The edges of the matching graph of a model.
using edge_lister = std::function<std::vector<weighted_edge>(const detector_error_model &model)>;

/// A decoder that gives gaps (decode_details::gaps): the answers are those of `first`. If gaps are asked for, one more
/// decode for each observable finds the lightest correction in which it has its other value. The gap is the difference
/// of the weights, and 0 if the other one is lighter.
///
/// `edges`: of matching: the components of `model` are edges, and the gap is exact if both decoders find least weight.
/// For the probabilities of the model both_values finds it, and mostly the answer, too, without a decoder. Events of
/// parts of the model without observables are not decoded for a gap, and such an answer has no weight unless edges are
/// asked for. Refused: more than kMaxGaps observables, and what force_matched_observable refuses.
[[nodiscard]] decoder_result make_confident_decoder(std::unique_ptr<decoder> first, const detector_error_model &model,
                                                    const decoder_maker &make, const edge_lister &edges = nullptr);

} // namespace cudaq::qec::realtime
