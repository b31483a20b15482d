// SPDX-License-Identifier: Apache-2.0
#include "tools/emulate/stream_player.h"

#include "cudaq/realtime/daemon/dispatcher/realtime_types.h"
#include "lib/qec/server/session/decoding_unit.h"
#include "tools/emulate/play_loop.h"
#include "tools/emulate/player.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace cudaq::realtime::tools {
namespace {

constexpr std::size_t kMaxNotes = 5;
constexpr std::uint32_t kTurnsPerLossCheck = 256; ///< between two checks for losses
constexpr int kMaxAnswers = 1024;                 ///< of one turn: a server that floods must not keep the player in it

std::uint64_t number_at(std::span<const std::uint8_t> bytes, std::size_t at) {
  std::uint64_t number = 0;
  std::memcpy(&number, bytes.data() + at, sizeof number);
  return number;
}

/// Of a request: any server takes these, also with a queue.
std::size_t max_bytes(const stream_plan &plan) {
  return static_cast<std::size_t>((qec::longest_stream_request_bits(plan.max_round_bits()) + 7) / 8);
}

} // namespace

std::vector<std::string> problems_of(const stream_play_result &r, bool interrupted, std::uint64_t wanted) {
  problem_list problems;
  problems.none(r.lost, "requests without an answer");
  problems.none(r.bad_status, "answers with an error status");
  problems.none(r.wrong_echo, "answers with a wrong timestamp");
  problems.none(r.mismatches - r.missing, "frames that are not the expected ones");
  problems.none(r.missing, "experiments without an answer that have one here");
  problems.none(r.unchecked, "frames that could not be checked in time");
  if (r.stalled)
    problems.texts.emplace_back("no progress");
  else if (!interrupted && r.ended + r.undecided.total() < wanted)
    problems.texts.emplace_back("not all experiments were played to their end");
  return problems.texts;
}

std::size_t stream_player::payload_bytes(const stream_plan &plan) {
  const std::size_t round = static_cast<std::size_t>((plan.max_round_bits() + 7) / 8);
  // Values may go in requests of their own, before the bits.
  return std::max(!plan.readout().any() ? qec::kEnqueueHeadBytes + round
                                        : qec::kEnqueueReadoutHeadBytes + std::max(round, sizeof(float)),
                  qec::kGetCommittedBytes);
}

std::uint32_t stream_player::id_window(const emulate_options &options) { return 4 * std::bit_ceil(options.window + 1); }

stream_player::stream_player(const emulate_options &options, stream_plan &plan, link &to, std::size_t slot_bytes,
                             std::function<std::uint64_t()> clock)
    : options_(options), plan_(plan), link_(to),
      head_bytes_(!plan.readout().any() ? qec::kEnqueueHeadBytes : qec::kEnqueueReadoutHeadBytes),
      max_bytes_(std::min<std::size_t>(slot_bytes - CUDAQ_RPC_HEADER_SIZE - head_bytes_, max_bytes(plan))),
      clock_(std::move(clock)), cycle_ns_(options.cycle_us * 1e3),
      timeout_ns_(static_cast<std::uint64_t>(options.timeout_s * 1e9)) {}

std::uint64_t stream_player::counter_of(const open_call &request) { return number_at(request.payload, 8); }

std::size_t stream_player::open_of(bool reads) const {
  return static_cast<std::size_t>(
      std::ranges::count_if(open_, [reads](const open_call &r) { return (r.what == kind::read) == reads; }));
}

std::uint64_t stream_player::rounds_due(std::uint64_t now) const {
  const std::uint64_t rounds = cycle_ns_ == 0
                                   ? plan_.rounds()
                                   : static_cast<std::uint64_t>(static_cast<double>(now - begin_ns_) / cycle_ns_) + 1;
  return std::min(rounds, plan_.rounds());
}

