// SPDX-License-Identifier: Apache-2.0
#include "tools/replay/replay_player.h"

#include <algorithm>
#include <utility>

namespace cudaq::realtime::tools {
namespace {

/// A server keeps a slot for each, and at most half of its slots.
constexpr std::size_t kMaxWaiting = 2;
constexpr std::uint64_t kBusyPauseNs = 200'000, kLateNs = 1'000'000;

bool waits_for_round(const qec::recorded_request &request) {
  const qec::read_result read = qec::read_request(request.function_id, request.payload);
  return read.status == qec::server_status::ok && read.request.wait_for_round != 0;
}

} // namespace

replay_player::replay_player(const options &o, replay_plan &plan, link &to, std::function<std::uint64_t()> clock)
    : options_(o), plan_(plan), link_(to), clock_(std::move(clock)), next_id_(o.first_id) {
  result_.begin_ns = quiet_since_ns_ = clock_();
}

std::size_t replay_player::waiting() const {
  return static_cast<std::size_t>(std::ranges::count_if(open_, [](const open_request &r) { return r.waits; }));
}

void replay_player::interrupt() {
  no_more_ = interrupted_ = true;
  next_.reset();
}

bool replay_player::turn() {
  const std::uint64_t now = clock_();
  const bool had_answers = take_answers();
  if (had_answers || (open_.empty() && !repeats_)) {
    quiet_since_ns_ = now;
  } else if (now - quiet_since_ns_ > options_.timeout_ns || !link_.alive()) {
    for (const open_request &request : open_)
      link_.give_up(request.id);
    result_.stalled = true;
  }
  result_.end_ns = now;
  return (!result_.stalled && send_next(now)) || had_answers;
}

bool replay_player::take_answers() {
  bool any = false;
  while (const std::optional<link_answer> answer = link_.receive()) {
    const auto found = std::ranges::find(open_, answer->header.request_id, &open_request::id);
    if (found == open_.end())
      continue;
    open_request request = std::move(*found);
    open_.erase(found);
    if (!request.waits && qec::was_not_executed(request.recorded.function_id, answer->header.status)) {
      ++result_.busy; // nothing else is open, so it is still the next one
      --result_.played;
      not_before_ns_ = clock_() + kBusyPauseNs;
      repeats_ = !interrupted_;
      if (repeats_)
        next_ = std::move(request.recorded);
      continue;
    }
    any = true;
    repeats_ = repeats_ && request.waits;
    if (!request.waits)
      result_.round_trip.record(clock_() - request.sent_ns);
    compare(request.recorded, *answer);
  }
  return any;
}

bool replay_player::send_next(std::uint64_t now) {
  if (open_.size() > waiting())
    return false; // one that does not wait
  if (!next_ && !no_more_) {
    next_ = plan_.next();
    no_more_ = !next_;
  }
  if (!next_ || now < not_before_ns_)
    return false;
  if (begin_ns_ == 0) {
    begin_ns_ = now;
    first_arrived_ns_ = next_->arrived_ns;
  }
  const std::uint64_t due = begin_ns_ + (next_->arrived_ns - std::min(next_->arrived_ns, first_arrived_ns_));
  if (options_.as_recorded && now < due)
    return false;
  const bool waits = waits_for_round(*next_);
  if (waits && waiting() == kMaxWaiting)
    return false;
  if (!link_.send(next_id_, next_->function_id, next_->payload, now))
    return false;
  if (options_.as_recorded && now - due > kLateNs)
    ++result_.late;
  ++result_.played;
  open_.push_back({std::move(*next_), next_id_++, now, waits});
  next_.reset();
  return true;
}

void replay_player::compare(const qec::recorded_request &recorded, const link_answer &answer) {
  ++result_.answered;
  if (!recorded.is_answered || !recorded.is_whole()) {
    ++result_.not_compared;
    return;
  }
  const qec::answer_verdict verdict = qec::compare_answers(recorded.function_id, {recorded.status, recorded.result},
                                                           {answer.header.status, answer.result});
  if (verdict == qec::answer_verdict::equal) {
    ++result_.equal;
  } else if (verdict == qec::answer_verdict::depends_on_time) {
    ++result_.depends_on_time;
  } else if (result_.differences++ < replay_result::kKept) {
    result_.first.push_back({recorded, verdict, {answer.header.status, {answer.result.begin(), answer.result.end()}}});
  }
}

} // namespace cudaq::realtime::tools
