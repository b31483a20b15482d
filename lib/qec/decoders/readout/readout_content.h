// SPDX-License-Identifier: Apache-2.0
// Which errors the values of a readout mean. A text:
//
//   cudaq-realtime-readout 1
//   model 1c291ca3
//   measurements 25
//   flags 8
//   gaussian 0 1 -1 0.4 0.5
//   misread 17 0.002 3 0 5 0
//   flag 2 2 17 0.5 18 0.25
//
// A shot has a soft value for each of 25 measurements, and 8 flags. Calibration 0: the value of a measurement whose
// result is 0 is spread around 1, of one whose result is 1 around -1, each with the standard deviation 0.4; half of the
// results are 1. Error 17 happens with probability 0.002 if no measurement is misread; it happens, too, if measurement
// 3 is misread, or 5. If flag 2 is 2, 0.002 is 0.5 in this shot, and error 18 has 0.25. docs/decoders/soft.md is the
// description for users.
#pragma once

#include "cudaq/qec/decoding/readout.h"

#include "lib/qec/decoding/decoder_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace cudaq::qec::realtime {

/// The highest value of u8 or u4; the lowest is 0.
[[nodiscard]] inline double highest_of(soft_kind kind) noexcept { return kind == soft_kind::u8 ? 255 : 15; }

/// From a soft value to the probability that its hard bit is wrong.
struct readout_calibration {
  struct gaussians {
    double mean_of_0, mean_of_1, sigma, share_of_1;
  };
  std::vector<double> misread;              ///< of each level of a table of 16 or 256; empty: two Gaussians
  double slope = 0, middle = 0, offset = 0; ///< of these: the log-likelihood ratio is slope * (v - middle) + offset
  gaussians both{};                         ///< the same, for samples

  /// Values of u8 and u4 are numbers from 0. So Gaussians take these kinds only if both means, rounded, are such
  /// numbers. Two means of about 0 to 1 that are close are in another unit.
  [[nodiscard]] bool takes(soft_kind kind) const noexcept {
    if (!misread.empty())
      return misread.size() == (kind == soft_kind::u8 ? 256U : kind == soft_kind::u4 ? 16U : 0U);
    const auto [low, high] = std::minmax(both.mean_of_0, both.mean_of_1);
    return kind == soft_kind::f32 || (low >= -0.5 && high <= highest_of(kind) + 0.5 && (high > 1.5 || high - low >= 1));
  }
  /// The probability that the hard bit of a value is wrong. The value of a kind that it takes, finite: of u8 and u4 the
  /// level.
  [[nodiscard]] double misread_of(double value) const noexcept {
    return misread.empty() ? 1 / (1 + std::exp(std::abs(slope * (value - middle) + offset)))
                           : misread[static_cast<std::size_t>(value)];
  }
};

/// Of a table whose calibrations take no common kind.
inline constexpr const char *kNoKindSuits =
    "no kind of soft values suits all measurements: tables of 16 levels take u4, those of 256 take u8, and Gaussians "
    "take f32, and u8 or u4 only if their means are such numbers";

struct readout_table::content {
  struct reading {
    std::uint64_t measurement;
    std::uint32_t calibration;
  };
  /// An error that the table names. Those of soft values come first.
  struct named_error {
    std::uint64_t error;
    double rest;              ///< of soft values: its probability without misread measurements
    std::size_t end_readings; ///< its readings end before this one
  };
  struct listed {
    std::size_t named; ///< into `errors`
    double probability;
  };

  std::uint64_t measurements = 0, flags = 0;
  std::vector<readout_calibration> calibrations;
  std::vector<named_error> errors;
  std::size_t num_misread = 0; ///< errors of soft values
  std::vector<reading> readings;
  /// Of each flag and value the range of `listed_errors`: [3 * flag + value] to the next.
  std::vector<std::size_t> begin_listed;
  std::vector<listed> listed_errors;
};

/// A reason begins "line N: ".
///
/// Refused besides what has another form: another model; an error of probability 0 in the model, or without an effect;
/// an error or a measurement in two lines `misread`; flags that do not ascend.
[[nodiscard]] expected<std::unique_ptr<readout_table>> parse_readout_table(std::string_view text,
                                                                           const decoder_model &model);

} // namespace cudaq::qec::realtime