bool stream_player::turn() {
  std::uint64_t now = clock_();
  if (quiet_since_ns_ == 0)
    quiet_since_ns_ = now;
  bool worked = false;
  std::optional<link_answer> answer;
  for (int taken = 0; taken < kMaxAnswers && (answer = link_.receive()); ++taken) {
    now = clock_();
    on_answer(*answer, now);
    worked = true;
  }
  if (interrupted_ && phase_ != phase::idle && phase_ != phase::draining) {
    phase_ = phase::draining;
    ++result_.cut;
  }
  if (phase_ == phase::draining && open_.empty())
    end_experiment(false);
  if (phase_ == phase::idle && !no_more()) {
    phase_ = phase::reset;
    ++result_.experiments;
    frames_ = {};
    now = clock_(); // the check of the experiment before took its time: it is none of the next request
  }
  if (phase_ == phase::reset && open_.empty() && read_busy_.is_over(now))
    worked = send(kind::reset, now) || worked;
  const bool plays = phase_ == phase::rounds || phase_ == phase::tail || phase_ == phase::ending;
  if (plays && !refused_.empty())
    worked = send_refused(now) || worked;
  else if (phase_ == phase::rounds || phase_ == phase::tail)
    worked = send_bits(now) || worked;
  if (plays)
    worked = send_read(now) || worked;
  if (++turns_ % kTurnsPerLossCheck == 0)
    check_losses(now);
  return worked;
}

bool stream_player::has_room_for(std::uint64_t bits, qec::readout_place values) const {
  return (bits + 7) / 8 + plan_.bytes_of(values) <= max_bytes_;
}

/// Of the values and flags that are not sent, as many as fit into a request without bits.
qec::readout_place stream_player::values_alone(qec::readout_place all) const {
  const auto as_many_as_fit = [](std::int64_t left, std::uint64_t bytes, unsigned width) {
    return std::min(left, static_cast<std::int64_t>(8 * bytes / width));
  };
  qec::readout_place now{as_many_as_fit(all.value - sent_values_.value, max_bytes_, bits_of(plan_.kind())), 0};
  now.flag = as_many_as_fit(all.flag - sent_values_.flag, max_bytes_ - plan_.bytes_of(now), 2);
  return sent_values_ + now;
}

/// Adds rounds that are due to the next request, with their values, as far as they fit, and not over the begin of the
/// tail. The values of a round that does not fit with them go before it.
void stream_player::collect_rounds(std::uint64_t now) {
  if (!waits_for_server())
    quiet_since_ns_ = now;
  const std::uint64_t before_tail = plan_.rounds_before_tail();
  const std::uint64_t last = std::min(rounds_due(now), phase_ == phase::rounds ? before_tail : plan_.rounds());
  while (sampled_ < last || !round_.empty()) {
    if (round_.empty()) {
      const std::span<const std::uint8_t> next = source_->next_round();
      round_.assign(next.begin(), next.end());
      ++sampled_;
    }
    const qec::readout_place all_values =
        phase_ == phase::rounds ? plan_.values_with(sent_bits_ + num_bits_ + round_.size()) : next_values_;
    if (!has_room_for(num_bits_ + round_.size(), all_values + sent_values_ * -1)) {
      if (num_bits_ == 0)
        next_values_ = values_alone(all_values);
      return;
    }
    next_values_ = all_values;
    bits_.resize((num_bits_ + round_.size() + 7) / 8);
    for (const std::uint8_t bit : round_) {
      bits_[num_bits_ / 8] = static_cast<std::uint8_t>(bits_[num_bits_ / 8] | bit << num_bits_ % 8);
      ++num_bits_;
    }
    round_.clear();
  }
}

bool stream_player::send_bits(std::uint64_t now) {
  if (open_of(false) >= options_.window)
    return false;
  if (phase_ == phase::tail && !tail_begun_) {
    tail_begun_ = send(kind::begin_tail, now);
    return tail_begun_;
  }
  collect_rounds(now);
  if ((num_bits_ == 0 && next_values_ == sent_values_) || !send(kind::enqueue, now))
    return false;
  sent_bits_ += num_bits_;
  sent_values_ = next_values_;
  bits_.clear();
  num_bits_ = 0;
  const std::uint64_t sent = sampled_ - (round_.empty() ? 0 : 1);
  result_.rounds += sent - sent_;
  sent_ = sent;
  if (phase_ == phase::rounds && sent_ == plan_.rounds_before_tail())
    phase_ = phase::tail;
  if (sent_ == plan_.rounds()) {
    phase_ = phase::ending;
    const std::uint64_t due = due_ns(sent_ - 1);
    last_late_ns_ = now - std::min(now, due);
  }
  return true;
}

