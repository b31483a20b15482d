// SPDX-License-Identifier: Apache-2.0
// Whether this program is built with a sanitizer, by GCC or by clang.
#pragma once

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define CUDAQ_TEST_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer) || __has_feature(memory_sanitizer)
#define CUDAQ_TEST_SANITIZED 1
#endif
#endif
#if !defined(CUDAQ_TEST_SANITIZED)
#define CUDAQ_TEST_SANITIZED 0
#endif

namespace cudaq::realtime::test {
inline constexpr bool kSanitized = CUDAQ_TEST_SANITIZED != 0;
} // namespace cudaq::realtime::test
