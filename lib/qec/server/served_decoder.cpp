// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/server/served_decoder.h"

#include "cudaq/realtime/daemon/dispatcher/rpc_wire_format.h"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace cudaq::qec::realtime {
std::uint64_t queue_bytes(std::uint32_t queue_length, std::uint64_t bits) noexcept {
  return queue_length * (sizeof(served_decoder::entry) + (bits + 7) / 8);
}

served_decoder::served_decoder(const decoder_limits &limits, std::unique_ptr<decoding_unit> unit)
    : limits_(limits), num_observables_(unit->num_observables()), num_detectors_(unit->num_detectors()),
      bits_per_shot_(unit->bits_per_shot()), is_stream_(unit->is_stream()), identity_(unit->identity()),
      session_(make_session(std::move(unit), limits.sequence)), entries_(limits.queue_length) {
  digest_.store(session_->unit().digest());
  listen();
  waits_.reserve(is_stream_ ? limits.queue_length : 0);
  const std::uint64_t bits = session_->unit().max_request_bits();
  for (entry &e : entries_)
    e.bits.resize(static_cast<std::size_t>((bits + 7) / 8));
}

served_decoder::~served_decoder() { session_.reset(); }

/// The workers of a stream wake the decoder. Without a queue nothing waits for them.
void served_decoder::listen() noexcept {
  if (!is_stream_ || limits_.queue_length == 0)
    return;
  session_->listen({.user = this, .progressed = [](void *self) {
                      auto &decoder = *static_cast<served_decoder *>(self);
                      decoder.has_news_.raise_bits(1);
                      decoder.wake();
                    }});
}

void served_decoder::connect(const answer_receiver &receiver, decoder_pool &pool) {
  receiver_ = receiver;
  pool_ = &pool;
}

void served_decoder::close() {
  const std::lock_guard<std::mutex> lock(queue_mutex_);
  closed_ = true;
}

bool served_decoder::has_work() const noexcept {
  const std::int64_t deadline = first_deadline_.load();
  return can_go_on() || has_news_.load() != 0 ||
         (deadline != kNoWait && (ending_.load() != 0 || clock::now().time_since_epoch().count() >= deadline));
}

bool served_decoder::unschedule() noexcept {
  scheduled_.clear_bits(1);
  return has_work() && scheduled_.raise_bits(1) == 0;
}

void served_decoder::wake() noexcept {
  if (scheduled_.raise_bits(1) == 0)
    pool_->push(*this);
}

void served_decoder::end_waits() noexcept {
  ending_.store(1);
  if (is_stream_ && limits_.queue_length != 0 && pool_ != nullptr)
    wake();
}

bool served_decoder::submit(const read_result &read, std::span<std::uint8_t> result, const cudaq_host_job_t &job,
                            server_answer &now) {
  requests_.add();
  if (limits_.queue_length == 0) {
    const clock::time_point arrival = clock::now();
    now = serve(read, result, arrival, false);
    record_latency(arrival);
    return true;
  }
  now = enter(read, result, job);
  if (now.waits) {
    wake();
    return false;
  }
  count(read.request.function, now);
  return true;
}

