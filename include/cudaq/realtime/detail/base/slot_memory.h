// SPDX-License-Identifier: Apache-2.0
// Accesses to the bytes of a slot, whose flag orders them: the words of a frame, and the stores of a CPU to device
// memory.
#pragma once

#include "cudaq/realtime/detail/base/flag_word.h"

#include <cstddef>
#include <cstring>
#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace cudaq::realtime::detail {

/// Loads the first 8 bytes of a request in its slot. They are written with one store: on a shared ring, a dispatcher
/// may read them while another thread writes or answers the request.
CUDAQ_REALTIME_HOST_DEVICE inline std::uint64_t load_first_word(const std::uint8_t *slot) {
  return load_acquire(*reinterpret_cast<const volatile std::uint64_t *>(slot));
}

/// Stores the word that load_first_word reads. Relaxed: the request's flag orders it.
CUDAQ_REALTIME_HOST_DEVICE inline void store_first_word(std::uint8_t *slot, std::uint64_t word) {
  store_relaxed(*reinterpret_cast<volatile std::uint64_t *>(slot), word);
}

// --- words of a frame in a slot ---
//
// A requester that breaks the protocol may write a slot while a dispatcher reads it. The compiler must make one access
// of each of these functions (on a CPU two, for 16 bytes): it may not load again later, when the word holds another
// value than the one that was checked. They order nothing: the slot's flag does.

/// Aligned to 16 in a frame, if the ring is.
struct alignas(16) word16 {
  std::uint32_t part[4];
};

/// Loads a word of a frame from its slot. Word: std::uint64_t or word16.
template <class Word>
CUDAQ_REALTIME_HOST_DEVICE inline Word load_frame(const std::uint8_t *at);
template <>
CUDAQ_REALTIME_HOST_DEVICE inline std::uint64_t load_frame(const std::uint8_t *at) {
  return load_relaxed(*reinterpret_cast<const volatile std::uint64_t *>(at));
}
template <>
CUDAQ_REALTIME_HOST_DEVICE inline word16 load_frame(const std::uint8_t *at) {
  word16 w;
#if defined(__CUDA_ARCH__)
  asm volatile("ld.relaxed.sys.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(w.part[0]), "=r"(w.part[1]), "=r"(w.part[2]), "=r"(w.part[3])
               : "l"(at)
               : "memory");
#else
  const std::uint64_t halves[2] = {load_frame<std::uint64_t>(at), load_frame<std::uint64_t>(at + 8)};
  std::memcpy(&w, halves, sizeof(w));
#endif
  return w;
}

/// Stores a word of a frame in its slot, or in other memory. On a device a plain store.
template <class Word>
CUDAQ_REALTIME_HOST_DEVICE inline void store_frame(std::uint8_t *at, const Word &word) {
#if defined(__CUDA_ARCH__)
  *reinterpret_cast<Word *>(at) = word;
#else
  if constexpr (sizeof(Word) == 16) {
    std::uint64_t halves[2];
    std::memcpy(halves, &word, sizeof(word));
    store_relaxed(*reinterpret_cast<volatile std::uint64_t *>(at), halves[0]);
    store_relaxed(*reinterpret_cast<volatile std::uint64_t *>(at + 8), halves[1]);
  } else {
    store_relaxed(*reinterpret_cast<volatile Word *>(at), word);
  }
#endif
}

// --- stores of a CPU to device memory (CUDAQ_MEMORY_DEVICE_RX) ---

//
// The fences order accesses to memory with a write-combining mapping, whose stores leave the CPU in any order. No order
// of the language reaches that memory: a release store is a plain store on x86-64.

/// What the CPU sends to write-combining memory as one write, if all of it is stored at once.
inline constexpr std::size_t kLineBytes = 64;

/// All stores before it reach their memory before all stores after it, also in write-combining memory.
inline void fence_posted_stores() {
#if defined(__x86_64__)
  _mm_sfence();
#elif defined(__aarch64__)
  asm volatile("dmb oshst" ::: "memory");
#else
#error "fence_posted_stores: a processor without a known fence"
#endif
}

/// All loads before it are done before all loads after it, also of write-combining memory.
inline void fence_posted_loads() {
#if defined(__x86_64__)
  _mm_lfence();
#else
  asm volatile("dmb oshld" ::: "memory");
#endif
}

/// Stores one line, past the caches. `to`: aligned to kLineBytes. Orders nothing.
inline void store_line(std::uint8_t *to, const std::uint8_t *from) {
#if defined(__x86_64__)
  for (std::size_t at = 0; at < kLineBytes; at += sizeof(__m128i)) {
    __m128i part;
    std::memcpy(&part, from + at, sizeof(part));
    _mm_stream_si128(reinterpret_cast<__m128i *>(to + at), part);
  }
#else
  std::memcpy(to, from, kLineBytes);
#endif
}

} // namespace cudaq::realtime::detail
