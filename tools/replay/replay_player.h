// SPDX-License-Identifier: Apache-2.0
// Plays a recording to a server, one request at a time, so that it is served in the order of the recording. Only a read
// that waits for a round of a stream stays open while later requests are played: they bring the rounds.
#pragma once

#include "lib/qec/server/record/answer_check.h"
#include "tools/common/latency_histogram.h"
#include "tools/emulate/link.h"
#include "tools/replay/replay_plan.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace cudaq::realtime::tools {

struct replayed_answer {
  std::int32_t status = 0;
  std::vector<std::uint8_t> result;
};

/// A request whose two answers differ.
struct replay_difference {
  qec::recorded_request recorded;
  qec::answer_verdict verdict = qec::answer_verdict::equal;
  replayed_answer replayed;
};

struct replay_result {
  static constexpr std::size_t kKept = 100;

  std::uint64_t played = 0, answered = 0;
  std::uint64_t equal = 0, depends_on_time = 0;
  std::uint64_t differences = 0;        ///< of all verdicts that differ
  std::vector<replay_difference> first; ///< of these, at most kKept
  std::uint64_t not_compared = 0;       ///< the recording has no whole answer
  std::uint64_t busy = 0;               ///< answers BUSY to requests that are sent again
  std::uint64_t late = 0;               ///< as recorded: sent more than 1 ms after their time
  bool stalled = false;                 ///< no answer came in time, or the server has ended
  std::uint64_t begin_ns = 0, end_ns = 0;
  latency_histogram round_trip; ///< of requests that do not wait for a round
};

class replay_player {
public:
  struct options {
    bool as_recorded = false;
    std::uint64_t timeout_ns = 0;
    std::uint32_t first_id = 0;
  };
  /// `clock`: nanoseconds, as now_ns.
  replay_player(const options &o, replay_plan &plan, link &to, std::function<std::uint64_t()> clock);

  /// One turn: takes answers, sends a request that is due. Returns true if there was work.
  bool turn();
  [[nodiscard]] bool done() const { return result_.stalled || (open_.empty() && !next_ && no_more_); }
  /// After a signal: no further request is sent.
  void interrupt();
  [[nodiscard]] std::uint64_t progress() const { return result_.played; }
  [[nodiscard]] const replay_result &result() const { return result_; }

private:
  struct open_request {
    qec::recorded_request recorded;
    std::uint32_t id;
    std::uint64_t sent_ns;
    bool waits;
  };
  bool take_answers();
  bool send_next(std::uint64_t now);
  void compare(const qec::recorded_request &recorded, const link_answer &answer);
  [[nodiscard]] std::size_t waiting() const;

  const options options_;
  replay_plan &plan_;
  link &link_;
  const std::function<std::uint64_t()> clock_;
  std::optional<qec::recorded_request> next_;
  std::vector<open_request> open_;
  std::uint32_t next_id_;
  std::uint64_t begin_ns_ = 0, not_before_ns_ = 0, first_arrived_ns_ = 0, quiet_since_ns_ = 0;
  bool no_more_ = false, interrupted_ = false;
  bool repeats_ = false; ///< the next request was answered BUSY
  replay_result result_;
};

} // namespace cudaq::realtime::tools
