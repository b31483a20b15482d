// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace cudaq::qec::realtime {

/// Stim's result formats. Stim's documentation describes them: doc/result_formats.md.
enum class shot_format { text01, b8, r8, hits, dets, ptb64 };

inline constexpr std::array<std::string_view, 6> kShotFormatNames{"01", "b8", "r8", "hits", "dets", "ptb64"};

/// "" is the name of no format.
constexpr std::optional<shot_format> find_shot_format(std::string_view name) {
  for (std::size_t k = 0; k < kShotFormatNames.size(); ++k)
    if (kShotFormatNames[k] == name)
      return static_cast<shot_format>(k);
  return std::nullopt;
}
constexpr std::string_view name_of(shot_format format) { return kShotFormatNames[static_cast<std::size_t>(format)]; }

/// The bits of a shot in a file: first the detectors, after them the observables. Either number may be 0.
struct shot_bits {
  std::uint64_t detectors = 0;
  std::uint64_t observables = 0;

  [[nodiscard]] constexpr std::uint64_t all() const { return detectors + observables; }
};

/// A shot in a ptb64 file shares its words with 63 others.
inline constexpr std::uint64_t kShotsPerPtb64Group = 64;

} // namespace cudaq::qec::realtime
