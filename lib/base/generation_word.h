// SPDX-License-Identifier: Apache-2.0
// Generation and phase of the request in a slot, in one word: a claim takes exactly the request that it names, in
// exactly the phase that it names. A claim that comes too late finds another generation or another phase and changes
// nothing.
//
// A slot's word with 4 bits for the phases open = 0, queued = 1, deferred = 2:
//
//   start_at(7)                             0x70    generation 7, open
//   enter(queued)                           0x71    generation 7, queued
//   claim(7, queued, deferred)     true     0x72    generation 7, deferred
//   claim(7, queued, deferred)     false    0x72    not queued any more
//   enter(open), finish()                   0x80    generation 8, open: the slot may take the next request
//   claim(7, deferred, open)       false    0x80    request 7 is gone
#pragma once

#include "cudaq/realtime/detail/base/flag_word.h"

#include <cstdint>
#include <type_traits>

namespace cudaq::realtime::detail {

/// Phase: an enum; Phase{} is the phase of a slot that has no request. The word keeps the lower 64 - kPhaseBits bits of
/// a generation: generations that differ in the upper bits only are the same one here. Of those that count up by one
/// per request, the first comes round after 2^(64 - kPhaseBits) requests of its slot.
///
/// Who may call what: look, phase and generation from any thread; they see what was written before the step that they
/// find. start_at, enter and finish store without looking whether the word has changed: for the one thread that has the
/// request, and only in a phase from which no other thread claims it. claim from any thread: of several that want the
/// same step one gets it, and sees what was written before the phase that it found.
template <class Phase, unsigned kPhaseBits>
class generation_word {
  static_assert(std::is_enum_v<Phase> && kPhaseBits > 0 && kPhaseBits < 64);

public:
  struct snapshot {
    std::uint64_t generation;
    Phase phase;
  };

  /// Users assert it of their last phase.
  static constexpr bool fits(Phase last) { return static_cast<std::uint64_t>(last) <= kPhaseMask; }

  snapshot look() const {
    const std::uint64_t word = word_.load();
    return {word >> kPhaseBits, static_cast<Phase>(word & kPhaseMask)};
  }
  Phase phase() const { return look().phase; }
  std::uint64_t generation() const { return look().generation; }

  /// A generation that the caller names.
  void start_at(std::uint64_t generation, Phase phase = Phase{}) { word_.store(pack(generation, phase)); }
  /// A step of the present generation that only the calling thread may take.
  void enter(Phase phase) { start_at(generation(), phase); }
  /// A step that several threads may want. False: the request is not this generation's, or not in `from`.
  bool claim(std::uint64_t generation, Phase from, Phase to) {
    return word_.claim(pack(generation, from), pack(generation, to));
  }
  /// The request has ended: from here the word is the next generation's, in phase Phase{}.
  void finish() { start_at(generation() + 1); }

private:
  static constexpr std::uint64_t kPhaseMask = (std::uint64_t{1} << kPhaseBits) - 1;
  static std::uint64_t pack(std::uint64_t generation, Phase phase) {
    return generation << kPhaseBits | static_cast<std::uint64_t>(phase);
  }
  shared_word<std::uint64_t> word_;
};

} // namespace cudaq::realtime::detail
