// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/datagram/peer_table.h"

#include <new>

namespace cudaq::realtime::detail {

peer_table::peer_table(std::uint32_t max_peers, std::chrono::milliseconds timeout)
    : timeout_(timeout), peers_(max_peers) {
  free_.reserve(max_peers);
  for (std::uint32_t i = max_peers; i-- > 0;)
    free_.push_back(i);
  by_address_.reserve(max_peers);
}

peer_table::found peer_table::find_or_add(const udp_address &from, time now) {
  std::uint32_t place = last_;
  if (place == kNoPeer || !(peers_[place].address == from)) {
    const auto at = by_address_.find(from);
    place = at == by_address_.end() ? kNoPeer : at->second;
  }
  if (place != kNoPeer && idle(peers_[place], now)) {
    forget(place);
    place = kNoPeer;
  }
  const bool is_new = place == kNoPeer;
  if (is_new)
    place = add(from, now);
  if (place != kNoPeer)
    peers_[place].last_seen = now;
  last_ = place;
  return {place, is_new};
}

std::uint32_t peer_table::add(const udp_address &from, time now) {
  // A search of all peers for each datagram of a refused one would take too long.
  if (free_.empty() && now >= next_sweep_) {
    for (std::uint32_t i = 0; i < peers_.size(); ++i)
      if (peers_[i].used && idle(peers_[i], now))
        forget(i);
    next_sweep_ = now + timeout_ / 8;
  }
  if (free_.empty())
    return kNoPeer;
  const std::uint32_t place = free_.back();
  try {
    by_address_.emplace(from, place);
  } catch (const std::bad_alloc &) {
    return kNoPeer;
  }
  free_.pop_back();
  peers_[place] = {from, now, peers_[place].generation + 1, 0, true};
  return place;
}

void peer_table::forget(std::uint32_t place) {
  by_address_.erase(peers_[place].address);
  peers_[place].used = false;
  free_.push_back(place);
  ++expired_;
}

} // namespace cudaq::realtime::detail
