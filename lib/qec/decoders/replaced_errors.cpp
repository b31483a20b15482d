// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/decoders/replaced_errors.h"

#include <cstdio>

namespace cudaq::qec::realtime {

void replaced_errors::set_fault(const char *text) noexcept { std::snprintf(fault_.data(), fault_.size(), "%s", text); }

bool replaced_errors::refuse(const error_probability &one, const char *text) noexcept {
  std::snprintf(fault_.data(), fault_.size(), "error %llu of the shot's list (probability %g) %s; the model has %zu",
                static_cast<unsigned long long>(one.error), one.probability, text, place_.size());
  return false;
}

} // namespace cudaq::qec::realtime
