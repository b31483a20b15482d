// SPDX-License-Identifier: Apache-2.0
// A stage of resident workers for tests. Its request is 8 bytes, a command; the output is the command plus one.
#pragma once

#include "cudaq/qec/realtime/resident_workers.h"

namespace cudaq::realtime::test {

inline constexpr std::uint64_t kTrap = ~std::uint64_t{0};

/// The command kTrap ends the kernel with a fault; a command of more than 2^32 waits until *release is not 0.
cudaq::qec::realtime::gpu::resident_launcher launch_add_one(const volatile int *release, unsigned threads,
                                                            std::size_t shared_bytes = 0);

} // namespace cudaq::realtime::test
