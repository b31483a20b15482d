// SPDX-License-Identifier: Apache-2.0
// The parts that the measuring loops share: payloads that can be checked, deadlines, and the result of a loop.
#pragma once

#include "tools/common/clock.h"
#include "tools/common/latency_histogram.h"
#include "tools/common/random_words.h"

#include <array>
#include <bit>
#include <cstdint>
#include <stdexcept>

namespace cudaq::realtime::tools {

inline constexpr std::size_t kMaxWords = 4; ///< 32 B of payload, which with a header of 24 B fit in one cache line
using payload_words = std::array<std::uint64_t, kMaxWords>;

/// Random words of exchange `n`.
inline payload_words make_payload(std::uint64_t seed, std::uint64_t n) noexcept {
  payload_words words;
  for (std::size_t i = 0; i < kMaxWords; ++i)
    words[i] = random_word(seed, n * kMaxWords + i);
  return words;
}

/// The work of every server: it transforms every word of the payload. A reply that is the unchanged request, a stale
/// reply, or zero does not pass the check.
inline std::uint64_t transform(std::uint64_t word) noexcept { return std::rotl(word, 17) ^ 0xa5a5a5a55a5a5a5au; }

inline bool reply_is_right(const payload_words &request, const payload_words &reply, std::size_t words) noexcept {
  std::uint64_t wrong = 0;
  for (std::size_t i = 0; i < words; ++i)
    wrong |= reply[i] ^ transform(request[i]);
  return wrong == 0;
}

/// Nanoseconds per tick of ticks(), from a comparison with CLOCK_MONOTONIC over 50 ms.
class tick_scale {
public:
  tick_scale();
  [[nodiscard]] double ns(std::uint64_t tick_count) const noexcept {
    return static_cast<double>(tick_count) * ns_per_tick_;
  }
  /// Rounded.
  [[nodiscard]] std::uint64_t whole_ns(std::uint64_t tick_count) const noexcept {
    return static_cast<std::uint64_t>(ns(tick_count) + 0.5);
  }
  [[nodiscard]] double ns_per_tick() const noexcept { return ns_per_tick_; }
  /// Median time between two consecutive calls of ticks(). It is part of every measured exchange, also of the floor's,
  /// and is not subtracted.
  [[nodiscard]] double overhead_ns() const noexcept { return overhead_ns_; }

private:
  double ns_per_tick_ = 1;
  double overhead_ns_ = 0;
};

/// A wait reached its deadline: the other side has ended or does not answer.
class exchange_stalled : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// Deadline of a polling loop. Call check() at every poll; it reads the clock at every 65536th poll only, and throws
/// exchange_stalled after the deadline. With `share_core` it also yields the core at every poll, for machines where
/// both sides must use one core. restart() begins a new wait.
class poll_deadline {
public:
  poll_deadline(const char *what, std::uint64_t timeout_ns, bool share_core)
      : what_(what), timeout_ns_(timeout_ns), share_core_(share_core) {}
  void restart() noexcept { polls_ = 0; }
  void check() {
    ++polls_;
    if (share_core_)
      std::this_thread::yield();
    if (polls_ % kPollsPerClockRead == 0)
      check_clock();
  }

private:
  static constexpr std::uint64_t kPollsPerClockRead = 1u << 16;
  void check_clock() {
    const std::uint64_t now = now_ns();
    if (polls_ == kPollsPerClockRead)
      begin_ns_ = now;
    else if (now - begin_ns_ > timeout_ns_)
      throw exchange_stalled(what_);
  }
  const char *what_;
  std::uint64_t timeout_ns_;
  bool share_core_;
  std::uint64_t polls_ = 0;
  std::uint64_t begin_ns_ = 0;
};

/// Exchanges of one lap. Throughput is computed from the duration of laps.
inline constexpr std::uint64_t kLap = 64;

/// Splits a loop into laps of kLap exchanges.
class lap_timer {
public:
  lap_timer(latency_histogram &laps, const tick_scale &scale) : laps_(laps), scale_(scale), last_(ticks()) {}
  /// Call after each exchange: its number (`done`, counted from 1), and the time in ticks.
  void exchanged(std::uint64_t done, std::uint64_t now) noexcept {
    if (done % kLap != 0)
      return;
    laps_.record(scale_.whole_ns(now - last_));
    last_ = now;
  }

private:
  latency_histogram &laps_;
  const tick_scale &scale_;
  std::uint64_t last_;
};

/// The content of a right reply.
enum class reply_rule : std::uint8_t {
  echo,      ///< the request
  transform, ///< transform() of each word
  add_words, ///< each 4-byte word plus 1
  add_bytes, ///< each byte plus 1
  last_word, ///< as long as the request; its last 4-byte word is the request's first, all bits inverted
};

/// What the measured time of an exchange contains.
enum class timed_part : std::uint8_t {
  flags, ///< from just before the rx flag is set to just after the tx flag is seen, without the frames
  frames ///< from before the request is written to after the result is copied out
};

/// How to run one loop.
struct exchange_config {
  std::uint64_t exchanges = 0;
  std::uint32_t batch = 1;       ///< with many in flight: requests that a client writes and signals together, at most
  std::uint64_t warm_up = 0;     ///< exchanges before the measured ones; checked, not measured
  std::size_t payload_bytes = 8; ///< multiple of 8
  std::uint32_t function_id = 0;
  reply_rule rule = reply_rule::echo;
  timed_part timed = timed_part::flags;
  std::uint64_t seed = 1;
  std::uint64_t timeout_ns = 0;
  bool share_core = false; ///< there are fewer cores than threads: yield at every poll
};

/// The result of one loop. `per_exchange` may hold a sample of the exchanges; laps and wall_ns cover all of them.
struct loop_result {
  latency_histogram per_exchange;
  latency_histogram laps; ///< time of each kLap exchanges
  std::uint64_t exchanges = 0;
  std::uint64_t wall_ns = 0;
  std::uint64_t wrong = 0; ///< replies that are not right

  void merge(const loop_result &other) {
    per_exchange.merge(other.per_exchange);
    laps.merge(other.laps);
    exchanges += other.exchanges;
    wall_ns += other.wall_ns;
    wrong += other.wrong;
  }
  /// Throughput of the median lap: the rate while both threads run on their cores. The wall clock also counts the
  /// milliseconds in which the system gave a core to another program.
  [[nodiscard]] double per_second() const noexcept {
    const std::uint64_t lap = laps.percentile(50);
    return lap == 0 ? wall_per_second() : static_cast<double>(kLap) * 1e9 / static_cast<double>(lap);
  }
  [[nodiscard]] double wall_per_second() const noexcept {
    return wall_ns == 0 ? 0.0 : static_cast<double>(exchanges) * 1e9 / static_cast<double>(wall_ns);
  }
};

} // namespace cudaq::realtime::tools
