// SPDX-License-Identifier: Apache-2.0
// Plays endless experiments to a decoder of the server, at the pace of hardware. An example: one round each us, commit
// 5 and buffer 5, two requests open at the same time.
//
//   time   due      sent                                      answers
//   0 us   round 0  enqueue 1: round 0
//   1 us   round 1  enqueue 2: round 1
//   2 us   round 2  (two requests are open: rounds wait)
//   4 us   round 4  enqueue 3: rounds 2 to 4                  enqueue 1
//   9 us   round 9  enqueue 4: rounds 5 to 9; get_committed,  enqueue 2 ...
//                   wait for 5
//   13 us                                                     get_committed: rounds 0 to 4 are final
//   ...    last round before the tail: enqueue; begin_tail; enqueue of the tail's rounds; get_committed, wait for all
#pragma once

#include "tools/common/latency_histogram.h"
#include "tools/common/run_timeline.h"
#include "tools/common/sending_pace.h"
#include "tools/emulate/emulate.h"
#include "tools/emulate/link.h"
#include "tools/emulate/player.h"
#include "tools/emulate/stream_plan.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace cudaq::realtime::tools {

struct stream_play_result {
  std::uint64_t experiments = 0; ///< begun
  std::uint64_t ended = 0;       ///< whose last rounds are final, and known to be
  std::uint64_t cut = 0;         ///< that a signal has ended before: not played
  std::uint64_t rounds = 0;      ///< sent
  std::uint64_t requests = 0, frames = 0;
  std::uint64_t wall_ns = 0;      ///< of the experiments, without the checks between them
  latency_histogram request_time; ///< of requests that do not wait for a round: from sending to the answer
  latency_histogram lag_time;     ///< of each frame: from the time when its last round was due to its answer
  latency_histogram lag_rounds;   ///< of each frame: rounds that were due and not in it
  /// Of each window, also of those that a later frame answers, but the last frame: from when its last round was due.
  latency_histogram window_time;
  /// The least of window_time in the first and the last tenth of the rounds of the last experiment: of a lag that grows
  /// the second is larger. 0: no window ended there.
  std::uint64_t first_tenth_ns = 0, last_tenth_ns = 0;
  latency_histogram tail_time; ///< from the time when the last round was due to the last frame
  run_timeline backlog;        ///< of lag_time
  /// busy: answers BUSY; such a request is sent again after a time.
  std::uint64_t lost = 0, busy = 0, bad_status = 0, wrong_echo = 0;
  unanswered_shots undecided; ///< experiments that a window without a solution has ended
  std::uint64_t mismatches = 0, logical_errors = 0;
  std::uint64_t missing = 0;   ///< of mismatches: experiments of `undecided` whose windows have solutions here
  std::uint64_t unchecked = 0; ///< frames whose check took too long
  bool stalled = false;
  sending_pace pace;              ///< of experiments whose rounds were all sent
  std::vector<std::string> notes; ///< the first few errors

  /// Played and without a last frame: something was lost, refused or wrong on the way.
  [[nodiscard]] std::uint64_t unanswered() const noexcept { return experiments - ended - cut; }
};

/// What went wrong. `wanted`: experiments.
std::vector<std::string> problems_of(const stream_play_result &result, bool interrupted, std::uint64_t wanted);

class stream_player {
public:
  /// `clock`: nanoseconds, as now_ns. `slot_bytes`: of the server; a request is not longer.
  stream_player(const emulate_options &options, stream_plan &plan, link &to, std::size_t slot_bytes,
                std::function<std::uint64_t()> clock);

  /// Bytes of the shortest request that is needed: one round.
  static std::size_t payload_bytes(const stream_plan &plan);
  /// Requests that are open at the same time: enqueue, and one read.
  static std::uint32_t max_open(const emulate_options &options) { return options.window + 1; }
  /// Ids that are open together differ by less than this.
  static std::uint32_t id_window(const emulate_options &options);

