// SPDX-License-Identifier: Apache-2.0
// Whether rounds were sent as fast as hardware would have sent them.
#pragma once

#include "tools/common/report.h"

#include <cstdint>
#include <string>

namespace cudaq::realtime::tools {

/// Of all experiments of a run. A run that is late and makes up for it until the end of its experiment has kept the
/// pace: hardware would have filled a buffer.
class sending_pace {
public:
  /// An experiment: `rounds` with `cycle_ns` between them, and how long after its time the last one was sent.
  void add(std::uint64_t rounds, double cycle_ns, std::uint64_t last_late_ns) noexcept {
    rounds_ += static_cast<double>(rounds);
    planned_ns_ += static_cast<double>(rounds) * cycle_ns;
    late_ns_ += static_cast<double>(last_late_ns);
  }

  /// There was a pace to keep.
  [[nodiscard]] bool has_plan() const noexcept { return planned_ns_ > 0; }
  /// The rate that was reached, over the planned one: at most 1.
  [[nodiscard]] double ratio() const noexcept { return planned_ns_ / (planned_ns_ + late_ns_); }
  /// It took at most 1 % longer.
  [[nodiscard]] bool kept() const noexcept { return late_ns_ <= planned_ns_ / 100; }
  /// "kept: a round each 2.00 us", "NOT kept: a round each 3.10 us instead of 2.00 us, 65 % of the rate"; "none".
  [[nodiscard]] std::string text() const {
    if (!has_plan())
      return "none";
    const std::string cycle = format_ns(planned_ns_ / rounds_);
    return kept() ? "kept: a round each " + cycle
                  : fmt::format("NOT kept: a round each {} instead of {}, {:.0f} % of the rate",
                                format_ns((planned_ns_ + late_ns_) / rounds_), cycle, 100 * ratio());
  }

private:
  double rounds_ = 0, planned_ns_ = 0, late_ns_ = 0;
};

} // namespace cudaq::realtime::tools
