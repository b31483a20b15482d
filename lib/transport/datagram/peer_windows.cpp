// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/datagram/peer_windows.h"

namespace cudaq::realtime::detail {

std::optional<peer_windows::found> peer_windows::find(const udp_address &from, std::uint32_t id, std::uint64_t content,
                                                      time now) {
  const auto [peer, is_new] = table_.find_or_add(from, now);
  if (is_new) {
    if (peer != request_key::kNoPeer) {
      requests_.restart(peer);
      counters_.newest.set(from); // before the count: who finds it counted finds its address, or a later one
    }
    counters_.peers.store(table_.count());
    counters_.peers_expired.bump(table_.expired() - counters_.peers_expired.value());
  }
  if (peer == request_key::kNoPeer)
    return {};
  const auto [state, answer] = requests_.find(peer, id, content);
  return found{{peer, table_.generation(peer), id}, state, answer};
}

void peer_windows::begin(const request_key &key, std::uint64_t content) {
  if (requests_.begin(key.peer, key.id, content))
    counters_.reordered.bump();
  table_.hold(key.peer);
}

bool peer_windows::release(const request_key &key) {
  if (key.peer == request_key::kNoPeer || table_.generation(key.peer) != key.generation)
    return false;
  table_.release(key.peer);
  return true;
}

void peer_windows::keep(const request_key &key, std::span<const std::uint8_t> answer) {
  if (release(key))
    requests_.keep(key.peer, key.id, answer);
}

void peer_windows::close(const request_key &key) {
  if (release(key))
    requests_.close(key.peer, key.id);
}

void peer_windows::forget(const request_key &key) {
  if (release(key))
    requests_.forget(key.peer, key.id);
}

} // namespace cudaq::realtime::detail
