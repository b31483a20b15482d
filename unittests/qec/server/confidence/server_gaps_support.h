// SPDX-License-Identifier: Apache-2.0
// A decoder of the server whose gaps are numbers that a float holds.
#pragma once

#include "unittests/qec/server/server_test_support.h"

#include <algorithm>
#include <limits>

namespace cudaq::qec::realtime::test {

inline constexpr std::uint64_t kGapObservables = 9;
inline constexpr double kUnknownGap = std::numeric_limits<double>::quiet_NaN();

/// As golden/make_frames.py describes it. A shot with both events reaches its deadline without a solution.
class decoder_with_gaps final : public decoder {
public:
  decoder_with_gaps() : decoder(2, kGapObservables) {}
  const char *name() const noexcept override { return "with gaps"; }
  const char *refuses_gaps() const noexcept override { return nullptr; }

protected:
  decode_status decode_checked(const std::vector<std::uint64_t> &events, std::span<std::uint8_t> observables,
                               decode_details *details) noexcept override {
    if (events.size() == 2)
      return decode_status::deadline;
    const bool is_first = !events.empty() && events[0] == 0, is_second = !events.empty() && events[0] == 1;
    observables[0] = is_first ? 1 : is_second ? 2 : 0;
    observables[1] = is_first ? 1 : 0;
    for (std::size_t k = 0; details != nullptr && k < details->gaps.size(); ++k) {
      const auto number = static_cast<double>(k);
      details->gaps[k] = is_first ? number + 1.5 : !is_second ? 8 : k == 8 ? kUnknownGap : number / 4;
    }
    return decode_status::ok;
  }
};

inline std::unique_ptr<decoding_unit> gaps_unit() {
  return std::make_unique<decoding_unit>(std::make_unique<decoder_with_gaps>(), sparse_rows{}, 2);
}

/// The gaps after the bits of so many observables. Empty: the answer has not that length.
inline std::vector<float> gaps_of(const full_answer &answer, std::size_t observables) {
  const std::size_t bit_bytes = (observables + 7) / 8;
  std::vector<float> gaps(observables);
  if (answer.result.size() != bit_bytes + observables * sizeof(float))
    return {};
  std::memcpy(gaps.data(), answer.result.data() + bit_bytes, observables * sizeof(float));
  return gaps;
}

} // namespace cudaq::qec::realtime::test
