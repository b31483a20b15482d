// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/server/decoder/held_slots.h"

#include "lib/qec/server/decoder/decoder_turn.h"

#include <algorithm>

namespace cudaq::qec::realtime {

void held_slots::limit(const transport_slots &slots, std::size_t streams) {
  if (slots.count == 0 || streams == 0)
    return;
  if (slots.in_ring_order) {
    holders_.resize(slots.count);
    transport_ = slots;
  }
  count_ = slots.count;
  max_ = slots.count / 2;
  max_of_one_ = max_ == 0 ? 0 : std::max<std::size_t>(max_ / streams, 1);
  last_ = slots.count - 1;
}

bool held_slots::is_near(std::uint32_t slot, std::uint32_t last) const noexcept {
  return !holders_.empty() && (last + count_ - slot) % count_ >= count_ - max_;
}

void held_slots::arrive(std::uint32_t slot) noexcept {
  if (slot >= count_ || max_ == 0 || holders_.empty()) // no lock for a transport without a ring order
    return;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (held_ == 0) {
    last_ = slot;
    return;
  }
  while (last_ != slot) { // requests that the server does not get have slots, too
    last_ = (last_ + 1) % count_;
    if (decoder_turn *const holder = holders_[(last_ + max_) % count_]; holder != nullptr)
      holder->note_progress();
  }
}

bool held_slots::take(std::uint32_t slot, std::size_t others, decoder_turn &decoder) noexcept {
  if (slot >= count_)
    return true;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (held_ == max_ || others >= max_of_one_ || is_near(slot, last_))
    return false;
  ++held_;
  if (!holders_.empty())
    holders_[slot] = &decoder;
  return true;
}

bool held_slots::is_wanted(std::uint32_t slot, bool polls) noexcept {
  if (slot >= count_)
    return false;
  const std::uint32_t next = polls && must_poll() ? transport_.next_slot(transport_.user) : count_;
  const std::lock_guard<std::mutex> lock(mutex_);
  return is_near(slot, last_) || (next < count_ && is_near(slot, (next + count_ - 1) % count_));
}

void held_slots::give_back(std::uint32_t slot) noexcept {
  if (slot >= count_)
    return;
  const std::lock_guard<std::mutex> lock(mutex_);
  --held_;
  if (!holders_.empty())
    holders_[slot] = nullptr;
}

} // namespace cudaq::qec::realtime
