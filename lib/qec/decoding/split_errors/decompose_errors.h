// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/qec/decoding/dem.h"

namespace cudaq::qec::realtime {

/// The model for matching, which takes components with one or two detectors: each component with more is replaced by
/// errors of the model that have one or two. They stay one error, and have its probability.
///
/// A surface code's model has two parts, the X and the Z detectors, and an error of a circuit is an edge in each: a Y
/// error is an X error and a Z error. So its parts are found first: two detectors are in one part if errors with two
/// detectors lead from one to the other. An error does not count there if it is the sum of two errors with one detector
/// and a larger error has its detectors, too: near two boundaries a Y error flips one detector of each part, and is
/// split. Then a component is split into what it has in each part, if each of these is an error of the model and all
/// together flip its observables. Of errors that differ in their observables only, the likeliest are taken.
///
/// A component that has three detectors of one part stays as it is, as in the models of colour and of qLDPC codes. A
/// model without components of more than two detectors is not changed.
///
/// Stim's `--decompose_errors` knows the circuit, too. Measured with the models of surface codes that Stim generates,
/// matching has fewer logical errors with this function than with Stim's option (docs/decoding.md).
[[nodiscard]] detector_error_model decompose_errors(detector_error_model model);

} // namespace cudaq::qec::realtime
