// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cudaq/qec/decoding/decoder.h"

#include "lib/qec/decoders/heralds/herald_list.h"
#include "lib/qec/decoding/decoder_model.h"

#include <memory>

namespace cudaq::qec::realtime {

/// A decoder of the model for shots with heralds: its detectors are those of the experiment, also in the edges of its
/// corrections; its errors are those of the model. The time for the heralds of a shot is proportional to the errors of
/// those that have fired. A list of the shot may come with them; it may not have an error of a herald that has fired.
///
/// Refused: a decoder that takes no probabilities of a shot, and heralds with an error that it cannot replace. The
/// decoder has decoded a shot with all heralds, so what it makes at the first of them is made.
[[nodiscard]] decoder_result make_heralded_decoder(herald_list heralds, std::unique_ptr<decoder> inner,
                                                   const decoder_model &model);

} // namespace cudaq::qec::realtime
