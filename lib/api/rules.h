// SPDX-License-Identifier: Apache-2.0
// Small parts that the rules of validation.h are made of. Only the validation_*.cpp files include this.
#pragma once

#include "lib/base/error_text.h"

#include <string>

namespace cudaq::realtime::detail {

/// Evaluates the rules in order and returns the first reason. Rules after it are not evaluated.
template <class... Rules>
expected<> first_of(Rules &&...rules) {
  expected<> result;
  (void)((result = rules(), result.failed()) || ...);
  return result;
}

template <class Number>
expected<> out_of_range(const char *field, Number value, const char *allowed) {
  return make_reason(CUDAQ_ERR_INVALID_ARG, "%s is %s, allowed: %s", field, std::to_string(value).c_str(), allowed);
}

} // namespace cudaq::realtime::detail
