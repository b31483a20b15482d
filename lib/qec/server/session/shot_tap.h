// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cudaq/realtime/detail/base/shared_word.h"
#include "lib/qec/decoding/decoder_model.h"
#include "lib/qec/learning/learned_rates.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace cudaq::qec::realtime {

/// What is learned from: the decoder's model, as its configuration has it, and the sets that are counted.
struct learned_source {
  std::shared_ptr<const decoder_model> model;
  std::shared_ptr<const parity_sets> sets; ///< learnable_sets(model, options)
  learning_options options = {};           ///< groups of errors that are learned together
};

/// Shots of a decoder, with its answers, for a thread that learns from them. A full tap loses shots: the thread that
/// decodes never waits.
///
/// Threads: put by one thread at a time, use_shots by another one.
class shot_tap {
public:
  static constexpr std::size_t kShots = 4096;

  /// Throws std::bad_alloc.
  shot_tap(std::size_t event_bytes, std::size_t observable_bytes, learned_source source)
      : event_bytes_(event_bytes), stride_(event_bytes + observable_bytes + 1), source_(std::move(source)),
        places_(kShots * stride_) {}

  /// `answered`: the observables are a solution. Both have the bytes of the constructor.
  void put(std::span<const std::uint8_t> events, std::span<const std::uint8_t> observables, bool answered) noexcept {
    const std::uint64_t at = written_.value();
    if (at - taken_.value() == kShots) {
      lost_.bump();
      return;
    }
    const auto place = std::span(places_).subspan(at % kShots * stride_, stride_);
    std::ranges::copy(events.first(event_bytes_), place.begin());
    std::ranges::copy(observables.first(stride_ - 1 - event_bytes_), place.subspan(event_bytes_).begin());
    place.back() = answered ? 1 : 0;
    written_.bump();
  }

  /// Calls use(events, observables, answered) for each shot that is there, at most `max_shots`. Returns their number.
  template <class Use>
  std::size_t use_shots(std::size_t max_shots, const Use &use) noexcept(noexcept(use({}, {}, false))) {
    const std::uint64_t begin = taken_.value();
    const auto number = static_cast<std::size_t>(std::min<std::uint64_t>(max_shots, written_.value() - begin));
    for (std::size_t k = 0; k < number; ++k) {
      const auto place = std::span<const std::uint8_t>(places_).subspan((begin + k) % kShots * stride_, stride_);
      use(place.first(event_bytes_), place.subspan(event_bytes_, stride_ - 1 - event_bytes_), place.back() != 0);
      taken_.bump(); // its place is free again
    }
    return number;
  }

  /// Shots that found the tap full.
  [[nodiscard]] std::uint64_t lost() const noexcept { return lost_.value(); }
  [[nodiscard]] const learned_source &source() const noexcept { return source_; }

private:
  const std::size_t event_bytes_, stride_;
  const learned_source source_;
  std::vector<std::uint8_t> places_;
  cudaq::realtime::detail::counter written_, taken_, lost_;
};

} // namespace cudaq::qec::realtime
