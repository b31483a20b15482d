/* SPDX-License-Identifier: Apache-2.0 */
// Decoders for shots with heralds: detectors that say which errors a shot may have, as those of erasures. C++20. Link
// cudaq::qec-decoding. How the model and the text of the heralds are made from a circuit: docs/decoders/heralds.md.
#ifndef CUDAQ_QEC_DECODING_HERALDS_H
#define CUDAQ_QEC_DECODING_HERALDS_H

#include "cudaq/qec/decoding/decoder.h"

#include <string_view>

namespace cudaq::qec::realtime {

/// As make_decoder(name, dem_text). `heralds_text`: the contents of a file of heralds for this model; with the setting
/// `heralds=FILE` of the name it is read from there. The texts are read before the call returns.
///
/// The decoder's detectors, also those of edges, are all detectors of a shot, with the heralds; its errors are those of
/// the model, which has no heralds. A shot may replace probabilities besides, but not those of errors of a herald that
/// has fired: bad_probability. The error text says what is wrong, with the line.
[[nodiscard]] CUDAQ_QEC_DECODING_API decoder_result make_decoder(std::string_view name, std::string_view dem_text,
                                                                 std::string_view heralds_text);

} // namespace cudaq::qec::realtime

#endif
