// SPDX-License-Identifier: Apache-2.0
// The decoding configurations of the pipeline: codes, slot sizes, and the tensor shapes of the published predecoder
// models.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace cudaq::qec::realtime {

/// A memory experiment on the rotated surface code. h = (distance^2 - 1) / 2 stabilizers of each basis. Detectors: h
/// of the first round, 2h of each later round, h of the final readout; together 2h * rounds.
struct decoding_config {
  std::string_view name;
  std::uint32_t distance;
  std::uint32_t rounds;
  char basis; ///< 'X' or 'Z'
  std::size_t slot_size;

  constexpr std::uint32_t stabilizers() const { return (distance * distance - 1) / 2; }
  constexpr std::uint32_t num_detectors() const { return 2 * stabilizers() * rounds; }
  /// The tensor of the models' input: INT32 [1, 3h, rounds].
  constexpr std::uint32_t input_rows() const { return 3 * stabilizers(); }
  constexpr std::size_t int32_input_bytes() const { return std::size_t{input_rows()} * rounds * sizeof(std::int32_t); }
  /// The other two forms of a shot: one uint8 per detector, and one bit per detector.
  constexpr std::size_t uint8_input_bytes() const { return num_detectors(); }
  constexpr std::size_t packed_input_bytes() const { return (std::size_t{num_detectors()} + 7) / 8; }

  /// Name of its recorded shots: "surface_x_d21_p0.003", "surface_z_d13_t104_p0.003".
  std::string shot_set_name(std::string_view noise) const {
    return std::string("surface_") + (basis == 'X' ? "x" : "z") + "_d" + std::to_string(distance) +
           (rounds == distance ? "" : "_t" + std::to_string(rounds)) + "_p" + std::string(noise);
  }
};

inline constexpr std::array<decoding_config, 5> kDecodingConfigs{{
    {"d7", 7, 7, 'Z', 4096},
    {"d13", 13, 13, 'Z', 16384},
    {"d21", 21, 21, 'X', 65536},
    {"d31", 31, 31, 'Z', 262144},
    {"d13_T104", 13, 104, 'Z', 131072},
}};

/// nullptr: no configuration has this name.
constexpr const decoding_config *find_decoding_config(std::string_view name) {
  for (const decoding_config &c : kDecodingConfigs)
    if (c.name == name)
      return &c;
  return nullptr;
}

} // namespace cudaq::qec::realtime
