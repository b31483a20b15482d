// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/qec/decoding/qec_expected.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cudaq::qec::realtime {

/// A part of a YAML text with its place.
struct config_node {
  enum class kind : std::uint8_t { empty, scalar, list, map };
  kind what = kind::empty;
  std::uint32_t line = 1, column = 1; ///< both from 1
  std::string text;                   ///< of a scalar
  std::vector<config_node> items;     ///< of a list; of a map: key, value, key, value ...

  /// The value of a key of a map; null if the map has no such key, or this is no map.
  [[nodiscard]] const config_node *find(std::string_view key) const noexcept;
};

/// "line 3, column 7: "
[[nodiscard]] std::string place_of(const config_node &node);

/// The largest text that is read, so that a file cannot ask for unlimited memory.
struct config_limits {
  std::size_t bytes = std::size_t{64} << 20;
  std::size_t nodes = std::size_t{1} << 22;
  std::size_t depth = 32;
  std::size_t maps = std::size_t{1} << 14; ///< in one list: the decoders of a server
};

/// Reads one YAML document. Refused, because no configuration needs them: anchors and aliases, tags, a second document,
/// a key that is no scalar. An error text begins with its place. Without a YAML parser in this build: an error that
/// says how to get one.
[[nodiscard]] expected<config_node> read_yaml(std::string_view text, const config_limits &limits = {});

} // namespace cudaq::qec::realtime
