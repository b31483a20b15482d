// SPDX-License-Identifier: Apache-2.0
// How often each detector of a decoder fires now, beside its model. Counts decay: after each W shots (the window) all
// are halved, so a shot counts 1, then 1/2, 1/4, ... No halving touches all counts: each has the number of halvings at
// which it was written last, and is halved when it is next used. Example with W = 4 and one detector (a shot counts 1
// here, 16 in the code):
//
//   shot      1  2  3  4          5          6    7..8       reader
//   fires     x  -  -  -          -          -    x          shots 3 (4 / 2 + 1, after shot 5), halvings 1
//   word      1, halvings 0       the same   ..   1 / 2 + 1  1 / 2 of 3: the rate is 0.17
#pragma once

#include "cudaq/realtime/detail/base/shared_word.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace cudaq::qec::realtime {

inline constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

/// A detector as a model has it.
struct model_detector {
  double rate = kUnknown;                             ///< probability that it fires in a shot
  double x = kUnknown, y = kUnknown, time = kUnknown; ///< its first two coordinates, and its last one after them
  [[nodiscard]] bool has_place() const noexcept { return x == x && y == y; }
};

/// The detectors of a model in its parts. Shots have all in `body`; a stream has those of a repetition there.
struct model_detectors {
  std::vector<model_detector> all; ///< head, body, tail
  std::uint64_t head = 0, body = 0, tail = 0;
};

/// `sigma`: by how many standard deviations the rate differs from the model's; below 0: it is lower. Numbers that are
/// not known are kUnknown: without a shot, or without a rate of the model.
struct detector_state {
  double rate = kUnknown, sigma = kUnknown;
};

/// What a reader has found. `shots`: as many independent shots would give rates as exact as these.
struct detector_reading {
  std::vector<detector_state> detectors;
  double shots = 0; ///< of a stream: repetitions
};

/// How far `rate`, measured in `shots` shots, is from `expected`, in standard deviations: the signed root of the
/// deviance of the binomial distribution. For large counts it is (rate - expected) / sqrt(expected (1 - expected) /
/// shots); for small counts, where that calls two events a miracle, it stays right. A rate of 0 counts as 1e-12.
[[nodiscard]] double sigma_between(double rate, double expected, double shots) noexcept;

/// Differences that count as certain: of 10,000 right detectors one in 200 readings is beyond it.
inline constexpr double kCertainSigma = 5;

/// Detectors whose difference is certain.
[[nodiscard]] std::size_t certain_differences(const detector_reading &of) noexcept;
/// The detectors with the largest differences, the largest first: at most `max_count`. Throws std::bad_alloc.
[[nodiscard]] std::vector<std::size_t> worst_detectors(const detector_reading &of, std::size_t max_count);

/// Threads: those that count, one at a time; read by any thread, which waits for none of them.
class detector_rates {
public:
  static constexpr std::uint32_t kLongestWindow = std::uint32_t{1} << 24;

  /// `window`: shots after which counts are halved, from 2 to kLongestWindow. Throws std::bad_alloc.
  detector_rates(model_detectors detectors, std::uint32_t window);

  /// A shot. Bits after the last detector are ignored.
  void count_shot(std::span<const std::uint8_t> events) noexcept;
  /// `count` bits of a stream, whose first one is bit `first` of the stream.
  void count_rounds(std::span<const std::uint8_t> bits, std::uint64_t first, std::uint64_t count) noexcept;
  /// The tail of a stream.
  void count_tail(std::span<const std::uint8_t> bits) noexcept;

  [[nodiscard]] const model_detectors &model() const noexcept { return model_; }
  /// Throws std::bad_alloc.
  [[nodiscard]] detector_reading read() const;

private:
  /// Halvings in the upper half, a count in the lower one.
  using decaying = cudaq::realtime::detail::shared_word<std::uint64_t>;
  /// Detectors that are counted together, and their shots.
  struct part {
    std::uint64_t begin = 0, size = 0;
    decaying shots; ///< below the window
  };

  void count_event(const part &of, std::uint64_t index) noexcept;
  void count_bits(part &of, std::span<const std::uint8_t> bits, std::uint64_t first_bit, std::uint64_t index,
                  std::uint64_t count) noexcept;
  void end_shot(part &of) noexcept;
  /// Returns its shots as of detector_reading.
  double read_part(const part &of, std::span<detector_state> out) const noexcept;

  const model_detectors model_;
  const std::uint32_t window_;
  std::array<part, 3> parts_; ///< head, body, tail
  std::vector<decaying> counts_;
};

} // namespace cudaq::qec::realtime
