// SPDX-License-Identifier: Apache-2.0
// The recorded shots of a decoding configuration, and how two decoders are compared on the same shots.
#pragma once

#include "lib/qec/decoding/decoding_config.h"
#include "lib/qec/decoding/shot_file.h"

#include <cstdint>
#include <string>

namespace cudaq::realtime::tools {

namespace qec = cudaq::qec::realtime;

/// Logical errors of two decoders on the same shots: of a decoder or a predecoder, and of its reference.
struct paired_errors {
  std::uint64_t shots = 0;   ///< 0: the shots have no true observables
  std::uint64_t with = 0;    ///< by the decoder, or with the predecoder
  std::uint64_t without = 0; ///< by the reference, or by the matcher alone
  std::uint64_t only_with = 0, only_without = 0;

  struct interval {
    double low, high;
  };
  [[nodiscard]] double ratio() const noexcept;
  /// 95 % confidence interval of the ratio: the logarithm of the ratio is taken as normal, with the variance of paired
  /// proportions. NaN unless both decoders made errors.
  [[nodiscard]] interval ratio_interval() const noexcept;
  /// Whether decoders that are equally good would differ so much in fewer than 1 of 100 sets of independent shots: the
  /// two-sided sign test on the shots that only one of them decodes right.
  [[nodiscard]] bool beyond_chance() const noexcept;
};

/// Loads the recorded shots of a configuration. Throws usage_error if the set does not exist or has not the
/// configuration's size.
qec::shot_set load_config_shots(const qec::decoding_config &config, const std::string &noise,
                                const std::string &folder);

} // namespace cudaq::realtime::tools