  /// One turn: takes answers, sends the rounds that are due. Returns true if there was work.
  bool turn();
  bool done() const { return result_.stalled || (phase_ == phase::idle && no_more()); }
  void begin_with(std::uint32_t id) { next_id_ = id; }
  /// After a signal: the present experiment is not played to its end.
  void interrupt() { interrupted_ = true; }
  /// Rounds that were sent.
  std::uint64_t progress() const { return result_.rounds; }
  stream_play_result result() const { return result_; }

private:
  enum class phase : std::uint8_t {
    idle,
    reset,   ///< until the server has answered
    rounds,  ///< before the tail
    tail,    ///< begin_tail is sent, or the next request
    ending,  ///< all rounds are sent; the last frame is awaited
    draining ///< after an error: the open requests are awaited
  };
  enum class kind : std::uint8_t { reset, enqueue, begin_tail, read };
  struct open_call {
    kind what;
    std::uint32_t id;
    std::uint64_t sent_ns;
    std::vector<std::uint8_t> payload; ///< of enqueue and begin_tail: they may be sent again
  };

  /// Of enqueue and begin_tail.
  static std::uint64_t counter_of(const open_call &request);
  bool no_more() const { return interrupted_ || result_.experiments >= options_.shots; }
  std::uint64_t due_ns(std::uint64_t round) const {
    return begin_ns_ + static_cast<std::uint64_t>(static_cast<double>(round) * cycle_ns_);
  }
  std::uint64_t rounds_due(std::uint64_t now) const;
  bool send(kind what, std::uint64_t now);
  bool send_bits(std::uint64_t now);
  [[nodiscard]] bool has_room_for(std::uint64_t bits, qec::readout_place values) const;
  [[nodiscard]] qec::readout_place values_alone(qec::readout_place all) const;
  bool send_read(std::uint64_t now);
  bool send_refused(std::uint64_t now);
  bool transmit(kind what, const std::vector<std::uint8_t> &payload, std::uint64_t now);
  void collect_rounds(std::uint64_t now);
  [[nodiscard]] std::uint64_t wanted_round() const;
  [[nodiscard]] std::size_t open_of(bool reads) const;
  [[nodiscard]] bool waits_for_server() const;
  void on_answer(const link_answer &answer, std::uint64_t now);
  void on_frame(std::span<const std::uint8_t> result, std::uint64_t now);
  void record_windows(std::uint64_t before, std::uint64_t now);
  void begin_experiment(std::uint64_t now);
  void end_experiment(bool complete);
  void fail(const std::string &why);
  void check_losses(std::uint64_t now);
  void note(const std::string &what);

  const emulate_options &options_;
  stream_plan &plan_;
  link &link_;
  const std::size_t head_bytes_, max_bytes_; ///< of one request with bits: before its arrays, and of these
  const std::function<std::uint64_t()> clock_;
  const double cycle_ns_;
  const std::uint64_t timeout_ns_;
  phase phase_ = phase::idle;
  experiment_rounds *source_ = nullptr;
  std::vector<open_call> open_;
  /// Requests with bits that were answered BUSY, by their counters: the server takes them in no other order. They are
  /// sent again one at a time, and before further ones.
  std::vector<open_call> refused_;
  busy_backoff bits_busy_, read_busy_;
  std::uint32_t next_id_ = 0;
  std::vector<std::uint8_t> bits_;    ///< packed, of the next enqueue request
  std::vector<std::uint8_t> round_;   ///< made, but in no request yet; one byte a detector
  std::vector<std::uint8_t> payload_; ///< of any request
  std::uint64_t num_bits_ = 0;        ///< in bits_
  std::uint64_t sent_bits_ = 0;       ///< before the tail, in requests that were sent
  /// Soft values and flags that were sent, and those with which the next request ends.
  qec::readout_place sent_values_, next_values_;
  std::uint64_t counter_ = 0;                ///< of the last enqueue or begin_tail
  std::uint64_t sampled_ = 0, sent_ = 0;     ///< rounds; sent_: in requests that were sent
  std::uint64_t committed_ = 0, wanted_ = 0; ///< rounds: in the last frame; in the last read
  std::uint64_t begin_ns_ = 0, quiet_since_ns_ = 0;
  std::uint64_t last_late_ns_ = 0; ///< how long after its time the last round was sent
  std::uint64_t worst_lag_ns_ = 0; ///< longest time from the last round of a window to its frame
  /// Rounds that were sent when a window had no solution.
  std::optional<std::uint64_t> unsolved_after_;
  std::uint32_t turns_ = 0;
  bool tail_begun_ = false, interrupted_ = false;
  stream_frames frames_;
  stream_play_result result_;
};

} // namespace cudaq::realtime::tools
