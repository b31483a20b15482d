// SPDX-License-Identifier: Apache-2.0
// Whether a server is absent, by the system's reports that no program listens at its address.
#pragma once

#include <algorithm>
#include <cstdint>

namespace cudaq::realtime::detail {

/// A server may start while a client sends: only reports that go on say that there is none. Times in ns of any steady
/// clock.
class refusal_watch {
public:
  /// `patience`: for so long the reports must go on; 0: the first one counts. `longest_gap`: the client may have stood
  /// still between two reports with a longer gap.
  refusal_watch(std::uint64_t longest_gap, std::uint64_t patience) : gap_(longest_gap), patience_(patience) {}

  /// `now` may be before that of the last call: the time of a frame whose report is read later.
  void refused(std::uint64_t now) {
    if (!refused_ || (now > last_ && now - last_ > gap_))
      since_ = now;
    last_ = refused_ ? std::max(last_, now) : now;
    refused_ = true;
  }
  void answered() { refused_ = false; }
  /// A report since the last answer.
  [[nodiscard]] bool any() const { return refused_; }
  [[nodiscard]] bool has_patience() const { return patience_ != 0; }
  [[nodiscard]] bool is_absent() const { return refused_ && last_ - since_ >= patience_; }

private:
  std::uint64_t gap_, patience_, since_ = 0, last_ = 0;
  bool refused_ = false;
};

} // namespace cudaq::realtime::detail
