// SPDX-License-Identifier: Apache-2.0
// Whether rounds were sent, and decoded, as fast as hardware would have sent them.
#pragma once

#include "tools/common/report.h"

#include <algorithm>
#include <cstdint>
#include <string>

namespace cudaq::realtime::tools {

/// Of all experiments of a run. A run that is a little late and makes up for it has kept the pace: hardware would have
/// filled a buffer. One that was far too late at any time has not, although its last round was in time.
class sending_pace {
public:
  /// Rounds that an experiment may be late at its worst moment: a hundredth of it, for short ones 100.
  static constexpr std::uint64_t allowed_lag(std::uint64_t rounds) noexcept {
    return std::max<std::uint64_t>(100, rounds / 100);
  }

  /// An experiment: `rounds` with `cycle_ns` between them, how long after its time the last one was sent, and how many
  /// rounds of complete windows were due and not final at the worst moment.
  void add(std::uint64_t rounds, double cycle_ns, std::uint64_t last_late_ns, std::uint64_t worst_lag) noexcept {
    worst_lag_ = std::max(worst_lag_, worst_lag);
    was_too_late_ = was_too_late_ || worst_lag > allowed_lag(rounds);
    rounds_ += static_cast<double>(rounds);
    planned_ns_ += static_cast<double>(rounds) * cycle_ns;
    late_ns_ += static_cast<double>(last_late_ns);
  }

  /// There was a pace to keep.
  [[nodiscard]] bool has_plan() const noexcept { return planned_ns_ > 0; }
  /// The rate that was reached, over the planned one: at most 1.
  [[nodiscard]] double ratio() const noexcept { return planned_ns_ / (planned_ns_ + late_ns_); }
  /// At most, at any time of all experiments.
  [[nodiscard]] std::uint64_t worst_lag() const noexcept { return worst_lag_; }
  /// It took at most 1 % longer, and no experiment was far too late at any time.
  [[nodiscard]] bool kept() const noexcept { return is_quick() && !was_too_late_; }
  /// The same, but it may be as late as `allowed_ns` at any time, if that is more than it may be else.
  [[nodiscard]] bool kept_within(double allowed_ns) const noexcept {
    return kept() || (is_quick() && static_cast<double>(worst_lag_) * planned_ns_ / rounds_ <= allowed_ns);
  }
  /// "kept: a round each 2.00 us, at worst 7 rounds late"; "NOT kept: a round each 3.10 us instead of 2.00 us, 65 % of
  /// the rate"; "NOT kept: a round each 2.00 us, but at worst 19215 rounds late"; "none".
  [[nodiscard]] std::string text() const {
    if (!has_plan())
      return "none";
    const std::string cycle = format_ns(planned_ns_ / rounds_);
    if (!is_quick())
      return fmt::format("NOT kept: a round each {} instead of {}, {:.0f} % of the rate",
                         format_ns((planned_ns_ + late_ns_) / rounds_), cycle, 100 * ratio());
    return fmt::format("{}kept: a round each {}, {}at worst {} rounds late", was_too_late_ ? "NOT " : "", cycle,
                       was_too_late_ ? "but " : "", worst_lag_);
  }

private:
  [[nodiscard]] bool is_quick() const noexcept { return late_ns_ <= planned_ns_ / 100; }

  std::uint64_t worst_lag_ = 0;
  bool was_too_late_ = false;
  double rounds_ = 0, planned_ns_ = 0, late_ns_ = 0;
};

} // namespace cudaq::realtime::tools
