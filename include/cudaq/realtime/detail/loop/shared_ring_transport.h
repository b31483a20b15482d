// SPDX-License-Identifier: Apache-2.0
// Transports for a ring that a kernel shares with other dispatchers; ring_transport.h describes the members. Neither
// transport drops or answers a request of another dispatcher.
#pragma once

#include "cudaq/realtime/daemon/dispatcher/rpc_wire_format.h"
#include "cudaq/realtime/detail/base/slot_memory.h"
#include "cudaq/realtime/detail/loop/ring_transport.h"
#include "cudaq/realtime/detail/ring/frame.h"
#include "cudaq/realtime/detail/ring/function_index.h"
#include "cudaq/realtime/detail/ring/ring_inbox.h"

namespace cudaq::realtime::detail {

/// The host's router puts our requests into an inbox, in order. A look reads the inbox instead of the flags, and the
/// kernel reads nothing of the requests of other dispatchers.
template <class Group>
class inbox_transport : public ring_transport<Group, thread_scope_system> {
  using base = ring_transport<Group, thread_scope_system>;
  using base::ring_;

public:
  struct message : base::message {
    std::uint64_t sequence = 0;
  };
  static constexpr bool kSlotsInOrder = false;
  static constexpr std::uint32_t kLooked = 32; ///< size of looked_: the slots of the last look, by message

  /// `looked`: kLooked words that the group shares. `first`: the first sequence of the router.
  CUDAQ_REALTIME_HOST_DEVICE inbox_transport(const slot_ring &r, const ring_inbox &inbox, std::uint32_t *looked,
                                             std::uint64_t first = 1)
      : base(r, 0), inbox_(inbox), looked_(looked), sequence_(first) {}

  CUDAQ_REALTIME_HOST_DEVICE bool poll(std::uint32_t k, message &m) const {
    m.sequence = ring_inbox::after(sequence_, k);
    if (!inbox_.taken(base::slot_at(k), m.sequence, m.slot))
      return false;
    looked_[k] = m.slot;
    return true;
  }
  CUDAQ_REALTIME_HOST_DEVICE static bool expected(const message &) { return true; } // the router has checked the flag
  CUDAQ_REALTIME_HOST_DEVICE message at(std::uint32_t k) const {
    return {{looked_[k], 0}, ring_inbox::after(sequence_, k)};
  }
  CUDAQ_REALTIME_HOST_DEVICE void send(const message &m) const {
    base::send(m);
    inbox_.post_answered(m.slot, m.sequence);
  }
  CUDAQ_REALTIME_HOST_DEVICE void discard(const message &m) const {
    base::discard(m);
    inbox_.post_answered(m.slot, m.sequence);
  }
  CUDAQ_REALTIME_HOST_DEVICE void advance(std::uint32_t n) {
    base::advance(n);
    sequence_ = ring_inbox::after(sequence_, n);
  }
  CUDAQ_REALTIME_HOST_DEVICE typename base::frames front(const message &) const { return base::frames_of(looked_[0]); }
  CUDAQ_REALTIME_HOST_DEVICE void send_front(const message &m) const { send(m); }
  CUDAQ_REALTIME_HOST_DEVICE std::uint32_t precompute_next() const { return base::slot_at(1); }
  CUDAQ_REALTIME_HOST_DEVICE void advance_one() { advance(1); }
  /// Nothing to do: the router does this.
  CUDAQ_REALTIME_HOST_DEVICE static bool seek() { return false; }

private:
  ring_inbox inbox_;
  std::uint32_t *looked_;
  std::uint64_t sequence_; ///< sequence of the entry at the cursor; the cursor is a position in the inbox
};

/// No router: the kernel reads the flags and headers of all requests, and takes those of its functions. A slot that
/// another dispatcher has served and the producer has refilled looks unchanged. So the order of requests is certain
/// only if no slot is refilled in the meantime.
template <class Group>
class leaving_transport : public ring_transport<Group, thread_scope_system> {
  using base = ring_transport<Group, thread_scope_system>;
  using base::ring_;

public:
  using typename base::message;
  static constexpr bool kSlotsInOrder = false;
  static constexpr std::uint32_t kSeekPolls = 1; ///< another dispatcher may keep the cursor's slot for long

  CUDAQ_REALTIME_HOST_DEVICE leaving_transport(const slot_ring &r, std::uint32_t first,
                                               const function_index_view &index, std::uint32_t served_modes)
      : base(r, first), index_(index), served_modes_(served_modes) {}

  /// One slot per look: the next one may belong to another dispatcher.
  CUDAQ_REALTIME_HOST_DEVICE static std::uint32_t window() { return 1; }
  CUDAQ_REALTIME_HOST_DEVICE bool poll(std::uint32_t k, message &m) const {
    return base::poll(k, m) && is_ours(m.slot);
  }
  CUDAQ_REALTIME_HOST_DEVICE bool seek() {
    return base::seek_by([this](std::uint32_t k, message &m) { return poll(k, m); },
                         [](std::uint32_t) { return false; });
  }

private:
  /// Magic and function id are written with one store. They may belong to a request that another dispatcher is
  /// answering, or to one that is not signalled yet. If they are ours, no other dispatcher changes them: then a flag
  /// that is read as set after them belongs to their request.
  CUDAQ_REALTIME_HOST_DEVICE bool is_ours(std::uint32_t slot) const {
    const std::uint64_t first = load_first_word(ring_.rx_slot(slot));
    return static_cast<std::uint32_t>(first) == CUDAQ_RPC_MAGIC_REQUEST &&
           index_.serves(static_cast<std::uint32_t>(first >> 32), served_modes_) && ring_.ready(slot) != 0;
  }

  function_index_view index_;
  std::uint32_t served_modes_;
};

} // namespace cudaq::realtime::detail