/// The rounds of the windows that have been sent.
std::uint64_t stream_player::wanted_round() const {
  return phase_ == phase::ending ? plan_.rounds() : plan_.final_after(std::min(sent_, plan_.rounds_before_tail()));
}

/// The read comes after the request that completes its window, so it holds up nothing. While that may be among those
/// that were refused, the read would keep a slot of the server that they need. After a BUSY the next answer tells.
bool stream_player::send_read(std::uint64_t now) {
  const bool was_refused = !refused_.empty() || bits_busy_.until() != 0;
  if (open_of(true) != 0 || was_refused || wanted_round() <= committed_ || !read_busy_.is_over(now))
    return false;
  wanted_ = wanted_round();
  return send(kind::read, now);
}

/// The first of those that were refused, when no other one with bits is open.
bool stream_player::send_refused(std::uint64_t now) {
  if (open_of(false) != 0 || !bits_busy_.is_over(now) ||
      !transmit(refused_.front().what, refused_.front().payload, now))
    return false;
  refused_.erase(refused_.begin());
  return true;
}

bool stream_player::send(kind what, std::uint64_t now) {
  payload_.clear();
  const auto put = [this](std::uint64_t number) {
    for (int byte = 0; byte < 8; ++byte)
      payload_.push_back(static_cast<std::uint8_t>(number >> (8 * byte)));
  };
  put(options_.decoder_ids.front());
  if (what == kind::enqueue) {
    const bool has_values = plan_.readout().any();
    put(counter_ + 1);
    if (!has_values)
      put(0); // mapping id
    put(num_bits_);
    if (has_values) {
      put(static_cast<std::uint64_t>(next_values_.value - sent_values_.value));
      put(static_cast<std::uint64_t>(next_values_.flag - sent_values_.flag));
      put(static_cast<std::uint64_t>(plan_.kind())); // and a 0 after it
    }
    payload_.insert(payload_.end(), bits_.begin(), bits_.end());
    plan_.append_values(sent_values_, next_values_, payload_);
  } else if (what == kind::begin_tail) {
    put(counter_ + 1);
  } else if (what == kind::read) {
    put(plan_.num_observables());
    put(0); // the corrections of all rounds, not those since the last read
    put(wanted_);
  }
  const bool has_bits = what == kind::enqueue || what == kind::begin_tail;
  if (!transmit(what, payload_, now))
    return false;
  counter_ += has_bits ? 1 : 0;
  return true;
}

bool stream_player::transmit(kind what, const std::vector<std::uint8_t> &payload, std::uint64_t now) {
  if (std::ranges::any_of(open_, [&](const open_call &r) { return next_id_ - r.id >= id_window(options_); }))
    return false;
  const std::uint32_t enqueue = plan_.readout().any() ? qec::kEnqueueReadoutFunctionId : qec::kEnqueueFunctionId;
  const std::uint32_t function = what == kind::enqueue      ? enqueue
                                 : what == kind::begin_tail ? qec::kBeginTailFunctionId
                                 : what == kind::read       ? qec::kGetCommittedFunctionId
                                                            : qec::kResetFunctionId;
  if (!link_.send(next_id_, function, payload, now))
    return false;
  const bool has_bits = what == kind::enqueue || what == kind::begin_tail;
  open_.push_back({what, next_id_++, now, has_bits ? payload : std::vector<std::uint8_t>()});
  ++result_.requests;
  return true;
}

