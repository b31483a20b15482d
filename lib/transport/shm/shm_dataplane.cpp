// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/shm/shm_dataplane.h"

namespace cudaq::realtime::detail {
namespace {

constexpr std::uint32_t kPollsBeforeSeek = 256; // as the host path does on a ring
constexpr std::uint32_t kSlotsOfASeek = 128;
constexpr std::uint32_t kPollsBeforeScan = 64; // for dropped requests of dead clients: other clients wait meanwhile
constexpr std::uint32_t kSlotsOfAScan = 64;
constexpr std::uint32_t kPollsBeforeSleep = 2000; // some tens of microseconds

} // namespace

shm_dataplane::shm_dataplane(setup s)
    : s_(std::move(s)), rings_(s_.clients), flags_(std::size_t{s_.clients} * s_.span, 0),
      held_(std::size_t{s_.clients} * s_.span, 0) {
  listed_.reserve(rings_.size());
  for (std::uint32_t k = 0; k < s_.clients; ++k) {
    rings_[k].segment = s_.base + k * s_.window;
    rings_[k].first = k * s_.span;
  }
}

void shm_dataplane::set_phase(std::uint32_t k, ring_phase to) {
  rings_[k].phase.store(static_cast<std::uint32_t>(to));
  changes_.add(1);
}

void shm_dataplane::open(std::uint32_t k, bool rings_bell) {
  rings_[k].rings_bell = rings_bell;
  set_phase(k, ring_phase::open);
}

volatile std::uint64_t &shm_dataplane::rx_flag(const client_ring &r, std::uint32_t i) const {
  return reinterpret_cast<volatile std::uint64_t *>(r.segment + s_.layout.rx_flags)[i];
}

volatile std::uint64_t &shm_dataplane::tx_flag(const client_ring &r, std::uint32_t i) const {
  return reinterpret_cast<volatile std::uint64_t *>(r.segment + s_.layout.tx_flags)[i];
}

/// Makes the list of the rings to look at, and settles those whose clients are gone.
void shm_dataplane::read_phases() {
  const std::uint32_t seen = changes_.load();
  const bool scans = any_leaving_ && ++polls_leaving_ % kPollsBeforeScan == 0;
  if (seen == changes_seen_ && !scans)
    return;
  changes_seen_ = seen;
  any_leaving_ = false;
  listed_.clear();
  for (client_ring &r : rings_) {
    const auto phase = static_cast<ring_phase>(r.phase.load());
    if (phase == ring_phase::open && !r.is_listed) {
      r.is_listed = true;
      r.cursor = r.sought = 0;
    }
    if (phase == ring_phase::leaving) {
      if (scans)
        collect_some_dropped(r);
      settle(r);
      any_leaving_ |= r.is_listed;
    }
    if (r.is_listed)
      listed_.push_back(&r);
  }
}

/// For a ring that is leaving. Most dropped requests are found in the poll after they were taken, and answered ones by
/// tx_publish. This finds the others.
void shm_dataplane::collect_some_dropped(client_ring &r) {
  for (std::uint32_t n = 0; r.held != 0 && n < kSlotsOfAScan; ++n) {
    r.sought = next(r.sought);
    collect_dropped(r, r.sought);
  }
}

/// For a ring that is leaving: gives it to the server if the loop holds nothing of it.
void shm_dataplane::settle(client_ring &r) {
  if (r.held != 0)
    return;
  r.is_listed = false;
  r.phase.store(static_cast<std::uint32_t>(ring_phase::settled));
  changes_.add(1); // the list is made again
  s_.settled();
}

/// Frees slot i if the loop has dropped its request.
void shm_dataplane::collect_dropped(client_ring &r, std::uint32_t i) {
  const std::uint32_t number = r.first + i;
  if (held_[number] == 0 || load_acquire(flags_[number]) != 0)
    return;
  held_[number] = 0;
  --r.held, --total_held_;
  store_release<std::uint64_t>(rx_flag(r, i), 0);
}

bool shm_dataplane::take(client_ring &r, std::uint32_t &slot) {
  const std::uint32_t i = r.cursor, number = r.first + i;
  if (held_[number] != 0) { // once round the ring
    collect_dropped(r, i);
    if (held_[number] != 0)
      return false;
  }
  if (load_acquire(rx_flag(r, i)) == 0)
    return false;
  if (load_acquire(tx_flag(r, i)) != 0) // only a client that breaks the protocol signals before it has collected
    return false;
  if (static_cast<ring_phase>(r.phase.peek()) != ring_phase::open)
    return false;
  r.sought = 0;
  held_[number] = 1;
  store_relaxed<std::uint64_t>(flags_[number], 1);
  ++r.held, ++total_held_;
  r.cursor = next(i);
  slot = number;
  return true;
}

/// Moves the cursor to a request that a client has put out of order (docs/ring_protocol.md section 6). Reads a
/// bounded number of slots, and goes on in the next call. It ends at a slot in flight: the client fills the slots
/// before that one first.
void shm_dataplane::seek(client_ring &r) {
  for (std::uint32_t n = 0; n < kSlotsOfASeek; ++n) {
    const std::uint32_t i = (r.cursor + r.sought) % s_.layout.num_slots;
    collect_dropped(r, i); // a request that was dropped later than before the next poll is not in flight
    const bool in_flight = held_[r.first + i] != 0, ready = !in_flight && load_acquire(rx_flag(r, i)) != 0;
    if (ready || in_flight || r.sought + 1 == s_.layout.num_slots) {
      while (ready && r.cursor != i && load_acquire(rx_flag(r, r.cursor)) == 0) // the second read
        r.cursor = next(r.cursor);
      r.sought = 0;
      return;
    }
    ++r.sought;
  }
}

bool shm_dataplane::any_ready() const {
  for (const client_ring *r : listed_)
    if (load_acquire(rx_flag(*r, r->cursor)) != 0)
      return true;
  return changes_.load() != changes_seen_;
}

void shm_dataplane::after_empty_poll() {
  ++empty_polls_;
  if (empty_polls_ % kPollsBeforeSeek == 0)
    for (client_ring *r : listed_)
      seek(*r);
  // While the loop holds a request, it has other work than to wait for the next one.
  if (s_.wait_ns != 0 && total_held_ == 0 && empty_polls_ >= kPollsBeforeSleep) {
    s_.bell->sleep(s_.wait_ns, [this] { return any_ready(); });
    empty_polls_ = kPollsBeforeSleep - kPollsBeforeSeek; // then one seek of the rings in this many polls
  }
}

cudaq_rx_status_t shm_dataplane::rx_poll(std::uint32_t *out_slot) {
  if (last_ != kNone) {
    client_ring &r = rings_[last_ / s_.span];
    collect_dropped(r, last_ % s_.span);
    if (static_cast<ring_phase>(r.phase.load()) == ring_phase::leaving)
      settle(r);
    last_ = kNone;
  }
  read_phases();
  const std::size_t count = listed_.size();
  for (std::size_t n = 0; n < count; ++n) {
    if (turn_ >= count)
      turn_ = 0;
    client_ring &r = *listed_[turn_++];
    if (!take(r, *out_slot))
      continue;
    last_ = *out_slot;
    empty_polls_ = 0;
    return CUDAQ_RX_READY;
  }
  after_empty_poll();
  return CUDAQ_RX_EMPTY;
}

cudaq_status_t shm_dataplane::tx_publish(std::uint32_t slot) {
  if (slot >= held_.size() || held_[slot] == 0)
    return CUDAQ_ERR_INVALID_ARG;
  client_ring &r = rings_[slot / s_.span];
  const std::uint32_t i = slot % s_.span;
  held_[slot] = 0;
  store_relaxed<std::uint64_t>(flags_[slot], 0);
  --r.held, --total_held_;
  if (slot == last_)
    last_ = kNone;
  if (static_cast<ring_phase>(r.phase.load()) != ring_phase::open) {
    if (r.is_listed)
      settle(r);
    return CUDAQ_OK;
  }
  // An offset, because a client need not know the addresses of this process.
  store_release<std::uint64_t>(tx_flag(r, i), s_.layout.tx_data + i * s_.layout.stride);
  store_release<std::uint64_t>(rx_flag(r, i), 0);
  if (r.rings_bell)
    reinterpret_cast<shm_head *>(r.segment)->answers.ring();
  return CUDAQ_OK;
}

} // namespace cudaq::realtime::detail
