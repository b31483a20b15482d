// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/server/served_decoder.h"

#include <algorithm>
#include <string>
#include <utility>

namespace cudaq::qec::realtime {
namespace rt = cudaq::realtime::detail;

namespace {

/// How long a thread sleeps after a while without requests, if it may sleep.
constexpr std::uint64_t kSleepNs = 50'000;

} // namespace

std::uint64_t longest_request_bits(std::uint64_t bits_per_shot, std::uint64_t num_detectors) noexcept {
  return std::max(std::min(bits_per_shot, kMostEnqueuedBits), num_detectors);
}

std::uint64_t queue_bytes(std::uint32_t queue_length, std::uint64_t bits) noexcept {
  return queue_length * (sizeof(served_decoder::entry) + (bits + 7) / 8);
}

served_decoder::served_decoder(const decoder_limits &limits, std::unique_ptr<decoding_unit> unit)
    : limits_(limits), num_observables_(unit->num_observables()), num_detectors_(unit->num_detectors()),
      bits_per_shot_(unit->bits_per_shot()), session_(std::move(unit), limits.sequence), entries_(limits.queue_length) {
  digest_.store(session_.unit().digest());
  const std::uint64_t bits = longest_request_bits(session_.unit().bits_per_shot(), session_.unit().num_detectors());
  for (entry &e : entries_)
    e.bits.resize(static_cast<std::size_t>((bits + 7) / 8));
}

void served_decoder::connect(const answer_receiver &receiver, decoder_pool &pool) {
  receiver_ = receiver;
  pool_ = &pool;
}

void served_decoder::close() {
  const std::lock_guard<std::mutex> lock(queue_mutex_);
  closed_ = true;
}

bool served_decoder::unschedule() noexcept {
  scheduled_.clear_bits(1);
  return waiting() != 0 && scheduled_.raise_bits(1) == 0;
}

bool served_decoder::submit(const read_result &read, std::span<std::uint8_t> result, const cudaq_host_job_t &job,
                            server_answer &now) {
  requests_.add();
  const wire_function function = read.request.function;
  if (limits_.queue_length == 0) {
    const clock::time_point arrival = clock::now();
    now = serve(read, result, false);
    record_latency(arrival);
    return true;
  }
  server_status refused = server_status::busy;
  if (enter(read, result, job, refused)) {
    if (scheduled_.raise_bits(1) == 0)
      pool_->push(*this);
    return false;
  }
  now = refuse(function, refused);
  count(function, now);
  return true;
}

bool served_decoder::enter(const read_result &read, std::span<std::uint8_t> result, const cudaq_host_job_t &job,
                           server_status &refused) {
  const std::lock_guard<std::mutex> lock(queue_mutex_);
  const std::uint64_t at = head_.peek();
  if (closed_) {
    refused = server_status::not_ready;
    return false;
  }
  if (at - tail_.load() == entries_.size())
    return false;
  entry &e = entries_[at % entries_.size()];
  e.read = read;
  const auto bits = read.request.bits;
  e.read.request.bits = std::span<const std::uint8_t>(e.bits).first(std::min(bits.size(), e.bits.size()));
  std::copy_n(bits.begin(), e.read.request.bits.size(), e.bits.begin());
  if (bits.size() > e.bits.size()) // longer than a shot
    e.read.status = server_status::bad_request;
  e.result = result;
  e.job = job;
  e.arrival = clock::now();
  head_.store(at + 1);
  return true;
}

std::uint64_t served_decoder::waiting() const noexcept {
  const std::uint64_t served = tail_.load(), taken = head_.load();
  return taken - served;
}

std::uint32_t served_decoder::turn() noexcept {
  const std::uint64_t at = tail_.peek();
  if (at == head_.load())
    return 0;
  entry &e = entries_[at % entries_.size()];
  const bool too_old =
      limits_.age_limit_ns != 0 && clock::now() - e.arrival > std::chrono::nanoseconds(limits_.age_limit_ns);
  const server_answer answer = serve(e.read, e.result, too_old);
  record_latency(e.arrival);
  const cudaq_host_job_t job = e.job;
  // The entry is free before the answer leaves: a requester that waits for its answers is never answered busy.
  tail_.store(at + 1);
  receiver_.answer(receiver_.user, job, answer);
  answered_.add();
  return 1;
}

server_answer served_decoder::serve(const read_result &read, std::span<std::uint8_t> result, bool too_old) noexcept {
  const std::lock_guard<std::mutex> lock(session_mutex_);
  const std::uint64_t shots = session_.shots();
  exchange_if_possible();
  const deadline_counts before = session_.unit().deadlines();
  const server_answer answer = serve_locked(read, result, too_old);
  const deadline_counts &after = session_.unit().deadlines();
  deadline_met_.add(after.met - before.met);
  deadline_missed_.add(after.missed - before.missed);
  deadline_late_.add(after.late - before.late);
  exchange_if_possible();
  shots_.add(session_.shots() - shots);
  count(read.request.function, answer);
  return answer;
}

server_answer served_decoder::serve_locked(const read_result &read, std::span<std::uint8_t> result,
                                           bool too_old) noexcept {
  const wire_function function = read.request.function;
  server_status refused = read.status;
  if (refused == server_status::ok && too_old && function != wire_function::reset) {
    too_old_.add();
    refused = function == wire_function::enqueue ? server_status::syndromes_dropped : server_status::busy;
  }
  if (refused == server_status::ok)
    return session_.serve(read.request, result);
  if (function == wire_function::enqueue)
    session_.latch(refused);
  return refuse(function, refused);
}

void served_decoder::exchange_if_possible() noexcept {
  if (offered_ == nullptr || !session_.between_shots())
    return;
  previous_ = session_.exchange(std::move(offered_));
  digest_.store(session_.unit().digest());
  exchanges_.add();
}

void served_decoder::count(wire_function function, const server_answer &answer) noexcept {
  if (function == wire_function::one_shot) {
    if (answer.status != 0)
      failed_alone_.add();
  } else {
    by_status_[static_cast<std::size_t>(answer.status)].add();
  }
  if (answer.status == refuse(function, server_status::busy).status)
    busy_.add();
}

void served_decoder::record_latency(clock::time_point arrival) noexcept {
  latency_.record(static_cast<std::uint64_t>((clock::now() - arrival) / std::chrono::nanoseconds(1)));
}

void served_decoder::offer(std::unique_ptr<decoding_unit> unit) {
  const std::lock_guard<std::mutex> lock(session_mutex_);
  offered_ = std::move(unit);
  exchange_if_possible();
}

bool served_decoder::settle() {
  const std::lock_guard<std::mutex> lock(session_mutex_);
  return offered_ == nullptr;
}

void served_decoder::discard_previous() {
  std::unique_ptr<decoding_unit> previous; // destroyed after the lock is free: that may take long
  const std::lock_guard<std::mutex> lock(session_mutex_);
  std::swap(previous, previous_);
}

void served_decoder::take_back() {
  std::unique_ptr<decoding_unit> withdrawn;
  const std::lock_guard<std::mutex> lock(session_mutex_);
  if (offered_ != nullptr) {
    std::swap(withdrawn, offered_);
  } else {
    std::swap(offered_, previous_);
    exchange_if_possible();
  }
}

model_facts served_decoder::facts() const noexcept {
  return {num_detectors_, bits_per_shot_, num_observables_, digest_.load()};
}

bool served_decoder::same_shape(const decoding_unit &other) {
  const std::lock_guard<std::mutex> lock(session_mutex_);
  return session_.unit().same_shape(other);
}

decoder_counts served_decoder::counts() const noexcept {
  decoder_counts c{requests_.value(),
                   shots_.value(),
                   busy_.value(),
                   too_old_.value(),
                   failed_alone_.value(),
                   exchanges_.value(),
                   {},
                   {deadline_met_.value(), deadline_missed_.value(), deadline_late_.value()}};
  for (std::size_t i = 0; i < c.by_status.size(); ++i)
    c.by_status[i] = by_status_[i].value();
  return c;
}

expected<> decoder_pool::start(std::uint32_t threads, cudaq_wait_policy_t wait, std::function<bool()> all_idle) {
  all_idle_ = std::move(all_idle);
  for (std::uint32_t k = 0; k < threads; ++k) {
    expected<> result = threads_.emplace_back().start("qec-decode-" + std::to_string(k), {}, [this, wait] {
      rt::run_loop([this] { return turn(); }, [this] { return stop_requested_.load() != 0 && all_idle_(); },
                   rt::idle_strategy(wait, kSleepNs));
    });
    if (result.failed())
      return result;
  }
  return {};
}

bool decoder_pool::stop(rt::steady_clock::time_point deadline) {
  stop_requested_.store(1);
  bool all = true;
  for (rt::loop_thread &thread : threads_)
    all = thread.join_until(deadline) && all;
  return all;
}

void decoder_pool::push(served_decoder &decoder) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::uint64_t count = count_.peek();
  ready_[(first_ + count) % ready_.size()] = &decoder;
  count_.store(count + 1);
}

served_decoder *decoder_pool::pop() noexcept {
  if (count_.load() == 0)
    return nullptr;
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::uint64_t count = count_.peek();
  if (count == 0)
    return nullptr;
  served_decoder *const decoder = ready_[first_];
  first_ = (first_ + 1) % ready_.size();
  count_.store(count - 1);
  return decoder;
}

std::uint32_t decoder_pool::turn() noexcept {
  served_decoder *const decoder = pop();
  if (decoder == nullptr)
    return 0;
  std::uint32_t served = 0;
  do // as long as no other decoder waits for a thread
    served += decoder->turn();
  while (decoder->waiting() != 0 && count_.load() == 0);
  if (decoder->unschedule())
    push(*decoder);
  return served;
}

} // namespace cudaq::qec::realtime
