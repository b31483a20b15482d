// SPDX-License-Identifier: Apache-2.0
// The replay window: which request ids of each peer are being executed, and the answers of those that were. A peer is
// the source address and port of a datagram, and a session of the sequence_window; its request ids are the numbers.
#pragma once

#include "lib/session/sequence_window.h"
#include "lib/transport/datagram/datagram_counters.h"
#include "lib/transport/datagram/peer_table.h"

#include <optional>

namespace cudaq::realtime::detail {

/// The request of a slot. A peer that expires gets another generation: a late answer is not kept for the next peer.
struct request_key {
  static constexpr std::uint32_t kNoPeer = peer_table::kNoPeer;
  std::uint32_t peer = kNoPeer;
  std::uint32_t generation = 0;
  std::uint32_t id = 0;
};

/// One thread uses it. All memory is reserved at construction, except as peer_table says.
class peer_windows {
public:
  using time = peer_table::time;

  struct found {
    request_key key;
    request_state state = request_state::unseen;
    std::span<std::uint8_t> answer; ///< of `answered`; valid until the next call of keep
  };

  /// `window`: a power of two.
  peer_windows(std::uint32_t window, std::uint32_t max_peers, std::uint32_t slot_size,
               std::chrono::milliseconds timeout, datagram_counters &counters)
      : counters_(counters), table_(max_peers, timeout), requests_(window, max_peers, slot_size) {}

  /// Looks up a request, and remembers its peer. Nothing: there is no room for another peer. `content`: a hash of all
  /// that a repeated request has in common.
  std::optional<found> find(const udp_address &from, std::uint32_t id, std::uint64_t content, time now);
  /// After `unseen`: the request is executed from now on.
  void begin(const request_key &key, std::uint64_t content);
  /// The answer of a request that has begun. Call keep, close or forget once for each.
  void keep(const request_key &key, std::span<const std::uint8_t> answer);
  /// The request ends without an answer.
  void close(const request_key &key);
  /// The request was not executed: a copy of it is new.
  void forget(const request_key &key);

private:
  /// The request has ended for its peer. False: another peer has its place.
  bool release(const request_key &key);

  datagram_counters &counters_;
  peer_table table_;
  sequence_window requests_;
};

} // namespace cudaq::realtime::detail
