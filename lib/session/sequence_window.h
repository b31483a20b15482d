// SPDX-License-Identifier: Apache-2.0
// The requests of sessions whose requests have sequence numbers: the states of the last ones of each session, and the
// answers of those that were answered. It makes requests execute at most once, however often they come.
//
// Numbers are ordered as serial numbers: b is newer than a if b - a, modulo 2^32, is from 1 to 2^31 - 1. The window
// holds the newest number and the window - 1 numbers before it. An example with a window of 4, one line for each
// request that comes:
//
//   10   first of this session    unseen; the window is 7..10
//   10   while 10 is executed     executing: no second execution
//   12   newer                    unseen; the window is 9..12
//   10   after its answer         answered: the kept answer is sent again
//   11   in the window, not seen  unseen, reordered
//   8    before the window        stale: may have been executed, so it is refused
#pragma once

#include "lib/session/request_state.h"

#include <memory>
#include <span>
#include <vector>

namespace cudaq::realtime::detail {

/// One thread uses it. All memory is reserved at construction.
class sequence_window {
public:
  struct found {
    request_state state = request_state::unseen;
    std::span<std::uint8_t> answer; ///< of `answered`; valid until the next call of keep
  };

  /// `window`: a power of two. `answer_bytes`: of the longest answer.
  sequence_window(std::uint32_t window, std::uint32_t sessions, std::uint32_t answer_bytes);

  /// `content`: a hash of all that copies of a request have in common.
  [[nodiscard]] found find(std::uint32_t session, std::uint32_t number, std::uint64_t content);
  /// After `unseen`: the request is executed from now on. True: its session has sent newer ones before it.
  bool begin(std::uint32_t session, std::uint32_t number, std::uint64_t content);
  /// The answer of a request that has begun.
  void keep(std::uint32_t session, std::uint32_t number, std::span<const std::uint8_t> answer);
  /// A request that has begun ends without an answer.
  void close(std::uint32_t session, std::uint32_t number);
  /// A request that has begun was not executed: a copy of it is new.
  void forget(std::uint32_t session, std::uint32_t number);
  /// Another session has this place from now on: nothing of it was seen.
  void restart(std::uint32_t session);

private:
  struct record {
    std::uint64_t content = 0;
    std::uint32_t length = 0;
    request_state state = request_state::unseen;
  };
  struct numbers {
    std::uint32_t newest = 0;
    bool any = false; ///< a number was seen: `newest` is valid
  };

  [[nodiscard]] std::size_t place_of(std::uint32_t session, std::uint32_t number) const {
    return std::size_t{session} * window_ + (number & (window_ - 1));
  }
  [[nodiscard]] std::uint8_t *answer_at(std::size_t place) const { return answers_.get() + place * answer_bytes_; }
  /// False: the window has moved on, and the place is that of another number.
  [[nodiscard]] bool holds(std::uint32_t session, std::uint32_t number) const {
    return numbers_[session].newest - number < window_;
  }
  void forget_all(std::uint32_t session);

  const std::uint32_t window_;
  const std::uint32_t answer_bytes_;
  std::vector<numbers> numbers_; ///< of each session
  std::vector<record> records_;
  std::unique_ptr<std::uint8_t[]> answers_;
};

} // namespace cudaq::realtime::detail
