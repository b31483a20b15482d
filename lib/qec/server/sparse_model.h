// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/qec/decoding/qec_expected.h"
#include "lib/qec/server/session/decoding_unit.h"

#include <cstdint>
#include <span>
#include <string>

namespace cudaq::qec::realtime {

/// The rows of a matrix whose rows end with -1: {0, 2, -1, -1, 1, -1} has the rows {0, 2}, {} and {1}. Refused: no -1
/// at the end, an index not below `columns`, an index twice in a row. The error names the element, counted from 0.
[[nodiscard]] expected<sparse_rows> read_sparse(std::span<const std::int64_t> values, std::uint64_t columns);

/// The model of a parity check matrix as text, which every decoder reads: column k is the error of line k + 1. It flips
/// the detectors whose row of `checks` has k, and the observables whose row of `observables` has k, with the
/// probability rates[k]. Both matrices have rates.size() columns.
[[nodiscard]] std::string model_of_matrices(const sparse_rows &checks, const sparse_rows &observables,
                                            std::span<const double> rates);

} // namespace cudaq::qec::realtime
