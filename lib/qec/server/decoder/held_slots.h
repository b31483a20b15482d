// SPDX-License-Identifier: Apache-2.0
// The slots of the transport that requests hold while they wait for a round. A slot that is held is missing for all
// decoders of the server: at most half of the slots are, and each stream gets an equal part of these. A transport that
// fills its slots in ring order stops before one that is held, so there a wait also ends half a lap before that.
// Example: 8 slots in ring order, of which 4 may be held.
//
//   event                                   held   answer
//   a read in slot 6 waits                  6
//   requests in the slots 7, 0 and 1        6
//   a request in slot 2                     -      the read: busy. The slots 3, 4, 5 were free, and now 6 is, too
//
// A frame with an unknown function id has a slot, too, but the server does not get it. So a decoder that holds a slot
// in ring order looks from time to time how far the transport has come.
#pragma once

#include "lib/base/runner.h"

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace cudaq::qec::realtime {

class decoder_turn;

/// The slots of a transport.
struct transport_slots {
  std::uint32_t count = 0; ///< 0: not known, so there is no limit
  /// A request is in the slot after that of the request before it. Else in any slot that is free.
  bool in_ring_order = false;
  /// In ring order: the slot of the next request, after those without a handler, too; count or more: not known now.
  /// Called by any thread while a slot is held. Null: only requests of the server are seen.
  std::uint32_t (*next_slot)(void *user) = nullptr;
  void *user = nullptr;
};

/// Threads: limit before the first request; all others by any thread. A slot that the transport does not have, as that
/// of a request without a transport, is never refused and never wanted.
class held_slots {
public:
  /// `streams`: decoders whose requests may wait. Throws std::bad_alloc.
  void limit(const transport_slots &slots, std::size_t streams);
  /// A request has come in this slot. It wakes the decoder that holds a slot which is wanted from now on.
  void arrive(std::uint32_t slot) noexcept;

  // By the thread that has the decoder.
  /// `others`: slots that the decoder holds. False: it must not hold this one, too.
  [[nodiscard]] bool take(std::uint32_t slot, std::size_t others, decoder_turn &decoder) noexcept;
  /// Half a lap is left until the transport needs the slot. `polls`: how far the transport has come counts, too.
  /// Not at once: until the handler of this slot has returned, the position of the transport looks like a whole lap.
  [[nodiscard]] bool is_wanted(std::uint32_t slot, bool polls) noexcept;
  /// A slot may be wanted without a call of arrive() that wakes the decoder: it asks again and again.
  [[nodiscard]] bool must_poll() const noexcept { return transport_.next_slot != nullptr; }
  /// Of a slot that was taken, before its request is answered.
  void give_back(std::uint32_t slot) noexcept;

private:
  [[nodiscard]] bool is_near(std::uint32_t slot, std::uint32_t last) const noexcept;

  // Written by limit only.
  transport_slots transport_;
  std::uint32_t count_ = 0, max_ = 0;   ///< slots; of these, that may be held
  std::size_t max_of_one_ = 0;          ///< that one decoder may hold
  std::mutex mutex_;                    ///< protects the members below
  std::vector<decoder_turn *> holders_; ///< of each slot; empty without a ring order: only limit changes its size
  std::uint32_t held_ = 0;
  std::uint32_t last_ = 0; ///< slot of the last request
};

} // namespace cudaq::qec::realtime
