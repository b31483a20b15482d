// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/qec/stream/stream_readout.h"

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace cudaq::qec::realtime {

/// The soft values and flags of a stretch of an endless stream, as they came. The owner checks and writes them; threads
/// that decode windows read those that were written before. The owner writes over values only when no window needs them
/// any more, which the limit of its bits says.
class value_ring {
public:
  using text = std::array<char, 192>;

  /// `room`: of values and flags that are kept at the same time.
  value_ring(const stream_readout &of, readout_place room);

  /// Of a new experiment.
  void clear() noexcept;
  /// Values and flags that have come.
  [[nodiscard]] readout_place come() const noexcept { return come_; }
  /// Whether these may come next: so that at least `least` and at most `max_come` have come then. If not, fault() says
  /// why.
  [[nodiscard]] decode_status check(const stream_values &next, readout_place least, readout_place max_come) noexcept;
  /// "": the last check was right.
  [[nodiscard]] const char *fault() const noexcept { return fault_.data(); }
  void forget_fault() noexcept { fault_.front() = '\0'; }
  /// Stores values of `next`, which was checked, until `max_come` have come. `taken`: of these before, is changed.
  void store(const stream_values &next, readout_place &taken, readout_place max_come) noexcept;

  /// Adds the probabilities of the errors of a window to the list, which has room. `base`: from which they count;
  /// `come`: what had come when the window was complete. Else the status, with the reason in `why`. For any thread.
  [[nodiscard]] decode_status list_of(const read_errors &errors, readout_place base, readout_place come,
                                      std::vector<error_probability> &list, text &why) const noexcept;

private:
  [[nodiscard]] decode_status refuse(decode_status status, const char *format, ...) noexcept
      __attribute__((format(printf, 3, 4)));
  /// Whether the ring has value or flag `at` of those that had come.
  template <typename T>
  static bool has(const std::vector<T> &ring, std::int64_t at, std::int64_t come) noexcept {
    return at >= 0 && at < come && come - at <= static_cast<std::int64_t>(ring.size());
  }
  template <typename T>
  static std::size_t index(const std::vector<T> &ring, std::int64_t at) noexcept {
    return static_cast<std::size_t>(at) & (ring.size() - 1);
  }

  const stream_readout &of_;
  std::vector<float> soft_;         ///< of u8 and u4 the level
  std::vector<std::uint8_t> flags_; ///< 0, 1 or 2
  readout_place come_;
  soft_kind kind_ = soft_kind::f32; ///< of the values that have come
  text fault_{};
};

} // namespace cudaq::qec::realtime