/// `waits`: the request is in the queue.
server_answer served_decoder::enter(const read_result &read, std::span<std::uint8_t> result,
                                    const cudaq_host_job_t &job) {
  const wire_function function = read.request.function;
  const std::lock_guard<std::mutex> lock(queue_mutex_);
  if (closed_)
    return refuse(function, server_status::not_ready);
  const clock::time_point arrival = clock::now();
  const std::uint64_t at = head_.peek();
  const bool full = at - tail_.load() == entries_.size();
  if (read.status == server_status::ok && changes_state(read.request)) {
    const auto first = arrivals_.find(read.request, replay_cache::proof::time, arrival);
    if (!first)
      arrivals_.keep(read.request, static_cast<std::int32_t>(full ? server_status::busy : server_status::ok), {},
                     arrival);
    else if (first->status != 0)
      return refuse(function, server_status::busy); // as the first one: its requester may have sent another request
    else if (full)
      return {CUDAQ_RPC_ERR_BUSY, 0}; // this copy only: an earlier one came in
  }
  if (full)
    return refuse(function, server_status::busy);
  entry &e = entries_[at % entries_.size()];
  e.read = read;
  const auto bits = read.request.bits;
  e.read.request.bits = std::span<const std::uint8_t>(e.bits).first(std::min(bits.size(), e.bits.size()));
  std::copy_n(bits.begin(), e.read.request.bits.size(), e.bits.begin());
  if (bits.size() > e.bits.size()) // longer than a shot
    e.read.status = server_status::bad_request;
  e.result = result;
  e.job = job;
  e.arrival = arrival;
  head_.store(at + 1);
  return {.waits = true};
}

std::uint64_t served_decoder::waiting() const noexcept {
  const std::uint64_t served = tail_.load(), taken = head_.load();
  return taken - served;
}

std::uint32_t served_decoder::turn() noexcept {
  has_news_.clear_bits(1);
  const std::uint64_t at = tail_.peek();
  if (at == head_.load()) {
    follow_workers();
    answer_waits(false);
    return 0;
  }
  entry &e = entries_[at % entries_.size()];
  const bool too_old =
      limits_.age_limit_ns != 0 && clock::now() - e.arrival > std::chrono::nanoseconds(limits_.age_limit_ns);
  const std::uint64_t repeated = repeated_.value(); // of this decoder, so only this thread adds to it
  server_answer answer = serve(e.read, e.result, e.arrival, too_old);
  const cudaq_host_job_t job = e.job;
  const wire_function function = e.read.request.function;
  held_.store(answer.waits && has_counter(function) ? 1 : 0);
  if (held_.peek() != 0) {
    answer_waits(false);
    return 0;
  }
  if (answer.waits && waits_.size() < waits_.capacity()) {
    const std::uint64_t limit = limits_.age_limit_ns != 0 ? limits_.age_limit_ns : kUsualRoundWaitNs;
    waits_.push_back({e.read, e.result, job, e.arrival, e.arrival + std::chrono::nanoseconds(limit)});
  } else if (answer.waits) {
    answer = refuse_wait(e.read.request, server_status::busy, e.arrival);
  }
  if (!answer.waits)
    record_latency(e.arrival);
  // The entry is free before the answer leaves: a requester that waits for its answers is never answered busy.
  tail_.store(at + 1);
  if (!answer.waits)
    finish(job, answer);
  answer_waits(function == wire_function::reset && answer.status == 0 && repeated_.value() == repeated);
  return 1;
}

void served_decoder::finish(const cudaq_host_job_t &job, const server_answer &answer) noexcept {
  receiver_.answer(receiver_.user, job, answer);
  answered_.add();
}

/// Answers the requests whose round is final, and those that cannot wait longer. The stream that they wait for ends
/// with a reset.
void served_decoder::answer_waits(bool new_stream) noexcept {
  if (waits_.empty())
    return;
  const clock::time_point now = clock::now();
  const bool ends = ending_.load() != 0 && waiting() == 0;
  std::erase_if(waits_, [&](const round_wait &w) {
    server_answer answer{.waits = true};
    if (!new_stream)
      answer = serve(w.read, w.result, w.arrival, false);
    if (answer.waits) {
      if (!new_stream && !ends && now < w.deadline)
        return false;
      answer = refuse_wait(w.read.request, ends ? server_status::not_ready : server_status::busy, w.arrival);
    }
    record_latency(w.arrival);
    finish(w.job, answer);
    return true;
  });
  const std::int64_t first = waits_.empty() ? kNoWait : waits_.front().deadline.time_since_epoch().count();
  if (first == first_deadline_.peek())
    return;
  first_deadline_.store(first);
  if (first != kNoWait)
    pool_->wake_at(*this, first);
}

