// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cudaq/qec/decoding/decoder.h"

#include <cstdint>
#include <span>

namespace cudaq::qec::realtime {

/// In a trial: a probability that each decoder takes, if it takes any.
inline constexpr double kTriedProbability = 0.25;

/// Of a decoder that is made of others: whether each of them takes a list of a shot. One that does not would be left
/// out of every answer, without a text.
class list_trial {
public:
  virtual ~list_trial() = default;
  /// The status of the first one that does not take it, with the reason in fault(); else ok.
  virtual decode_status try_list(shot_probabilities probabilities) noexcept = 0;
};

/// Whether a decode with a list and this status has taken the list. A solution is not needed.
constexpr bool takes_list(decode_status status) noexcept {
  return status != decode_status::bad_probability && status != decode_status::not_supported &&
         status != decode_status::internal_error;
}

/// A decode of a shot without events, with a list; of a list_trial, its trial.
inline decode_status try_list(decoder &with, std::span<std::uint8_t> observables, shot_probabilities list) noexcept {
  auto *const of_all = dynamic_cast<list_trial *>(&with);
  return of_all != nullptr ? of_all->try_list(list) : with.decode({}, observables, list);
}

} // namespace cudaq::qec::realtime
