// SPDX-License-Identifier: Apache-2.0
#include "lib/api/ring_claims.h"

#include "cudaq/realtime/detail/ring/ring_record.h"
#include "lib/api/validation.h"

#include <cinttypes>

namespace cudaq::realtime::detail {
namespace {

std::uintptr_t address_of(const volatile void *p) { return reinterpret_cast<std::uintptr_t>(p); }

} // namespace

memory_claim::memory_claim(const cudaq_ringbuffer_t *ring, std::uint32_t known_slots, const volatile void *shared_ring,
                           const volatile int *shutdown_flag, const std::uint64_t *stats)
    : shared_ring_(shared_ring) {
  if (ring != nullptr) {
    add_ring(*ring, known_slots);
    ring_record *record = find_record(ring->rx_flags_host);
    record = record != nullptr ? record : find_record(ring->tx_flags_host);
    owner_word_ = record != nullptr ? &record->owner : nullptr;
  }
  ranges_[8] = {"shutdown_flag", address_of(shutdown_flag), sizeof(*shutdown_flag)};
  ranges_[9] = {"stats", address_of(stats), sizeof(*stats)};
}

void memory_claim::add_ring(const cudaq_ringbuffer_t &r, std::uint64_t num_slots) {
  const std::uint64_t flags = num_slots * sizeof(std::uint64_t), rx = num_slots * r.rx_stride_sz;
  const std::uint64_t tx = r.tx_stride_sz == 0 ? rx : num_slots * r.tx_stride_sz;
  const struct {
    const char *field;
    const volatile void *base;
    std::uint64_t bytes;
  } arrays[8] = {{"ringbuffer->rx_flags_host", r.rx_flags_host, flags},
                 {"ringbuffer->tx_flags_host", r.tx_flags_host, flags},
                 {"ringbuffer->rx_data_host", r.rx_data_host, rx},
                 {"ringbuffer->tx_data_host", r.tx_data_host, tx},
                 {"ringbuffer->rx_flags", r.rx_flags, flags},
                 {"ringbuffer->tx_flags", r.tx_flags, flags},
                 {"ringbuffer->rx_data", r.rx_data, rx},
                 {"ringbuffer->tx_data", r.tx_data, tx}};
  for (std::size_t a = 0; a < 8; ++a)
    ranges_[a] = {arrays[a].field, address_of(arrays[a].base), arrays[a].base == nullptr ? 0 : arrays[a].bytes, true};
}

expected<> memory_claim::check_against(const memory_claim &other) const {
  const bool members = shared_ring_ != nullptr && shared_ring_ == other.shared_ring_;
  for (const range &mine : ranges_)
    for (const range &theirs : other.ranges_) {
      if (mine.bytes == 0 || theirs.bytes == 0 || (members && mine.of_ring && theirs.of_ring))
        continue;
      if (mine.begin - theirs.begin >= theirs.bytes && theirs.begin - mine.begin >= mine.bytes)
        continue;
      return make_reason(CUDAQ_ERR_STATE,
                         "%s is 0x%" PRIxPTR " (%" PRIu64 " bytes) and overlaps %s, 0x%" PRIxPTR " (%" PRIu64
                         " bytes), of another dispatcher that runs; stop that one first, or give each its own memory",
                         mine.field, mine.begin, mine.bytes, theirs.field, theirs.begin, theirs.bytes);
    }
  return {};
}

expected<> ring_claims::add(const void *who, const memory_claim &what) {
  for (const auto &[other, claim] : claims_)
    if (other != who)
      if (expected<> result = what.check_against(claim); result.failed())
        return result;
  claims_.insert_or_assign(who, what);
  shared_word<std::uint64_t> *owner = what.owner_word();
  if (owner == nullptr || owner->claim(0, address_of(this)) || owner->load() == address_of(this))
    return {};
  claims_.erase(who);
  if (owner->load() == kOwnerLeftAGraph)
    return make_reason(CUDAQ_ERR_STATE, "a graph that a loop has left may still write to the ring; make another ring");
  return make_reason(CUDAQ_ERR_STATE,
                     "the ring belongs to a running dispatcher of another manager; stop that one first. Dispatchers "
                     "that share a ring must have the same manager");
}

void ring_claims::remove(const void *who) {
  const auto found = claims_.find(who);
  if (found == claims_.end())
    return;
  shared_word<std::uint64_t> *owner = found->second.owner_word();
  claims_.erase(found);
  for (const auto &[other, claim] : claims_)
    if (claim.owner_word() == owner)
      return;
  if (owner != nullptr)
    owner->store(0);
}

void ring_claims::leave_to_a_graph() {
  for (const auto &[who, claim] : claims_)
    if (claim.owner_word() != nullptr)
      claim.owner_word()->store(kOwnerLeftAGraph);
  claims_.clear();
}

} // namespace cudaq::realtime::detail
