// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/qec/decoding/dem.h"

namespace cudaq::qec::realtime {

/// Observables of a component without detectors belong to the whole error, so they move to its component with
/// detectors: `D0 ^ L0` becomes `D0 L0`. That is exact if there is one such component; if there are several, as in
/// `D0 ^ D1 ^ L0`, the reason has the line. An error without any detector becomes one component.
[[nodiscard]] expected<detector_error_model> place_observables(detector_error_model model);

/// The model for a decoder that takes each component as an error of its own: with place_observables, and without
/// components that contradict each other. A reason has the line, and a decoder that takes errors whole.
///
/// The split of an error in components is a guess of the program that wrote it. Example of a wrong one:
///
///   error(0.1) D0 L0 ^ D1 L0   flips D0 and D1, and no observable
///   error(0.01) D0             the cause of an event at D0 alone; L0 is not flipped. But as an error of its own the
///                              component D0 L0 of the other line is ten times as likely
///
/// So for each set of detectors the likeliest observables must be the same with components of split errors and without
/// them, and of equally likely ones one must be; if all errors with these detectors are components, they must flip the
/// same observables. Errors with equal detectors that are not split may differ: each of them happens.
[[nodiscard]] expected<detector_error_model> component_errors(detector_error_model model);

} // namespace cudaq::qec::realtime
