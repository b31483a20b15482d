// SPDX-License-Identifier: Apache-2.0
#pragma once

#if defined(__x86_64__)
#include <emmintrin.h> // not <immintrin.h>: it takes 0.4 s in each of 170 files
#endif

namespace cudaq::realtime::detail {

/// Tells the core that it is in a spin loop.
inline void cpu_relax() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

} // namespace cudaq::realtime::detail
