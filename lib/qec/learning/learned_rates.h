// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/qec/learning/event_counts.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cudaq::qec::realtime {

/// Groups of errors, by dem_component::mechanism, whose rates change by one factor. An error is in one group at most.
using tied_errors = std::vector<std::vector<std::uint64_t>>;

struct learning_options {
  /// What is learned is a factor of the exponent -1/2 ln(1 - 2p) of each error, nearly of its rate p. By its prior the
  /// logarithm of the factor is normal around 0 with this sigma (ln 4): where the data say little, the model's own rate
  /// stays. > 0.
  double prior_sigma = 1.3863;
  /// Other errors have factors of their own, but the errors of one line of the model's text, in a loop, share theirs in
  /// any case, and so do errors with the same detectors: they cannot be distinguished.
  tied_errors tied = {};

  // What refuses data. Each text names the figure, and the detector if it is about one.
  double min_shots = 1000;         ///< effective
  double stuck_above = 0.4;        ///< share of the shots in which a detector fires, beyond five sigma
  double min_expected_events = 30; ///< a detector without events, of which the model expects this many, is dead
  double max_change = 10;          ///< of the rate of a detector against the model's, either way, beyond five sigma
  double max_lost = 0.5; ///< share of a detector's errors whose rate is below 1/max_change of the model's, beyond five
                         ///< sigma: it has the place of another detector, or the model is that of another circuit
  /// Of the rates between the shots, as a share of their mean: how much more the number of events of a shot varies than
  /// the learned rates explain. A burst in 1 % of the shots is beyond it, a slow change of all rates by 10 % is not.
  double max_variation = 0.25;
  double max_repeated = 0.01; ///< share of the shots in repeated passages
};

/// What was learned of one error of the model.
struct learned_rate {
  std::uint32_t mechanism = 0; ///< dem_component::mechanism
  std::uint64_t line = 0;
  double model = 0;         ///< the model's own rate
  double rate = 0;          ///< the learned one, > 0 and < 1/2
  double sigma = 0;         ///< of `rate`
  double low = 0, high = 0; ///< interval that holds the true rate with 95 %
  bool resolved = false;    ///< false: the interval is more than half as wide as the prior's
};

/// A detector beside the model: what an operator sees first if a qubit dies.
struct detector_rate {
  double now = 0, model = 0; ///< share of the shots in which it fires
  double sigmas = 0;         ///< (now - model) / sigma of `now` under the model
};

struct learned_rates {
  std::vector<learned_rate> errors; ///< of all errors with an effect, in the order of the text
  std::vector<detector_rate> detectors;
  double shots = 0, effective_shots = 0;
  double variation = 0;          ///< of the rates between the shots, as learning_options::max_variation
  double explained_variance = 0; ///< of the number of events of a shot, by the learned rates
  /// Why the data must not change a served model; empty: nothing speaks against it. The rates are there anyway.
  std::vector<std::string> refusals;
};

/// The rates of each detector, without learning: takes time that is linear in the model.
[[nodiscard]] std::vector<detector_rate> rates_of_detectors(const detector_error_model &model,
                                                            const event_counts &counts);

/// What must be counted to learn the rates of this model: parity_sets::of(model). Fails as that does, and, before any
/// shot, for an error whose probability is too near 1/2, for a number of a group that is not that of an error with an
/// effect, and for errors of one line of a loop that are in two groups.
[[nodiscard]] expected<std::shared_ptr<const parity_sets>> learnable_sets(const detector_error_model &model,
                                                                          const learning_options &options);

/// Learns the rates from flushed counts whose sets are parity_sets::of(model). Fails if they are not, if there are no
/// shots, as learnable_sets(), or if groups join more factors than can be solved together. Any thread; the objects must
/// not change meanwhile. Time: 0.4 s for a surface code of distance 5, 2 s for 7.
[[nodiscard]] expected<learned_rates> learn_rates(const detector_error_model &model, const event_counts &counts,
                                                  const learning_options &options = {});

/// The model with learned rates: what decoders that are not made from a text, and scores, take.
[[nodiscard]] detector_error_model model_with(const detector_error_model &model, const learned_rates &rates);

/// The text of the model with the numbers of its error lines replaced; comments, coordinates and loops stay. `text`
/// must be that of the model.
[[nodiscard]] std::string text_with(std::string_view text, const learned_rates &rates);

/// Reads a file of groups: on each line `tie NAME ERROR ERROR ...`, after the head of model_text_file.h with
/// "cudaq-realtime-tied 1". A name may come on several lines. A reason begins "line N: ".
[[nodiscard]] expected<tied_errors> parse_tied(std::string_view text, std::uint32_t model_crc32);

} // namespace cudaq::qec::realtime
