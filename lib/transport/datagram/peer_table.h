// SPDX-License-Identifier: Apache-2.0
// The peers that a provider remembers: a bounded number, each with a place. A peer that is silent for a time is
// forgotten, and its place is given to another one.
#pragma once

#include "lib/transport/datagram/udp_address.h"

#include <chrono>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace cudaq::realtime::detail {

/// One thread uses it. All memory is reserved at construction, except the nodes of a map with at most max_peers.
class peer_table {
public:
  using time = std::chrono::steady_clock::time_point;
  static constexpr std::uint32_t kNoPeer = UINT32_MAX;

  peer_table(std::uint32_t max_peers, std::chrono::milliseconds timeout);

  struct found {
    std::uint32_t place = kNoPeer; ///< kNoPeer: there are max_peers others
    bool is_new = false;           ///< the place held the state of another peer before
  };
  /// The place of a peer, which has sent a datagram now.
  found find_or_add(const udp_address &from, time now);

  /// A peer in use is not forgotten. Call `release` once for each `hold`.
  void hold(std::uint32_t place) { ++peers_[place].holds; }
  void release(std::uint32_t place) { --peers_[place].holds; }
  /// It changes when a place is given to another peer.
  std::uint32_t generation(std::uint32_t place) const { return peers_[place].generation; }
  std::uint32_t count() const { return static_cast<std::uint32_t>(peers_.size() - free_.size()); }
  std::uint64_t expired() const { return expired_; }

private:
  struct peer {
    udp_address address;
    time last_seen{};
    std::uint32_t generation = 0;
    std::uint32_t holds = 0;
    bool used = false;
  };

  std::uint32_t add(const udp_address &from, time now);
  bool idle(const peer &p, time now) const { return p.holds == 0 && now - p.last_seen > timeout_; }
  void forget(std::uint32_t place);

  const std::chrono::milliseconds timeout_;
  std::vector<peer> peers_;
  std::vector<std::uint32_t> free_;
  std::unordered_map<udp_address, std::uint32_t, udp_address_hash> by_address_;
  std::uint32_t last_ = kNoPeer; ///< peer of the last datagram
  std::uint64_t expired_ = 0;
  time next_sweep_{};
};

} // namespace cudaq::realtime::detail