/// Its copies may wait, too, or come later: all have this answer.
server_answer served_decoder::refuse_wait(const wire_request &request, server_status why,
                                          clock::time_point arrival) noexcept {
  const std::lock_guard<std::mutex> lock(session_mutex_);
  const server_answer answer = session_->refuse_copies(request, why, arrival);
  count(request.function, answer);
  return answer;
}

server_answer served_decoder::serve(const read_result &read, std::span<std::uint8_t> result, clock::time_point arrival,
                                    bool too_old) noexcept {
  const std::lock_guard<std::mutex> lock(session_mutex_);
  begun_.bump();
  const std::uint64_t shots = session_->shots();
  exchange_if_possible();
  const deadline_counts before = session_->unit().deadlines();
  const bool had_all_bits = session_->has_all_bits();
  const server_answer answer = serve_locked(read, result, arrival, too_old);
  if (!had_all_bits && session_->has_all_bits())
    tail_arrival_ = arrival;
  const deadline_counts after = session_->unit().deadlines();
  deadline_met_.add(after.met - before.met);
  deadline_missed_.add(after.missed - before.missed);
  deadline_late_.add(after.late - before.late);
  publish_failures();
  exchange_if_possible();
  publish(shots);
  if (!answer.waits)
    count(read.request.function, answer);
  return answer;
}

/// The caller holds session_mutex_, as each writer of failures_ does.
void served_decoder::publish_failures() noexcept {
  if (session_->failures() == failures_)
    return;
  const std::lock_guard<std::mutex> lock(failure_mutex_);
  failures_ = session_->failures();
  std::snprintf(last_failure_.data(), last_failure_.size(), "%s", session_->last_failure());
}

decode_failures served_decoder::failures() const {
  const std::lock_guard<std::mutex> lock(failure_mutex_);
  return {failures_, last_failure_.data()};
}

void served_decoder::follow_workers() noexcept {
  if (!is_stream_)
    return;
  const std::lock_guard<std::mutex> lock(session_mutex_);
  publish(session_->shots());
}

/// Counts the shots that were decoded since the count was `shots_before`.
void served_decoder::publish(std::uint64_t shots_before) noexcept {
  session_->advance();
  unfinished_.store(session_->is_unfinished() ? 1 : 0);
  const std::uint64_t ended = session_->shots() - shots_before;
  shots_.add(ended);
  if (!is_stream_)
    return;
  if (ended != 0) {
    const std::uint64_t ns = ns_since(tail_arrival_);
    tail_ns_.add(ns);
    worst_tail_ns_.store(std::max(ns, worst_tail_ns_.peek()));
  }
  const stream_totals now = session_->totals();
  pushed_.store(now.pushed);
  committed_.store(now.committed);
  lag_.store(now.lag);
  worst_lag_.store(now.worst_lag);
  deadline_met_.add(now.deadlines.met - deadline_met_.value());
  deadline_missed_.add(now.deadlines.missed - deadline_missed_.value());
  deadline_late_.add(now.deadlines.late - deadline_late_.value());
}

server_answer served_decoder::serve_locked(const read_result &read, std::span<std::uint8_t> result,
                                           clock::time_point arrival, bool too_old) noexcept {
  const wire_function function = read.request.function;
  if (read.status == server_status::ok)
    if (const auto again = session_->answer_again(read.request, result, arrival)) {
      repeated_.add();
      return *again;
    }
  server_status refused = read.status;
  if (refused == server_status::ok && too_old && function != wire_function::reset) {
    too_old_.add();
    refused = has_counter(function) ? server_status::syndromes_dropped : server_status::busy;
  }
  if (refused == server_status::ok) {
    const server_answer answer = session_->serve(read.request, result, arrival);
    if (!answer.waits || limits_.queue_length != 0)
      return answer;
    refused = server_status::busy; // no thread of the pool could answer it later
  } else if (has_counter(function)) {
    session_->latch(refused);
  }
  return refused == server_status::busy ? session_->refuse_copies(read.request, refused, arrival)
                                        : refuse(function, refused);
}

