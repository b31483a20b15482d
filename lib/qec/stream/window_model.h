// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/qec/decoders/error_form.h"
#include "lib/qec/decoding/dem.h"
#include "lib/qec/decoding/split_errors/connected_parts.h"
#include "lib/qec/stream/stream_heralds.h"
#include "lib/qec/stream/stream_readout.h"

#include <cstdint>
#include <vector>

namespace cudaq::qec::realtime {

/// A window of a stream, in rounds of an unrolled model: [begin, end), of which [commit_begin, commit_end) is final.
struct window_rounds {
  std::uint64_t begin, commit_begin, commit_end, end;
  /// Whether errors that reach over the begin may happen in this window. Closed: they were decided before.
  bool open_begin = false;
  /// Whether errors that reach over the end were decided before. Open: they may happen.
  bool closed_end = false;
};

/// A window as a model of its own, for any decoder. Its detectors are those of the window. Its observables are made so
/// that one plain decode gives everything that the stream needs:
///
///   observable                    is flipped by
///   0 ..                          committed errors that flip this observable of the whole model
///   then one for each crossing    committed errors that flip this detector outside the committed rounds: it becomes an
///                                 event (or is taken away) for the window that commits its round
///   then kParities                every error that flips an odd number of the detectors of a certain random set
///
/// An error is committed if it flips a detector of the committed rounds. Errors that reach over an open border flip
/// only their detectors inside, so they are edges to the boundary with their own probability; they commit nothing. The
/// parities check the answer: each error set that explains the events gives the parities of the events, and one that
/// does not passes each of them with the probability 1/2.
///
/// Parts of the model that flip no observable (connected_parts) are left out, and so are their events: also heralds.
struct window_model {
  /// A herald, and the entries of `herald_errors` that it means.
  struct herald {
    std::int64_t detector; ///< of the unrolled model: first_detector + this; below 0: it came before the window
    std::size_t begin, end;
    bool operator==(const herald &) const = default;
  };

  static constexpr std::uint64_t kParities = 8;

  detector_error_model errors;  ///< each with the line of its error in the text of the whole model
  std::uint64_t first_detector; ///< of the unrolled model; detector k of the window is first_detector + k
  std::uint64_t num_detectors;
  std::uint64_t num_observables;                ///< of the whole model
  std::vector<std::uint64_t> crossings;         ///< detectors of the window, ascending
  std::vector<std::uint8_t> parities;           ///< of each detector: bit j: it is in set j
  std::vector<std::uint8_t> is_needed;          ///< of each detector: 1, or 0 if its events are left out
  std::vector<herald> heralds;                  ///< of errors of the window, ascending
  std::vector<error_probability> herald_errors; ///< errors of the window
  read_errors read;                             ///< errors of the window; values and flags of the unrolled model
};

/// An unrolled model from which windows are cut. The time for a window depends on its size, not on that of the model.
/// Of an error that was decided in part, its other components are in the window; with the form `whole` it is left out.
class window_source {
public:
  /// `round_of_detector`: one for each detector of `model`, ascending. `heralded`, `read`: by error.
  window_source(detector_error_model model, std::vector<std::uint64_t> round_of_detector, error_form form,
                std::vector<heralded_error> heralded = {}, read_errors read = {});

  [[nodiscard]] window_model window(window_rounds rounds) const;
  [[nodiscard]] std::uint64_t num_rounds() const noexcept { return first_errors_.size() - 1; }

private:
  friend class window_builder;
  struct error {
    std::size_t begin, end; ///< its components
  };

  const detector_error_model model_;
  const std::vector<std::uint64_t> round_of_;
  const error_form form_;
  const std::vector<heralded_error> heralded_;
  const read_errors read_;
  const connected_parts parts_;
  std::uint64_t reach_ = 0;               ///< the most rounds between two detectors of one error
  std::vector<error> errors_;             ///< in the order of the text
  std::vector<std::size_t> by_round_;     ///< numbers of errors, by their first round
  std::vector<std::size_t> first_errors_; ///< into by_round_: where those of a round begin; one more than rounds
};

} // namespace cudaq::qec::realtime
