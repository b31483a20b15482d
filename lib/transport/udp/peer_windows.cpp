// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/udp/peer_windows.h"

#include <algorithm>

namespace cudaq::realtime::detail {

peer_windows::peer_windows(std::uint32_t window, std::uint32_t max_peers, std::uint32_t slot_size,
                           std::chrono::milliseconds timeout, udp_counters &counters)
    : window_(window), slot_size_(slot_size), timeout_(timeout), counters_(counters), peers_(max_peers),
      entries_(std::size_t{max_peers} * window),
      answers_(new std::uint8_t[std::size_t{max_peers} * window * slot_size]) { // not touched: no memory until used
  free_.reserve(max_peers);
  for (std::uint32_t i = max_peers; i-- > 0;)
    free_.push_back(i);
  by_address_.reserve(max_peers);
}

peer_windows::found peer_windows::find(const udp_address &from, std::uint32_t id, std::uint64_t content, time now) {
  const std::uint32_t index = peer_of(from, now);
  if (index == request_key::kNoPeer)
    return {window_finding::no_room, {}, {}};
  const peer &p = peers_[index];
  const request_key key{index, p.generation, id};
  if (!p.any || static_cast<std::int32_t>(id - p.newest) > 0)
    return {window_finding::fresh, key, {}};
  if (p.newest - id >= window_)
    return {window_finding::stale, key, {}};
  const entry &e = entry_of(index, id);
  if (e.phase == state::unseen)
    return {window_finding::fresh, key, {}};
  if (e.content != content)
    return {window_finding::reused, key, {}};
  if (e.phase == state::answered)
    return {window_finding::answered, key, {answer_of(index, id), e.length}};
  return {e.phase == state::executing ? window_finding::executing : window_finding::closed, key, {}};
}

void peer_windows::begin(const request_key &key, std::uint64_t content) {
  peer &p = peers_[key.peer];
  if (!p.any) {
    p.any = true;
    p.newest = key.id;
  } else if (static_cast<std::int32_t>(key.id - p.newest) > 0) {
    if (key.id - p.newest >= window_)
      clear_window(key.peer);
    else
      for (std::uint32_t id = p.newest + 1; id != key.id; ++id)
        entry_of(key.peer, id).phase = state::unseen;
    p.newest = key.id;
  } else {
    counters_.reordered.bump();
  }
  entry_of(key.peer, key.id) = {content, 0, state::executing};
  ++p.in_flight;
}

peer_windows::entry *peer_windows::end(const request_key &key) {
  if (key.peer == request_key::kNoPeer || peers_[key.peer].generation != key.generation)
    return nullptr;
  peer &p = peers_[key.peer];
  --p.in_flight;
  return p.newest - key.id < window_ ? &entry_of(key.peer, key.id) : nullptr;
}

void peer_windows::keep(const request_key &key, std::span<const std::uint8_t> answer) {
  entry *const e = end(key);
  if (e == nullptr)
    return;
  std::copy(answer.begin(), answer.end(), answer_of(key.peer, key.id));
  e->length = static_cast<std::uint32_t>(answer.size());
  e->phase = state::answered;
}

void peer_windows::close(const request_key &key) {
  if (entry *const e = end(key))
    e->phase = state::closed;
}

std::uint32_t peer_windows::peer_of(const udp_address &from, time now) {
  std::uint32_t index = last_;
  if (index == request_key::kNoPeer || !(peers_[index].address == from)) {
    const auto at = by_address_.find(from);
    index = at == by_address_.end() ? request_key::kNoPeer : at->second;
  }
  if (index != request_key::kNoPeer && idle(peers_[index], now)) {
    forget(index);
    index = request_key::kNoPeer;
  }
  if (index == request_key::kNoPeer)
    index = add_peer(from, now);
  if (index != request_key::kNoPeer)
    peers_[index].last_seen = now;
  last_ = index;
  return index;
}

std::uint32_t peer_windows::add_peer(const udp_address &from, time now) {
  // A search of all peers for each datagram of a refused one would take too long.
  if (free_.empty() && now >= next_sweep_) {
    for (std::uint32_t i = 0; i < peers_.size(); ++i)
      if (peers_[i].used && idle(peers_[i], now))
        forget(i);
    next_sweep_ = now + timeout_ / 8;
  }
  if (free_.empty())
    return request_key::kNoPeer;
  const std::uint32_t index = free_.back();
  try {
    by_address_.emplace(from, index);
  } catch (const std::bad_alloc &) {
    return request_key::kNoPeer;
  }
  free_.pop_back();
  peer &p = peers_[index];
  p = {from, now, p.generation + 1, 0, 0, false, true};
  clear_window(index);
  counters_.peers.store(peers_.size() - free_.size());
  return index;
}

void peer_windows::forget(std::uint32_t index) {
  by_address_.erase(peers_[index].address);
  peers_[index].used = false;
  free_.push_back(index);
  counters_.peers_expired.bump();
  counters_.peers.store(peers_.size() - free_.size());
}

void peer_windows::clear_window(std::uint32_t index) {
  const auto first = entries_.begin() + static_cast<std::ptrdiff_t>(std::size_t{index} * window_);
  std::fill(first, first + window_, entry{});
}

} // namespace cudaq::realtime::detail
