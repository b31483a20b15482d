// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "unittests/qec/pipeline/any_rig.h"
#include "unittests/support/failing_calls.h"

#include <cstdio>

namespace cudaq::qec::realtime::test {

using cudaq::realtime::test::failing_call;
using cudaq::realtime::test::fault;

/// Calls try_once(kind, n) for n = 0, 1, ... until no call fails any more: it returns whether call n has failed. No
/// round may leave an allocation that is not freed. Records the number of failed calls, which must be at least `least`.
template <class Once>
void fail_every_call(fault kind, std::uint64_t least, Once &&try_once) {
  try_once(kind, -1); // what is allocated once per process
  std::uint64_t failed = 0;
  for (bool again = true; again && !testing::Test::HasFailure();) {
    const long before = failing_call::live_allocations();
    again = try_once(kind, static_cast<long>(failed));
    failed += again;
    EXPECT_EQ(failing_call::live_allocations(), before) << "leaked when call " << failed << " failed";
    ASSERT_LT(failed, 2000u);
  }
  testing::Test::RecordProperty(kind == fault::allocation ? "failed_allocations" : "failed_threads",
                                std::to_string(failed));
  std::printf("faults injected: %llu (%s)\n", static_cast<unsigned long long>(failed),
              kind == fault::allocation ? "allocations" : "threads");
  EXPECT_GE(failed, least);
}

} // namespace cudaq::qec::realtime::test
