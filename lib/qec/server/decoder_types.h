// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/qec/decoding/qec_expected.h"

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cudaq::qec::realtime {

/// The decoder that the `type` of a configuration means here.
struct decoder_type {
  std::string name;             ///< for make_decoder
  bool table_of_errors = false; ///< single_error_lut or multi_error_lut: all errors have one probability
  bool relay_settings = false;  ///< nv-qldpc-decoder: see relay_of_foreign_settings
};

/// A name of docs/decoding.md, or the name of another server's decoder that has an equal here. Any other name is
/// refused, with the type to use instead if the decoder is known.
[[nodiscard]] expected<decoder_type> decoder_type_of(std::string_view type);

using settings_list = std::vector<std::pair<std::string, std::string>>;

/// The settings of the existing server's nv-qldpc-decoder as those of relay-bp. A member of a map has the key
/// "srelay_config.num_sets", the elements of a list have commas between them. Refused: settings without srelay_config,
/// and values without an equal here.
[[nodiscard]] expected<settings_list> relay_of_foreign_settings(const settings_list &given);

/// A type of the existing server that this one does not have.
struct foreign_type {
  std::string_view type, instead; ///< `instead`: the reason, and what to use
};
/// A setting of the existing server's decoders that the decoder here does not know.
struct foreign_setting {
  std::string_view name;
  std::string_view types;    ///< of this library, separated by |
  std::string_view accepted; ///< values without effect, separated by |; "*": every value; "": none
  std::string_view reason;   ///< why an accepted value has no effect, or another one is refused
};
/// What the published documentation of the existing server names; docs/transport/server_config.md has the same rows.
[[nodiscard]] std::span<const foreign_type> foreign_types() noexcept;
[[nodiscard]] std::span<const foreign_setting> foreign_settings() noexcept;

/// The row of foreign_settings() for a setting of a decoder with this name (for make_decoder); null: the decoder
/// decides about it.
[[nodiscard]] const foreign_setting *find_foreign_setting(std::string_view decoder, std::string_view setting) noexcept;
/// Whether one of the words that | separates.
[[nodiscard]] bool is_one_of(std::string_view words, std::string_view word);

} // namespace cudaq::qec::realtime
