// SPDX-License-Identifier: Apache-2.0
// The results of steps that can fail, as in the other rooms. Here a reason is made from its text alone.
#pragma once

#include "lib/base/expected.h"

namespace cudaq::qec::realtime {

using cudaq::realtime::detail::expected;
using cudaq::realtime::detail::reason;

} // namespace cudaq::qec::realtime
