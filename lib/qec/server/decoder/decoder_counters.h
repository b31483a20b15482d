// SPDX-License-Identifier: Apache-2.0
// The counts of one decoder. Owners: the readers, which never wait and never stop the threads that count. Each function
// that counts names the thread that may call it.
#pragma once

#include "lib/base/runner.h"
#include "lib/qec/server/decoder/stage_times.h"
#include "lib/qec/server/session/decoder_session.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <mutex>
#include <numeric>
#include <string>

namespace cudaq::qec::realtime {

/// Counts of a decoder since start. `by_status`: answers of all functions. The status of a one_shot is counted as the
/// one that means the same in the other functions (counted_status).
struct decoder_counts {
  std::uint64_t requests = 0, shots = 0, too_old = 0, exchanges = 0;
  std::array<std::uint64_t, kServerStatuses> by_status{};
  stream_totals stream;
  std::uint64_t tail_ns = 0, worst_tail_ns = 0; ///< from the arrival of a stream's last bits to its end: sum, most
  deadline_counts deadlines;                    ///< of decodes of shots and of windows, if they have a deadline
  std::uint64_t repeated = 0;                   ///< requests that were sent again, and got their first answer
  std::uint64_t padded = 0;                     ///< requests with bytes after their fields, which are ignored

  /// Requests that wait, or are served. The counts are read while requests come.
  [[nodiscard]] std::uint64_t unanswered() const noexcept {
    const std::uint64_t answered = std::accumulate(by_status.begin(), by_status.end(), std::uint64_t{0});
    return requests - std::min(requests, answered);
  }
};

/// Decodes that failed, and why the last one did.
struct decode_failures {
  std::uint64_t count = 0;
  std::uint64_t not_converged = 0; ///< of these
  std::string last;                ///< decoder_session::last_failure()
};

/// Threads: the functions of each group as its comment says; those that read, by any thread.
class decoder_counters {
public:
  using clock = cudaq::realtime::detail::steady_clock;

  /// Throws std::bad_alloc.
  explicit decoder_counters(const cudaq::realtime::detail::tick_clock &ticks) : times_(ticks) {}

  // By any number of threads.
  void add_request(bool is_padded) noexcept {
    requests_.add();
    if (is_padded)
      padded_.add();
  }
  void add_answer(wire_function function, const server_answer &answer) noexcept;

  // By the thread that holds the session's mutex.
  void add_begun() noexcept { begun_.bump(); }
  void add_repeated() noexcept { repeated_.bump(); }
  void add_too_old() noexcept { too_old_.bump(); }
  void add_exchange() noexcept { exchanges_.bump(); }
  void add_shots(std::uint64_t number) noexcept { shots_.bump(number); }
  void add_deadlines(const deadline_counts &before, const deadline_counts &after) noexcept;
  /// A stream ended, whose last bits came at `arrival`.
  void add_tail(clock::time_point arrival) noexcept;
  /// Of all streams since start.
  void set_stream(const stream_totals &now) noexcept;
  /// `number`: since start. `last`: why the last of them failed.
  void set_failures(std::uint64_t number, std::uint64_t not_converged, const char *last) noexcept;

  [[nodiscard]] decoder_counts read() const noexcept;
  /// stream_totals::missing_tail.
  [[nodiscard]] std::uint64_t missing_tail() const noexcept { return missing_tail_.load(); }
  [[nodiscard]] std::uint64_t begun() const noexcept { return begun_.value(); }
  [[nodiscard]] stage_times &times() noexcept { return times_; }
  [[nodiscard]] const stage_times &times() const noexcept { return times_; }
  /// Throws std::bad_alloc.
  [[nodiscard]] decode_failures failures() const;

private:
  using counter = cudaq::realtime::detail::counter;
  static std::uint64_t ns_since(clock::time_point begin) noexcept {
    return static_cast<std::uint64_t>((clock::now() - begin) / std::chrono::nanoseconds(1));
  }

  counter requests_, shots_, too_old_, exchanges_, tail_ns_, repeated_, begun_, padded_;
  counter deadline_met_, deadline_missed_, deadline_late_;
  std::array<counter, kServerStatuses> by_status_;
  cudaq::realtime::detail::shared_word<std::uint64_t> pushed_, committed_, lag_, worst_lag_, worst_tail_ns_,
      missing_tail_;
  stage_times times_;
  mutable std::mutex failure_mutex_; ///< protects the members below; never held during a decode
  std::uint64_t failures_ = 0, not_converged_ = 0;
  std::array<char, 512> last_failure_{};
};

} // namespace cudaq::qec::realtime
