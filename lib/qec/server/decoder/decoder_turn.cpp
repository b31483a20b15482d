// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/server/decoder/decoder_turn.h"

#include "lib/qec/server/decoder/probes.h"

#include <algorithm>

namespace cudaq::qec::realtime {

decoder_turn::decoder_turn(request_queue &queue, locked_session &session, decoder_counters &counters,
                           std::uint64_t age_limit_ns, std::uint32_t max_waits)
    : queue_(queue), session_(session), counters_(counters), age_limit_ns_(age_limit_ns) {
  waits_.reserve(max_waits);
}

void decoder_turn::connect(const answer_receiver &receiver, worker_pool &pool, held_slots &slots,
                           request_recorder *recorder) {
  receiver_ = receiver;
  pool_ = &pool;
  slots_ = &slots;
  recorder_ = recorder;
}

void decoder_turn::leave_pool() noexcept {
  if (pool_ != nullptr)
    pool_->withdraw(*this);
}

bool decoder_turn::has_work() const noexcept {
  const std::int64_t check = next_check_.load();
  return can_go_on() || has_news_.load() != 0 ||
         (check != kNoWait && (ends() || clock::now().time_since_epoch().count() >= check));
}

bool decoder_turn::work() noexcept {
  turn();
  scheduled_.clear_bits(1);
  return has_work() && scheduled_.raise_bits(1) == 0;
}

void decoder_turn::wake() noexcept {
  if (scheduled_.raise_bits(1) == 0)
    pool_->submit(*this);
}

void decoder_turn::note_progress() noexcept {
  has_news_.raise_bits(1);
  wake();
}

void decoder_turn::end_waits() noexcept {
  ending_.store(1);
  if (waits_.capacity() != 0 && pool_ != nullptr)
    wake();
}

std::uint32_t decoder_turn::turn() noexcept {
  has_news_.clear_bits(1);
  request_queue::entry *const e = queue_.front();
  if (e == nullptr) {
    session_.follow_workers();
    answer_waits(false);
    return 0;
  }
  request_moments moments = e->moments;
  moments.taken = counters_.times().now();
  CUDAQ_QEC_PROBE(taken, e->job.request_id, e->job.slot);
  const bool too_old =
      age_limit_ns_ != 0 && counters_.times().clock().ns_between(moments.accepted, moments.taken) > age_limit_ns_;
  const locked_session::served_answer served = session_.serve(e->read, e->result, e->arrival, too_old);
  moments.decoded = counters_.times().now();
  const cudaq_host_job_t job = e->job;
  const std::span<std::uint8_t> result = e->result;
  CUDAQ_QEC_PROBE(decoded, job.request_id, job.slot);
  const wire_function function = e->read.request.function;
  held_.store(served.waits && has_counter(function) ? 1 : 0);
  if (held_.peek() != 0) {
    answer_waits(false);
    return 0;
  }
  server_answer answer = served;
  if (answer.waits)
    answer = wait_for_round(*e, moments);
  // The entry is free before the answer leaves: a requester that waits for its answers is never answered busy.
  queue_.pop();
  if (!answer.waits)
    finish(job, result, answer, moments);
  answer_waits(function == wire_function::reset && answer.status == 0 && !served.is_repeated);
  return 1;
}

server_answer decoder_turn::wait_for_round(const request_queue::entry &e, const request_moments &moments) noexcept {
  const wire_request &request = e.read.request;
  if (std::ranges::any_of(waits_, [&](const round_wait &w) { return is_copy(w.read.request, request); })) {
    counters_.add_answer(request.function, kNoRoomForCopy);
    return kNoRoomForCopy;
  }
  if (waits_.size() == waits_.capacity() || !slots_->take(e.job.slot, waits_.size(), *this))
    return session_.refuse_waiting(request, server_status::busy, e.arrival, false);
  const std::uint64_t limit = age_limit_ns_ != 0 ? age_limit_ns_ : kUsualRoundWaitNs;
  waits_.push_back({e.read, e.result, e.job, e.arrival, e.arrival + std::chrono::nanoseconds(limit), moments});
  return {.waits = true};
}

void decoder_turn::finish(const cudaq_host_job_t &job, std::span<const std::uint8_t> result,
                          const server_answer &answer, const request_moments &moments) noexcept {
  // Before the answer leaves: after it `result` is the requester's.
  const bool is_recorded =
      recorder_ != nullptr && recorder_->add_answer(moments.record, answer.status, result.first(answer.bytes));
  receiver_.answer(receiver_.user, job, answer);
  CUDAQ_QEC_PROBE(answered, job.request_id, job.slot);
  const std::uint64_t answered = counters_.times().now();
  counters_.times().record(moments, answered, false);
  if (is_recorded)
    recorder_->end(moments, answered);
  answered_.bump();
}

/// Answers the requests whose round is final, and those that cannot wait longer. The stream that they wait for ends
/// with a reset.
void decoder_turn::answer_waits(bool new_stream) noexcept {
  if (waits_.empty())
    return;
  const clock::time_point now = clock::now();
  const bool at_end = ends();
  std::erase_if(waits_, [&](const round_wait &w) {
    server_answer answer{.waits = true};
    // Not for each piece of news: to serve a request is to look it up among earlier ones and to read all observables.
    if (!new_stream && session_.need_not_wait(w.read.request))
      answer = session_.serve(w.read, w.result, w.arrival, false);
    if (answer.waits) {
      const bool at_limit = now >= w.deadline;
      if (!new_stream && !at_end && !at_limit && !slots_->is_wanted(w.job.slot, now - w.arrival >= kSlotCheckTime))
        return false;
      const server_status why = at_end ? server_status::not_ready : server_status::busy;
      answer = session_.refuse_waiting(w.read.request, why, w.arrival, !new_stream && !at_end && at_limit);
    }
    slots_->give_back(w.job.slot);
    request_moments moments = w.moments;
    moments.decoded = counters_.times().now();
    finish(w.job, w.result, answer, moments);
    return true;
  });
  plan_next_check(now);
}

void decoder_turn::plan_next_check(clock::time_point now) noexcept {
  const auto count = [](clock::time_point time) { return static_cast<std::int64_t>(time.time_since_epoch().count()); };
  const std::int64_t planned = next_check_.peek();
  std::int64_t next = waits_.empty() ? kNoWait : count(waits_.front().deadline);
  if (!waits_.empty() && slots_->must_poll()) // one that is planned already stays: each plan takes the pool's mutex
    next = std::min(next, planned != kNoWait && planned > count(now) ? planned : count(now + kSlotCheckTime));
  if (next == planned)
    return;
  next_check_.store(next);
  if (next != kNoWait)
    pool_->wake_at(*this, next);
}

} // namespace cudaq::qec::realtime
