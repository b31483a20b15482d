// SPDX-License-Identifier: Apache-2.0
// The replay window: which request ids of each peer are being executed, and the answers of those that were. It makes
// requests execute at most once, however often the network or the peer repeats their datagrams.
//
// A peer is the source address and port of a datagram. Its ids are ordered as serial numbers: id b is newer than a if
// b - a, modulo 2^32, is from 1 to 2^31 - 1. The window holds the newest id and the window - 1 ids before it. An
// example with a window of 4, one line for each datagram:
//
//   id 10   first of this peer          fresh; the window is 7..10
//   id 10   while 10 is executed        executing: no second execution
//   id 12   newer                       fresh; the window is 9..12
//   id 10   after its answer            answered: the kept answer is sent again
//   id 11   in the window, not seen     fresh, reordered
//   id 8    before the window           stale: may have been executed, so it is refused
#pragma once

#include "lib/transport/datagram/datagram_counters.h"
#include "lib/transport/datagram/peer_table.h"

#include <memory>
#include <span>

namespace cudaq::realtime::detail {

/// The request of a slot. A peer that expires gets another generation: a late answer is not kept for the next peer.
struct request_key {
  static constexpr std::uint32_t kNoPeer = peer_table::kNoPeer;
  std::uint32_t peer = kNoPeer;
  std::uint32_t generation = 0;
  std::uint32_t id = 0;
};

enum class window_finding { fresh, executing, answered, closed, stale, reused, no_room };

/// One thread uses it. All memory is reserved at construction, except as peer_table says.
class peer_windows {
public:
  using time = peer_table::time;

  struct found {
    window_finding what;
    request_key key;
    std::span<std::uint8_t> answer; ///< of `answered`; valid until the next call of keep
  };

  /// `window`: a power of two.
  peer_windows(std::uint32_t window, std::uint32_t max_peers, std::uint32_t slot_size,
               std::chrono::milliseconds timeout, datagram_counters &counters);

  /// Looks up a request, and remembers its peer. `content`: a hash of all that a repeated request has in common.
  found find(const udp_address &from, std::uint32_t id, std::uint64_t content, time now);
  /// After `fresh`: the request is executed from now on.
  void begin(const request_key &key, std::uint64_t content);
  /// The answer of a request that has begun. Call keep or close once for each.
  void keep(const request_key &key, std::span<const std::uint8_t> answer);
  /// The request ends without an answer.
  void close(const request_key &key);

private:
  enum class state : std::uint8_t { unseen, executing, answered, closed };
  struct entry {
    std::uint64_t content = 0;
    std::uint32_t length = 0;
    state phase = state::unseen;
  };
  struct peer_ids {
    std::uint32_t newest = 0;
    bool any = false; ///< an id was seen: `newest` is valid
  };

  std::uint32_t peer_of(const udp_address &from, time now);
  void clear_window(std::uint32_t index);
  entry &entry_of(std::uint32_t index, std::uint32_t id) {
    return entries_[std::size_t{index} * window_ + (id & (window_ - 1))];
  }
  std::uint8_t *answer_of(std::uint32_t index, std::uint32_t id) {
    return answers_.get() + (std::size_t{index} * window_ + (id & (window_ - 1))) * slot_size_;
  }
  /// The entry of a request that has begun, or NULL if the window has moved on. The request has ended for its peer.
  entry *end(const request_key &key);

  const std::uint32_t window_;
  const std::uint32_t slot_size_;
  datagram_counters &counters_;
  peer_table table_;
  std::vector<peer_ids> ids_; ///< of the peer in each place
  std::vector<entry> entries_;
  std::unique_ptr<std::uint8_t[]> answers_;
};

} // namespace cudaq::realtime::detail
