// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/server/decoder/locked_session.h"

#include <utility>

namespace cudaq::qec::realtime {

locked_session::locked_session(std::unique_ptr<decoding_unit> unit, bool sequence, bool may_wait,
                               const stream_listener &progressed, decoder_counters &counters)
    : is_stream_(unit->is_stream()), may_wait_(may_wait), progressed_(progressed), counters_(counters),
      identity_(unit->identity()), session_(make_session(std::move(unit), sequence)) {
  digest_.store(session_->unit().digest());
  if (progressed_.progressed != nullptr)
    session_->listen(progressed_);
}

locked_session::served_answer locked_session::serve(const read_result &read, std::span<std::uint8_t> result,
                                                    clock::time_point arrival, bool too_old) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  return serve_alone(read, result, arrival, too_old);
}

locked_session::served_answer locked_session::serve(const read_result &read, std::span<std::uint8_t> result,
                                                    std::uint64_t arrived_ticks) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  return serve_alone(read, result, arrivals_.at(arrived_ticks, counters_.times().clock()), false);
}

/// Called with the mutex.
locked_session::served_answer locked_session::serve_alone(const read_result &read, std::span<std::uint8_t> result,
                                                          clock::time_point arrival, bool too_old) noexcept {
  counters_.add_begun();
  const std::uint64_t shots = session_->shots();
  exchange_if_possible();
  const deadline_counts before = session_->unit().deadlines();
  const bool had_all_bits = session_->has_all_bits();
  const served_answer answer = execute(read, result, arrival, too_old);
  if (!had_all_bits && session_->has_all_bits())
    tail_arrival_ = arrival;
  counters_.add_deadlines(before, session_->unit().deadlines());
  counters_.set_failures(session_->failures(), session_->not_converged(), session_->last_failure());
  exchange_if_possible();
  count_progress(shots);
  if (!answer.waits)
    counters_.add_answer(read.request.function, answer);
  return answer;
}

locked_session::served_answer locked_session::execute(const read_result &read, std::span<std::uint8_t> result,
                                                      clock::time_point arrival, bool too_old) noexcept {
  const wire_function function = read.request.function;
  if (read.status == server_status::ok)
    if (const auto again = session_->answer_again(read.request, result, arrival)) {
      counters_.add_repeated();
      return {*again, true};
    }
  server_status refused = read.status;
  if (refused == server_status::ok && too_old && function != wire_function::reset) {
    counters_.add_too_old();
    refused = has_counter(function) ? server_status::syndromes_dropped : server_status::busy;
  }
  if (refused == server_status::ok) {
    const server_answer answer = session_->serve(read.request, result, arrival);
    if (!answer.waits || may_wait_)
      return {answer};
    refused = server_status::busy; // no thread of the pool could answer it later
  } else if (has_counter(function)) {
    session_->latch(refused);
  }
  return {refused == server_status::busy ? session_->refuse_copies(read.request, refused, arrival)
                                         : refuse(function, refused)};
}

bool locked_session::need_not_wait(const wire_request &request) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  return session_->need_not_wait(request);
}

server_answer locked_session::refuse_waiting(const wire_request &request, server_status why, clock::time_point arrival,
                                             bool at_limit) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  // BUSY would say that the rounds may become final without these bits.
  const bool lacks_bits = at_limit && session_->lacks_bits(request);
  const server_answer answer =
      session_->refuse_copies(request, lacks_bits ? server_status::syndromes_dropped : why, arrival);
  counters_.add_answer(request.function, answer);
  return answer;
}

void locked_session::follow_workers() noexcept {
  if (!is_stream_)
    return;
  const std::lock_guard<std::mutex> lock(mutex_);
  count_progress(session_->shots());
}

/// Counts the shots that were decoded since the count was `shots_before`.
void locked_session::count_progress(std::uint64_t shots_before) noexcept {
  session_->advance();
  unfinished_.store(session_->is_unfinished() ? 1 : 0);
  const std::uint64_t ended = session_->shots() - shots_before;
  counters_.add_shots(ended);
  if (!is_stream_)
    return;
  if (ended != 0)
    counters_.add_tail(tail_arrival_);
  counters_.set_stream(session_->totals());
}

void locked_session::exchange_if_possible() noexcept {
  if (offered_ == nullptr || !session_->may_exchange())
    return;
  std::unique_ptr<decoding_unit> previous = session_->exchange(std::move(offered_));
  if (progressed_.progressed != nullptr)
    session_->listen(progressed_);
  // Of a stream this is a request, perhaps long after the reload: the thread of the next reload frees it.
  if (may_take_back_ || is_stream_)
    previous_ = std::move(previous);
  digest_.store(session_->unit().digest());
  counters_.add_exchange();
  const std::lock_guard<std::mutex> lock(identity_mutex_);
  identity_ = session_->unit().identity();
}

void locked_session::offer(std::unique_ptr<decoding_unit> unit) {
  std::unique_ptr<decoding_unit> previous; // of a reset since the last discard; as in discard_previous
  const std::lock_guard<std::mutex> lock(mutex_);
  std::swap(previous, previous_);
  superseded_ = std::move(offered_);
  offered_ = std::move(unit);
  may_take_back_ = true;
  exchange_if_possible();
}

bool locked_session::is_offer_accepted() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return offered_ == nullptr || is_stream_;
}

void locked_session::discard_previous() {
  std::unique_ptr<decoding_unit> previous, superseded; // destroyed after the lock is free: that may take long
  const std::lock_guard<std::mutex> lock(mutex_);
  may_take_back_ = false;
  std::swap(previous, previous_);
  std::swap(superseded, superseded_);
}

void locked_session::take_back() {
  std::unique_ptr<decoding_unit> withdrawn, previous; // as above
  const std::lock_guard<std::mutex> lock(mutex_);
  const bool is_used = offered_ == nullptr;
  std::swap(withdrawn, offered_);
  std::swap(offered_, is_used && superseded_ == nullptr ? previous_ : superseded_);
  std::swap(previous, previous_);
  exchange_if_possible();
}

std::shared_ptr<const decoder_identity> locked_session::identity() const {
  const std::lock_guard<std::mutex> lock(identity_mutex_);
  return identity_;
}

bool locked_session::same_shape(const decoding_unit &other) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return session_->unit().same_shape(other);
}

std::string locked_session::shape_text() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return session_->unit().shape_text();
}

bool locked_session::is_serving() noexcept {
  return !std::unique_lock<std::mutex>(mutex_, std::try_to_lock).owns_lock();
}

} // namespace cudaq::qec::realtime
