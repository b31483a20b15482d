// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/datagram/peer_windows.h"

#include <algorithm>

namespace cudaq::realtime::detail {

peer_windows::peer_windows(std::uint32_t window, std::uint32_t max_peers, std::uint32_t slot_size,
                           std::chrono::milliseconds timeout, datagram_counters &counters)
    : window_(window), slot_size_(slot_size), counters_(counters), table_(max_peers, timeout), ids_(max_peers),
      entries_(std::size_t{max_peers} * window),
      answers_(new std::uint8_t[std::size_t{max_peers} * window * slot_size]) {} // not touched: no memory until used

peer_windows::found peer_windows::find(const udp_address &from, std::uint32_t id, std::uint64_t content, time now) {
  const std::uint32_t index = peer_of(from, now);
  if (index == request_key::kNoPeer)
    return {window_finding::no_room, {}, {}};
  const peer_ids &p = ids_[index];
  const request_key key{index, table_.generation(index), id};
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
  peer_ids &p = ids_[key.peer];
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
  table_.hold(key.peer);
}

peer_windows::entry *peer_windows::end(const request_key &key) {
  if (key.peer == request_key::kNoPeer || table_.generation(key.peer) != key.generation)
    return nullptr;
  table_.release(key.peer);
  return ids_[key.peer].newest - key.id < window_ ? &entry_of(key.peer, key.id) : nullptr;
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
  const auto [place, is_new] = table_.find_or_add(from, now);
  if (is_new) {
    if (place != request_key::kNoPeer) {
      ids_[place] = {};
      clear_window(place);
    }
    counters_.peers.store(table_.count());
    counters_.peers_expired.bump(table_.expired() - counters_.peers_expired.value());
  }
  return place;
}

void peer_windows::clear_window(std::uint32_t index) {
  const auto first = entries_.begin() + static_cast<std::ptrdiff_t>(std::size_t{index} * window_);
  std::fill(first, first + window_, entry{});
}

} // namespace cudaq::realtime::detail
