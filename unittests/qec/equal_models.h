// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/qec/decoding/dem.h"

#include <gtest/gtest.h>

namespace cudaq::qec::realtime::test {

/// All but the numbers of lines, bit by bit.
inline void expect_equal(const detector_error_model &a, const detector_error_model &b) {
  ASSERT_EQ(a.num_detectors, b.num_detectors);
  ASSERT_EQ(a.num_observables, b.num_observables);
  ASSERT_EQ(a.num_errors, b.num_errors);
  ASSERT_EQ(a.targets, b.targets);
  ASSERT_EQ(a.components.size(), b.components.size());
  for (std::size_t k = 0; k < a.components.size(); ++k) {
    ASSERT_EQ(a.components[k].probability, b.components[k].probability);
    ASSERT_EQ(a.components[k].mechanism, b.components[k].mechanism);
    ASSERT_EQ(a.components[k].detectors, b.components[k].detectors);
    ASSERT_EQ(a.components[k].observables, b.components[k].observables);
  }
}

} // namespace cudaq::qec::realtime::test
