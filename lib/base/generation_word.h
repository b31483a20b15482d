// SPDX-License-Identifier: Apache-2.0
// Generation and phase of the request in a slot, in one word. A claim names a generation and a phase, and succeeds only
// if the word holds both. A claim that comes too late finds another generation or another phase and changes nothing.
//
// A slot's word with the phases open = 0, queued = 1, deferred = 2:
//
//   start_at(7)                             0x70    generation 7, open
//   enter(queued)                           0x71    generation 7, queued
//   claim(7, queued, deferred)     true     0x72    generation 7, deferred
//   claim(7, queued, deferred)     false    0x72    the phase is no longer queued
//   enter(open), finish()                   0x80    generation 8, open: the slot may take the next request
//   claim(7, deferred, open)       false    0x80    request 7 has ended
#pragma once

#include "cudaq/realtime/detail/base/shared_word.h"

#include <cstdint>
#include <type_traits>

namespace cudaq::realtime::detail {

/// Phase is an enum with at most 16 values; Phase{} is the phase of a slot without a request. The word keeps the lower
/// 60 bits of a generation: generations that differ only in the upper bits count as equal. If generations count up by
/// one per request, a value returns after 2^60 requests of the slot.
///
/// Which thread may call which function:
///   load, phase, generation   Any thread. The caller sees everything written before the step that set the value.
///   start_at, enter, finish   Only the thread that has the request, and only in a phase from which no other thread
///                             claims it: they store without checking whether the word has changed.
///   claim                     Any thread. Of several threads that claim the same step one succeeds. It sees all writes
///                             made before the phase that it found.
template <class Phase>
class generation_word {
  static_assert(std::is_enum_v<Phase>);

public:
  struct snapshot {
    std::uint64_t generation;
    Phase phase;
  };

  /// True if the word can hold `last`. Users assert this for their last phase.
  static constexpr bool fits(Phase last) { return static_cast<std::uint64_t>(last) <= kPhaseMask; }

  snapshot load() const {
    const std::uint64_t word = word_.load();
    return {word >> kPhaseBits, static_cast<Phase>(word & kPhaseMask)};
  }
  Phase phase() const { return load().phase; }
  std::uint64_t generation() const { return load().generation; }

  /// Sets the generation and the phase.
  void start_at(std::uint64_t generation, Phase phase = Phase{}) { word_.store(pack(generation, phase)); }
  /// A step that only the calling thread may take. The generation stays.
  void enter(Phase phase) { start_at(generation(), phase); }
  /// A step that several threads may try. False: the word holds another generation, or another phase than `from`.
  bool claim(std::uint64_t generation, Phase from, Phase to) {
    return word_.claim(pack(generation, from), pack(generation, to));
  }
  /// Ends the request. The word then holds the next generation in phase Phase{}.
  void finish() { start_at(generation() + 1); }

private:
  static constexpr unsigned kPhaseBits = 4;
  static constexpr std::uint64_t kPhaseMask = (std::uint64_t{1} << kPhaseBits) - 1;
  static std::uint64_t pack(std::uint64_t generation, Phase phase) {
    return generation << kPhaseBits | static_cast<std::uint64_t>(phase);
  }
  shared_word<std::uint64_t> word_;
};

} // namespace cudaq::realtime::detail
