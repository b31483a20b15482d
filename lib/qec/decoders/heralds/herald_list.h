// SPDX-License-Identifier: Apache-2.0
// The heralds of a model: which detectors of an experiment are no detectors of the model, and what they say about its
// errors. A text:
//
//   cudaq-realtime-heralds 1
//   model 1c291ca3
//   detectors 26
//   herald 24 17 0.5 18 0.5
//   herald 25 19 0.5
//
// A shot of the experiment has 26 detectors. If number 24 has fired, error 17 of the model has the probability 0.5 in
// this shot, and error 18 too; else both have that of the model. The other 24 detectors are those of the model, in the
// same order. If the model has as many detectors as a shot, its detectors are those of the shot, and no error flips a
// herald: the form for streams. docs/decoders/heralds.md is the description for users.
#pragma once

#include "cudaq/qec/decoding/decoder.h"

#include "lib/qec/decoding/decoder_model.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cudaq::qec::realtime {

/// Of each detector of the experiment what it is.
struct herald_list {
  /// Set in an entry of `meaning`: the rest is the number of a herald, else that of a detector of the model.
  static constexpr std::uint64_t kHerald = std::uint64_t{1} << 63;

  std::vector<std::uint64_t> meaning;  ///< of each detector of the experiment
  std::vector<std::uint64_t> detector; ///< of each detector of the model: its number in the experiment
  std::vector<std::size_t> end;        ///< of each herald: its errors end before this entry of `errors`
  std::vector<error_probability> errors;

  [[nodiscard]] shot_probabilities errors_of(std::size_t herald) const noexcept {
    const std::size_t begin = herald == 0 ? 0 : end[herald - 1];
    return shot_probabilities(errors).subspan(begin, end[herald] - begin);
  }
};

/// Reads such a text for a model. A reason begins "line N: ".
///
/// Refused besides what has another form: another model; heralds that do not ascend; more or fewer detectors than the
/// model and the heralds have; an error of two heralds, since the two do not say its probability if both have fired; an
/// error of probability 0 in the model, or without an effect: a decoder has no place for it; an error that flips a
/// herald.
[[nodiscard]] expected<herald_list> parse_heralds(std::string_view text, const decoder_model &model);

/// The same of a file: a regular one. `contents`: of the file, if the caller has read it. A reason begins with its
/// path.
[[nodiscard]] expected<herald_list> load_heralds(const std::string &path, std::optional<std::string_view> contents,
                                                 const decoder_model &model);

} // namespace cudaq::qec::realtime
