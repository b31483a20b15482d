// SPDX-License-Identifier: Apache-2.0
// The streams of an emulated control system, turn by turn.
#pragma once

#include "lib/transport/client/busy_backoff.h"
#include "tools/common/latency_histogram.h"
#include "tools/common/run_timeline.h"
#include "tools/emulate/emulate.h"
#include "tools/emulate/link.h"
#include "tools/shots/shot_plan.h"
#include "tools/trace/exchange_record.h"
#include "tools/trace/run_trace.h"

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace cudaq::realtime::tools {

/// The name of a status, and its meaning. `server`: of the protocol server. In the protocol decode a status of the
/// server or the router is negative.
std::string answer_status_text(bool server, std::int32_t status);
/// What the status says of the decode: not_converged or deadline. Any other status, also of a failure: internal_error.
qec::decode_status decode_status_of(bool server, std::int32_t status);
/// Whether the transport or the server refused the request as busy: it had no effect, and may be sent again.
bool is_busy(bool server, std::int32_t status);

using detail::busy_backoff;

struct play_result {
  std::uint64_t shots = 0;    ///< begun
  std::uint64_t answered = 0; ///< shots whose last answer came
  std::uint64_t requests = 0;
  std::uint64_t wall_ns = 0;        ///< from the begin to the last answer
  latency_histogram request_time;   ///< from the time in the request, which the answer echoes, to the answer
  latency_histogram shot_time;      ///< from the scheduled begin of a shot to its last answer
  std::uint64_t lost = 0;           ///< requests without an answer within the timeout
  std::uint64_t busy = 0;           ///< answers BUSY; such a request is sent again after a time
  unanswered_shots undecided;       ///< answers that say that the decoder has none
  std::uint64_t busy_given_up = 0;  ///< of bad_status: requests that were BUSY for the whole timeout
  std::uint64_t bad_status = 0;     ///< answers with another error than those of `undecided`
  std::uint64_t wrong_echo = 0;     ///< answers with another timestamp than their request
  std::uint64_t mismatches = 0;     ///< corrections or statuses that are not the expected ones
  std::uint64_t missing = 0;        ///< of mismatches: no correction (`undecided`) where one was expected
  run_timeline timeline;            ///< of request_time
  std::uint64_t logical_errors = 0; ///< of the answered shots
  std::uint64_t late = 0;           ///< shots that began after their time, because all streams were busy
  bool stalled = false;             ///< no progress for twice the timeout, or the server has ended
  std::vector<std::string> notes;   ///< the first few errors

  /// Shots that were begun and have no answer: lost, refused, given up, at their deadline.
  [[nodiscard]] std::uint64_t unanswered() const noexcept { return shots - answered; }
};

/// What went wrong in a run; empty: nothing. `wanted`: shots to play; 0: as many as there was time for.
std::vector<std::string> problems_of(const play_result &result, bool interrupted, std::uint64_t wanted);

class player {
public:
  /// `check`: corrections must be those of the plan. `clock`: nanoseconds, as now_ns.
  player(const emulate_options &options, const shot_plan &plan, bool check, link &to,
         std::function<std::uint64_t()> clock);

  /// From now on each request is recorded. `trace` must outlive the player.
  void record(run_trace &trace) { trace_ = &trace; }

  /// Bytes of the longest request. `readout`: null, or that of the shots.
  static std::size_t payload_bytes(const emulate_options &options, const qec::shot_set &shots,
                                   const recorded_readout *readout);
  static std::uint32_t streams(const emulate_options &options);
  /// Ids of requests are consecutive, and two that are open together differ by less than this: 4 times the streams,
  /// rounded up to a power of two.
  static std::uint32_t id_window(const emulate_options &options);

  /// One turn: takes answers, begins shots that are due. Returns true if there was work.
  bool turn();
  bool done() const { return result_.stalled || (begun_all() && open_ == 0); }
  /// Before the first turn: the id of the first request.
  void begin_with(std::uint32_t id) { next_id_ = first_id_ = id; }
  /// Keeps the times of each request from now on, in `record`.
  void keep_times(exchange_record &record) { record_ = &record; }
  /// Begins no more shots.
  void stop_sending() { max_shots_ = result_.shots; }
  /// After a signal: the same, and shots whose first request waits for a free slot are not played. What was sent still
  /// gets its answer.
  void interrupt();
  std::uint64_t answered() const { return result_.answered; }
  play_result result() const;

private:
  enum class step : std::uint8_t { idle, enqueue, corrections, reset, decode };
  struct stream {
    step at = step::idle;
    bool waits = false; ///< a request is sent; else the request of `at` is to be sent
    std::uint32_t id = 0, shot = 0;
    std::uint64_t due_ns = 0, sent_ns = 0;
    std::uint64_t request = 0;  ///< running number of its open request
    std::uint64_t enqueued = 0; ///< accepted by the server since the last reset
    bool needs_reset = false;   ///< its last reset had no answer: the next shot begins with one
    busy_backoff busy;
  };

  /// The server may be dead, or stay busy. One lost request does not say so: until the next one is due nothing can
  /// be answered.
  bool losing() const { return lost_in_row_ + busy_in_row_ > 1; }
  bool begun_all() const { return result_.shots >= max_shots_; }
  bool begin_shot(stream &s, std::uint64_t now);
  bool send(std::uint32_t number, std::uint64_t now);
  std::span<const std::uint8_t> payload_of(const stream &s, std::uint32_t number);
  void on_answer(const link_answer &answer, std::uint64_t now);
  void on_error(stream &s, std::int32_t status);
  void finish_shot(stream &s, std::span<const std::uint8_t> correction, std::uint64_t now);
  void reset_or_end_shot(stream &s, bool unanswered);
  void end_shot(stream &s);
  void check_losses(std::uint64_t now);
  void check_stall(std::uint64_t now);
  void note(const stream &s, const std::string &what);

  const emulate_options &options_;
  const shot_plan &plan_;
  const bool check_;
  link &link_;
  const std::function<std::uint64_t()> clock_;
  run_trace *trace_ = nullptr;
  const std::uint64_t timeout_ns_, gap_ns_, allowed_late_ns_;
  const std::uint64_t duration_ns_; ///< 0: until all shots are sent
  const bool server_;
  std::vector<stream> streams_;
  static constexpr std::uint32_t kFree = UINT32_MAX;
  std::vector<std::uint32_t> owners_;        ///< by id modulo the window: the stream whose request is open
  std::uint32_t next_id_ = 0, first_id_ = 0; ///< records count from first_id_
  std::vector<std::uint8_t> buffer_;
  std::uint64_t max_shots_, begin_ns_ = 0, last_answer_ns_ = 0;
  /// The last answer that was not BUSY; or, unless requests are lost in a row, the time when something was open again.
  std::uint64_t quiet_since_ns_ = 0;
  /// Requests that were given up since the last answer that was not BUSY: without an answer, and as BUSY.
  std::uint64_t lost_in_row_ = 0, busy_in_row_ = 0;
  bool refused_ = false; ///< a request was answered as busy since the last other answer
  std::uint32_t open_ = 0, turns_ = 0;
  exchange_record *record_ = nullptr;
  play_result result_;
};

} // namespace cudaq::realtime::tools
