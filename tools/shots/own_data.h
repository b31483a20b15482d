// SPDX-License-Identifier: Apache-2.0
// A user's own model and shots, as the command line names them.
#pragma once

#include "cudaq/qec/decoding/decode_status.h"
#include "lib/qec/decoding/shot_file.h"
#include "lib/qec/shots/shot_format.h"

#include <cstdint>
#include <string>

namespace cudaq::realtime::tools {

namespace qec = cudaq::qec::realtime;

/// A file of shots, or of observables.
struct shot_source {
  std::string path;   ///< "": none; "-": stdin or stdout
  std::string format; ///< "": the ending of the path is a format's name, else 01 as in Stim

  [[nodiscard]] bool given() const noexcept { return !path.empty(); }
  [[nodiscard]] qec::shot_format shot_format() const;
};

struct own_data {
  std::string dem; ///< "": no own data
  shot_source in, obs_in, predictions;
  bool in_includes_appended_observables = false;

  [[nodiscard]] bool given() const noexcept { return !dem.empty(); }
};

/// The text of a detector error model. Throws usage_error with the file's name.
std::string read_dem_file(const std::string &path);

/// The refusal of a model that has no detectors.
std::string no_detectors_text(const own_data &data);

/// Reads all files of `data` into memory. Throws usage_error if a file cannot be used, has no shots, or has another
/// number of shots than `in`.
qec::shot_set load_own_shots(const own_data &data);

/// Part of a text report: "d=3, 3 rounds, p=0.005, 1000 recorded shots, repeated; 24 detectors = 3 bytes per request".
/// Facts of the set that are not known are left out.
std::string describe(const qec::shot_set &shots);

/// Errors of trials.
struct error_rate {
  std::uint64_t errors = 0, trials = 0;
  std::uint64_t different_shots = UINT64_MAX; ///< of the trials, if a set is repeated: a repeated one says nothing new

  struct interval {
    double low, high;
  };
  [[nodiscard]] double rate() const noexcept;
  /// Wilson's 95 % interval for the different shots, which are independent; 0 to 1 without trials.
  [[nodiscard]] interval interval_95() const noexcept;
  /// "12 of 800, rate 0.015 (95 %: 0.0086 to 0.026)"
  [[nodiscard]] std::string text() const;
};

/// "; with 4 shots without an answer", for the line of a logical error rate; "" for 0.
std::string without_answer_text(std::uint64_t count, const char *unit = "shot");

/// Shots that a decoder has left without an answer: failures of the logical rate, and none of the system
/// (docs/concepts/errors_and_statuses.md).
struct unanswered_shots {
  std::uint64_t not_converged = 0, at_deadline = 0;

  /// Counts a shot whose decode has this status. False: it is another status.
  bool add(qec::decode_status status) noexcept;
  void operator+=(const unanswered_shots &more) noexcept;
  [[nodiscard]] std::uint64_t total() const noexcept { return not_converged + at_deadline; }
  /// "4 of 300 shots: 3 not converged, 1 at the deadline"
  [[nodiscard]] std::string text(std::uint64_t shots, const char *unit = "shot") const;
  /// The last line of a good run that played these shots and compared each answer: it says "ok" only of what was
  /// checked. `expected` follows "as": whose answers are expected.
  [[nodiscard]] std::string verdict(std::uint64_t shots, const std::string &expected) const;
  /// Whether two decodes of a shot agree so far. One at its deadline agrees with each: the time decides.
  [[nodiscard]] static bool agree(qec::decode_status one, qec::decode_status other) noexcept {
    return one == other || one == qec::decode_status::deadline || other == qec::decode_status::deadline;
  }
};

} // namespace cudaq::realtime::tools