void served_decoder::exchange_if_possible() noexcept {
  if (offered_ == nullptr || !session_->may_exchange())
    return;
  std::unique_ptr<decoding_unit> previous = session_->exchange(std::move(offered_));
  listen();
  // Of a stream this is a request, perhaps long after the reload: the thread of the next reload frees it.
  if (may_take_back_ || is_stream_)
    previous_ = std::move(previous);
  digest_.store(session_->unit().digest());
  exchanges_.add();
  const std::lock_guard<std::mutex> lock(identity_mutex_);
  identity_ = session_->unit().identity();
}

void served_decoder::count(wire_function function, const server_answer &answer) noexcept {
  by_status_[static_cast<std::size_t>(counted_status(function, answer.status))].add();
}

void served_decoder::offer(std::unique_ptr<decoding_unit> unit) {
  std::unique_ptr<decoding_unit> previous; // of a reset since the last discard; as in discard_previous
  const std::lock_guard<std::mutex> lock(session_mutex_);
  std::swap(previous, previous_);
  superseded_ = std::move(offered_);
  offered_ = std::move(unit);
  may_take_back_ = true;
  exchange_if_possible();
}

bool served_decoder::settle() {
  const std::lock_guard<std::mutex> lock(session_mutex_);
  return offered_ == nullptr || is_stream_;
}

void served_decoder::discard_previous() {
  std::unique_ptr<decoding_unit> previous, superseded; // destroyed after the lock is free: that may take long
  const std::lock_guard<std::mutex> lock(session_mutex_);
  may_take_back_ = false;
  std::swap(previous, previous_);
  std::swap(superseded, superseded_);
}

void served_decoder::take_back() {
  std::unique_ptr<decoding_unit> withdrawn, previous; // as above
  const std::lock_guard<std::mutex> lock(session_mutex_);
  const bool is_used = offered_ == nullptr;
  std::swap(withdrawn, offered_);
  std::swap(offered_, is_used && superseded_ == nullptr ? previous_ : superseded_);
  std::swap(previous, previous_);
  exchange_if_possible();
}

model_facts served_decoder::facts() const noexcept {
  return {num_detectors_, bits_per_shot_, num_observables_, digest_.load()};
}

std::shared_ptr<const decoder_identity> served_decoder::identity() const {
  const std::lock_guard<std::mutex> lock(identity_mutex_);
  return identity_;
}

bool served_decoder::same_shape(const decoding_unit &other) {
  const std::lock_guard<std::mutex> lock(session_mutex_);
  return session_->unit().same_shape(other);
}

std::string served_decoder::shape_text() {
  const std::lock_guard<std::mutex> lock(session_mutex_);
  return session_->unit().shape_text();
}

decoder_counts served_decoder::counts() const noexcept {
  decoder_counts c;
  // What comes first is read last: so there are never more answers than requests, nor more final rounds than pushed.
  for (std::size_t i = 0; i < c.by_status.size(); ++i)
    c.by_status[i] = by_status_[i].value();
  c.shots = shots_.value();
  c.too_old = too_old_.value();
  c.exchanges = exchanges_.value();
  c.stream.committed = committed_.load();
  c.stream.pushed = pushed_.load();
  c.stream.lag = lag_.load();
  c.stream.worst_lag = worst_lag_.load();
  c.tail_ns = tail_ns_.value();
  c.worst_tail_ns = worst_tail_ns_.load();
  c.deadlines = {deadline_met_.value(), deadline_missed_.value(), deadline_late_.value()};
  c.repeated = repeated_.value();
  c.requests = requests_.value();
  return c;
}

bool served_decoder::is_serving() noexcept {
  return !std::unique_lock<std::mutex>(session_mutex_, std::try_to_lock).owns_lock();
}

} // namespace cudaq::qec::realtime