void stream_player::on_answer(const link_answer &answer, std::uint64_t now) {
  const auto found = std::ranges::find(open_, answer.header.request_id, &open_call::id);
  if (found == open_.end())
    return; // given up before
  open_call request = std::move(*found);
  open_.erase(found);
  if (answer.header.ptp_timestamp != request.sent_ns) {
    ++result_.wrong_echo;
    note("an answer echoes another timestamp than its request has");
  } else if (request.what != kind::read) {
    result_.request_time.record(now - request.sent_ns);
  }
  const std::int32_t status = answer.header.status;
  const bool reads = request.what == kind::read || request.what == kind::reset;
  busy_backoff &busy = reads ? read_busy_ : bits_busy_;
  if (is_busy(true, status)) { // it is sent again
    ++result_.busy;
    busy.refused(now);
    if (!reads && phase_ != phase::draining) { // a request that was sent again has a later id than its successors
      const auto place = std::ranges::upper_bound(refused_, counter_of(request), {}, &stream_player::counter_of);
      refused_.insert(place, std::move(request));
    }
    return;
  }
  quiet_since_ns_ = now;
  busy.accepted();
  if (!reads)
    read_busy_.accepted(); // a read that has overtaken these bits was BUSY: it is sent again now
  if (status != 0) {
    // The stream says so to each request until it is reset: once for an experiment.
    const bool has_ended = phase_ == phase::draining || phase_ == phase::idle;
    const qec::decode_status decoded = decode_status_of(true, status);
    if (decoded == qec::decode_status::internal_error)
      ++result_.bad_status;
    else if (!has_ended && result_.undecided.add(decoded) && decoded == qec::decode_status::not_converged)
      unsolved_after_ = sent_; // of a deadline the time decides
    const bool gap = status == static_cast<std::int32_t>(qec::server_status::syndromes_dropped) && !refused_.empty();
    return fail(
        fmt::format("status {}: {}", status,
                    gap ? "SYNDROMES_DROPPED: a request with rounds was BUSY, and a later one was not; give the "
                          "server a longer queue_length or more slots, or a smaller --window. Or another requester "
                          "uses the decoder"
                        : answer_status_text(true, status)));
  }
  if (phase_ == phase::draining)
    return;
  if (request.what == kind::reset)
    begin_experiment(now);
  else if (request.what == kind::read)
    on_frame(answer.result, now);
}

void stream_player::begin_experiment(std::uint64_t now) {
  source_ = &plan_.begin(result_.experiments - 1);
  bits_.clear();
  round_.clear();
  num_bits_ = counter_ = sampled_ = sent_ = committed_ = wanted_ = 0;
  sent_bits_ = 0;
  sent_values_ = next_values_ = {};
  result_.first_tenth_ns = result_.last_tenth_ns = 0;
  tail_begun_ = false;
  refused_.clear();
  bits_busy_.accepted();
  phase_ = phase::rounds;
  begin_ns_ = now;
}

void stream_player::on_frame(std::span<const std::uint8_t> result, std::uint64_t now) {
  if (result.size() != qec::kCommittedHeadBytes + plan_.frame_bytes())
    return fail("an answer to get_committed has a wrong length");
  const std::uint64_t committed = number_at(result, 0), pushed = number_at(result, 8);
  if (committed < wanted_ || committed > pushed || pushed > sent_)
    return fail(fmt::format("get_committed says that {} of {} rounds are final; {} were asked for, {} sent; if another "
                            "requester uses the decoder, give each its own",
                            committed, pushed, wanted_, sent_));
  const std::uint64_t before = std::exchange(committed_, committed);
  ++result_.frames;
  frames_.committed.push_back(committed);
  frames_.bits.insert(frames_.bits.end(), result.begin() + qec::kCommittedHeadBytes, result.end());
  const std::uint64_t lag_ns = now - std::min(now, due_ns(committed - 1));
  if (committed == plan_.rounds()) {
    result_.tail_time.record(lag_ns);
    worst_lag_ns_ = std::max(worst_lag_ns_, lag_ns);
    return end_experiment(true);
  }
  result_.lag_time.record(lag_ns);
  result_.backlog.record(now, lag_ns);
  result_.lag_rounds.record(rounds_due(now) - committed);
  record_windows(before, now);
}

