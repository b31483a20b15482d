// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/qec/decoding/qec_expected.h"

#include <string>
#include <string_view>

namespace cudaq::qec::realtime {

/// The decoder that the `type` of a configuration means here.
struct decoder_type {
  std::string name;             ///< for make_decoder
  bool table_of_errors = false; ///< single_error_lut or multi_error_lut: all errors have one probability
};

/// A name of docs/decoding.md, or the name of another server's decoder that has an equal here. Any other name is
/// refused, with the type to use instead if the decoder is known.
[[nodiscard]] expected<decoder_type> decoder_type_of(std::string_view type);

} // namespace cudaq::qec::realtime
