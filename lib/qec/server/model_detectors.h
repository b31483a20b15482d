// SPDX-License-Identifier: Apache-2.0
// What a model says about each of its detectors: how often it fires, and where it is.
#pragma once

#include "lib/qec/decoding/decoder_model.h"
#include "lib/qec/server/session/detector_rates.h"
#include "lib/qec/stream/stream_factory.h"

#include <string>

namespace cudaq::qec::realtime {

/// Of a model of shots. `heralds`: the text of its heralds, or "": then the detectors are those of the experiment, and
/// the rate of a herald is not known. The components of an error happen together; errors are independent, also those of
/// one herald. Coordinates: the first two are the place and the third one is the time; of three or two the last one is
/// the time, and of two y is 0.
[[nodiscard]] expected<model_detectors> detectors_of(const decoder_model &model, const std::string &heralds);

/// Of a stream: a repetition has the rates of one far from head and tail.
[[nodiscard]] expected<model_detectors> detectors_of(const stream_source &source);

} // namespace cudaq::qec::realtime
