// SPDX-License-Identifier: Apache-2.0
// Copies of frames by several threads, with 8 loads per thread in flight: a read of host memory takes about 1.2 us,
// however many are in flight.
#pragma once

#include "cudaq/realtime/detail/base/slot_memory.h"
#include "cudaq/realtime/detail/loop/thread_group.h"
#include "cudaq/realtime/detail/ring/frame.h"

namespace cudaq::realtime::detail {

/// Writes the word with one store. Not for shared memory.
CUDAQ_REALTIME_HOST_DEVICE inline void store_word16(std::uint8_t *to, const word16 &w) {
#if defined(__CUDA_ARCH__)
  __stcg(reinterpret_cast<uint4 *>(to), make_uint4(w.part[0], w.part[1], w.part[2], w.part[3]));
#else
  store_frame(to, w);
#endif
}

/// What a copy reads. The words of a slot are loaded once each (load_frame).
enum class copied_from : std::uint32_t { staging, slot };

/// Rounds up to a multiple of 16.
CUDAQ_REALTIME_HOST_DEVICE constexpr std::uint32_t round16(std::uint32_t bytes) { return (bytes + 15) & ~15u; }

/// Copies `count` words; the calling thread is number `rank` of `size`. Both sides are aligned to the word.
template <class Word, copied_from kFrom>
CUDAQ_REALTIME_HOST_DEVICE inline void copy_words(std::uint8_t *to, const std::uint8_t *from, std::uint32_t count,
                                                  std::uint32_t rank, std::uint32_t size) {
  constexpr std::uint32_t kInFlight = 8;
  const auto *src = reinterpret_cast<const Word *>(from);
  for (std::uint32_t base = rank; base < count; base += kInFlight * size) {
    Word held[kInFlight];
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
    for (std::uint32_t u = 0; u < kInFlight; ++u)
      if (base + u * size < count)
        held[u] = kFrom == copied_from::slot ? load_frame<Word>(from + std::size_t{base + u * size} * sizeof(Word))
                                             : src[base + u * size];
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
    for (std::uint32_t u = 0; u < kInFlight; ++u)
      if (base + u * size < count)
        store_frame(to + std::size_t{base + u * size} * sizeof(Word), held[u]);
  }
}

/// Copies exactly `bytes` bytes from a place that only this dispatcher writes. `aligned16`: both sides are aligned to
/// 16, else to 8.
CUDAQ_REALTIME_OUT_OF_LINE inline void copy_bytes(std::uint8_t *to, const std::uint8_t *from, std::uint32_t bytes,
                                                  bool aligned16, std::uint32_t rank, std::uint32_t size) {
  const std::uint32_t word = aligned16 ? 16 : 8, whole = bytes / word;
  if (aligned16)
    copy_words<word16, copied_from::staging>(to, from, whole, rank, size);
  else
    copy_words<std::uint64_t, copied_from::staging>(to, from, whole, rank, size);
  for (std::uint32_t i = whole * word + rank; i < bytes; i += size)
    to[i] = from[i];
}

/// Copies the first `bytes` bytes of a request from its slot: a whole number of words.
CUDAQ_REALTIME_OUT_OF_LINE inline void copy_request(std::uint8_t *to, const std::uint8_t *slot, std::uint32_t bytes,
                                                    bool aligned16, std::uint32_t rank, std::uint32_t size) {
  if (aligned16)
    copy_words<word16, copied_from::slot>(to, slot, bytes / 16, rank, size);
  else
    copy_words<std::uint64_t, copied_from::slot>(to, slot, bytes / 8, rank, size);
}

} // namespace cudaq::realtime::detail