/// The windows that this frame has made known to be final: those that it answers for the frames that were not asked
/// for, because one read is open at a time, have waited longer. Without them a server that pauses would have one slow
/// frame for all windows of the pause.
void stream_player::record_windows(std::uint64_t before, std::uint64_t now) {
  std::uint64_t window_ns = 0;
  for (std::uint64_t line = committed_; line > before; line -= std::min(line, plan_.commit())) {
    if (plan_.final_after(line + plan_.buffer()) != line)
      continue; // parallel windows: it became final with the next one
    window_ns = now - std::min(now, due_ns(line + plan_.buffer() - 1));
    result_.window_time.record(window_ns);
    worst_lag_ns_ = std::max(worst_lag_ns_, window_ns);
  }
  const std::uint64_t tenth = 10 * committed_ / plan_.rounds();
  window_ns = now - std::min(now, due_ns(committed_ + plan_.buffer() - 1)); // of the last one
  if (std::uint64_t *const least = tenth == 0 ? &result_.first_tenth_ns : tenth == 9 ? &result_.last_tenth_ns : nullptr)
    *least = *least == 0 ? window_ns : std::min(*least, window_ns);
}

void stream_player::end_experiment(bool complete) {
  phase_ = phase::idle;
  if (sent_ == plan_.rounds()) // all rounds were sent
    result_.pace.add(sent_, cycle_ns_, last_late_ns_,
                     cycle_ns_ == 0 ? 0 : static_cast<std::uint64_t>(static_cast<double>(worst_lag_ns_) / cycle_ns_));
  sent_ = worst_lag_ns_ = 0;
  if (begin_ns_ != 0)
    result_.wall_ns += clock_() - begin_ns_;
  begin_ns_ = 0;
  if (complete)
    ++result_.ended;
  const std::optional<std::uint64_t> unsolved_after = std::exchange(unsolved_after_, std::nullopt);
  if (frames_.committed.empty() && !unsolved_after)
    return;
  const frame_check found = plan_.check(result_.experiments - 1, frames_, unsolved_after);
  const bool is_missing = unsolved_after && found.has_solutions;
  result_.missing += is_missing ? 1 : 0;
  result_.mismatches += found.wrong + found.other_windows + (is_missing ? 1 : 0);
  if (is_missing)
    note("the server has no solution for a window, and the decoder here has one for each");
  if (found.too_slow) {
    result_.unchecked += frames_.committed.size();
    note(fmt::format("the check of {} frames took longer than a decoder may that only the server names: give --decoder",
                     frames_.committed.size()));
  }
  result_.logical_errors += complete && found.logical_error ? 1 : 0;
  if (found.other_windows != 0)
    note(fmt::format("{} frames are of a number of rounds at which no window ends here ({}): give --decoder as the "
                     "server has it",
                     found.other_windows, plan_.description()));
  if (found.wrong != 0)
    note(fmt::format("{} of {} frames are not those of the decoder here", found.wrong, frames_.committed.size()));
  quiet_since_ns_ = clock_(); // the check took its time
}

/// The open requests are awaited, and the next experiment begins.
void stream_player::fail(const std::string &why) {
  if (phase_ != phase::draining)
    note(why);
  refused_.clear();
  if (phase_ != phase::idle)
    phase_ = phase::draining;
}

/// Else nothing happens until a round is due. A round that is due and in no request waits, too.
bool stream_player::waits_for_server() const {
  return !open_.empty() || !refused_.empty() || num_bits_ != 0 || !round_.empty() || phase_ != phase::rounds;
}

void stream_player::check_losses(std::uint64_t now) {
  const std::size_t lost = std::erase_if(open_, [&](const open_call &r) {
    if (now < r.sent_ns + timeout_ns_)
      return false;
    link_.give_up(r.id);
    return true;
  });
  result_.lost += lost;
  if (lost != 0)
    fail("no answer within the timeout");
  if (phase_ == phase::idle)
    return;
  if (!link_.alive()) {
    result_.stalled = true;
    result_.notes.push_back(link_.end_text());
  } else if (waits_for_server() && now > quiet_since_ns_ + 2 * timeout_ns_) {
    result_.stalled = true;
    result_.notes.emplace_back("no progress within twice the timeout");
  }
  if (result_.stalled)
    end_experiment(false); // the frames that came are checked
}

void stream_player::note(const std::string &what) {
  if (result_.notes.size() < kMaxNotes)
    result_.notes.push_back(fmt::format("experiment {}: {}", result_.experiments, what));
}

} // namespace cudaq::realtime::tools
