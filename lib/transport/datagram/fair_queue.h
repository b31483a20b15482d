// SPDX-License-Identifier: Apache-2.0
// Requests that wait for a slot, by sender, so that a sender of more requests than its share does not keep the slots
// from the others. The next slot is for the sender that holds the fewest; among equals, for the one whose turn is
// longest ago.
//
// Example: two slots, both held by a. Its requests 3 and 4 wait, and then request 7 of b.
//
//   a slot of a becomes free   a holds 1, b 0: request 7 of b gets it, although 3 and 4 came earlier
//   another one of a           a holds 0, b 1: request 3 of a
//   the slot of b              a holds 1, b has none that waits: request 4 of a
#pragma once

#include "lib/transport/datagram/datagram_wire.h"

#include <deque>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

namespace cudaq::realtime::detail {

/// One thread uses it. While no request waits it counts nothing and costs nothing.
class fair_queue {
public:
  struct frame {
    udp_address from;
    std::vector<std::uint8_t> bytes;
    bool cut = false;
  };

  /// `max_frames` of all senders together.
  void set_limit(std::size_t max_frames) { max_frames_ = max_frames; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }

  /// Frames that wait.
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  /// Drops all frames; the counts end.
  void clear() noexcept;

  /// False: the room is full, and the newest frame of the sender with the most waiting ones was dropped for it, or it
  /// is of that sender itself and was dropped. std::bad_alloc: only clear() may follow.
  bool add(const received_frame &received);
  /// The frame for the next slot. Not if the room is empty.
  frame next();

  // Slots that a sender holds; only counted while a request waits. Before the first add, hold() all that are held.
  // std::bad_alloc of hold: only clear() may follow.
  void hold(const udp_address &from);
  void release(const udp_address &from);

private:
  struct sender {
    udp_address address;
    std::deque<frame> waiting;
    std::uint32_t held = 0;
    std::uint64_t last_turn = 0;
  };
  struct by_turn {
    bool operator()(const sender *a, const sender *b) const;
  };
  struct by_length {
    bool operator()(const sender *a, const sender *b) const;
  };

  /// Changes a sender outside the sets, which are ordered by what it changes. Needs no memory for one that is in them.
  template <class Change>
  void change(sender &s, Change &&how);

  std::unordered_map<udp_address, sender, udp_address_hash> senders_; ///< that wait or hold a slot
  std::set<sender *, by_turn> turns_;                                 ///< those that wait; the first has the next turn
  std::set<sender *, by_length> lengths_;                             ///< the same; the last has the most frames
  std::size_t size_ = 0, max_frames_ = 0;
  std::uint64_t turn_ = 0;
};

inline bool fair_queue::by_turn::operator()(const sender *a, const sender *b) const {
  return std::tie(a->held, a->last_turn, a) < std::tie(b->held, b->last_turn, b);
}

inline bool fair_queue::by_length::operator()(const sender *a, const sender *b) const {
  return std::pair(a->waiting.size(), a) < std::pair(b->waiting.size(), b);
}

template <class Change>
void fair_queue::change(sender &s, Change &&how) {
  auto turn = turns_.extract(&s);
  auto length = lengths_.extract(&s);
  how(s);
  if (!s.waiting.empty() && !turn.empty()) {
    turns_.insert(std::move(turn));
    lengths_.insert(std::move(length));
  } else if (!s.waiting.empty()) {
    turns_.insert(&s);
    lengths_.insert(&s);
  } else if (s.held == 0) {
    senders_.erase(udp_address(s.address));
  }
}

inline void fair_queue::clear() noexcept {
  turns_.clear();
  lengths_.clear();
  senders_.clear();
  size_ = 0;
}

inline bool fair_queue::add(const received_frame &received) {
  const auto enter = [&](sender &s) {
    s.address = *received.from;
    s.waiting.push_back({*received.from, {received.bytes.begin(), received.bytes.end()}, received.cut});
  };
  const bool full = size_ >= max_frames_;
  if (full) {
    if (lengths_.empty())
      return false;
    sender &longest = **lengths_.rbegin();
    if (longest.address == *received.from)
      return false;
    change(longest, [](sender &s) { s.waiting.pop_back(); });
    --size_;
  }
  change(senders_[*received.from], enter);
  ++size_;
  return !full;
}

inline fair_queue::frame fair_queue::next() {
  sender &first = **turns_.begin();
  frame taken;
  change(first, [&](sender &s) {
    taken = std::move(s.waiting.front());
    s.waiting.pop_front();
    s.last_turn = ++turn_;
  });
  if (--size_ == 0)
    clear();
  return taken;
}

inline void fair_queue::hold(const udp_address &from) {
  change(senders_[from], [&](sender &s) {
    s.address = from;
    ++s.held;
  });
}

inline void fair_queue::release(const udp_address &from) {
  const auto found = senders_.find(from);
  if (found != senders_.end() && found->second.held != 0)
    change(found->second, [](sender &s) { --s.held; });
}

} // namespace cudaq::realtime::detail
