// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/stream/stream_engine.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <exception>
#include <utility>

namespace cudaq::qec::realtime {
namespace {

using clock = std::chrono::steady_clock;

/// Bits that are in the ring at most: of these rounds of the loop, and of head and tail.
std::uint64_t ring_size(const repeating_model &model, std::uint64_t rounds) {
  return model.first_detector(model.head().size() + rounds) + model.tail_detectors();
}

/// Repetitions whose values may come before their bits.
std::uint64_t repetitions_ahead(const window_set &windows) {
  return (windows.layout().commit + windows.layout().buffer) / windows.model().body().size() + 2;
}

/// The values of these rounds at most, and those that come early. An error of a window may be one of an earlier
/// repetition, and the values of an error may be some of a later one: by as many rounds as an error reaches over.
readout_place room_for_values(const window_set &windows, std::uint64_t rounds) {
  const repeating_model &model = windows.model();
  const std::uint64_t in_rounds = (model.head().size() + rounds + 2 * model.reach()) / model.body().size() + 4;
  return windows.readout().total(in_rounds + repetitions_ahead(windows));
}

} // namespace

stream_engine::stream_engine(window_set windows, std::shared_ptr<worker_pool> pool, std::size_t max_running,
                             std::uint64_t queue_rounds, std::string description)
    : windows_(std::move(windows)), pool_(std::move(pool)), max_running_(max_running),
      description_(std::move(description)), head_(model().head_detectors()), body_(model().body_detectors()),
      tail_(model().tail_detectors()), queue_rounds_(queue_rounds),
      max_push_((queue_rounds - least_rounds(layout())) / model().body().size() * body_),
      raw_(ring_size(model(), raw_rounds_in_ring())),
      values_(windows_.readout(), room_for_values(windows_, rounds_in_ring())),
      artificial_(ring_size(model(), rounds_in_ring())), frame_((num_observables() + 7) / 8),
      flights_(std::bit_ceil((model().head().size() + rounds_in_ring()) / layout().commit + 4)) {
  for (flight &one : flights_)
    one.observables.resize(frame_.size());
  for (number_queue &one : ready_)
    one.numbers.resize(flights_.size());
  begin();
}

stream_engine::~stream_engine() { cancel(); }

/// The state of a new stream. No thread decodes.
void stream_engine::begin() noexcept {
  const auto lock = guard();
  artificial_.clear();
  values_.clear();
  std::ranges::fill(frame_, std::uint8_t{0});
  for (number_queue &one : ready_)
    one.head = one.tail = 0;
  is_finished_ = is_cancelled_ = false;
  added_ = released_ = not_begun_ = added_line_ = complete_rounds_ = 0;
  total_rounds_.store(kNone);
  bits_.store(0);
  committed_.store(0);
  counts_ = {};
  fault_.front() = '\0';
  next_rounds_ = layout().rounds_for_more_than(0);
  next_end_ = model().first_detector(next_rounds_);
  set_limit();
  ++generation_;
  status_.store(static_cast<std::int32_t>(decode_status::ok));
  changed_.notify_all();
}

/// Drops the windows that have not begun, and waits until no thread is in this object.
void stream_engine::cancel() noexcept {
  if (pool_ == nullptr)
    return;
  {
    const auto lock = guard();
    is_cancelled_ = true;
  }
  pool_->withdraw(*this);
}

void stream_engine::reset() noexcept {
  cancel();
  begin();
  if (pool_ != nullptr)
    pool_->readmit(*this);
}

decode_status stream_engine::push(std::span<const std::uint8_t> bits, std::uint64_t count,
                                  const stream_values &known) noexcept {
  if (const decode_status now = status(); now != decode_status::ok)
    return now;
  values_.forget_fault();
  if (is_finished_)
    return decode_status::stream_misaligned;
  if (bits.size() < count / 8 + (count % 8 != 0))
    return decode_status::buffer_too_small;
  if (pool_ != nullptr && count > max_push_)
    return decode_status::not_supported;
  if (pool_ != nullptr && bits_.peek() + count > limit_.load())
    return decode_status::busy;
  const std::uint64_t all = bits_.peek() + count;
  if (const decode_status result = values_.check(known, least_values(all), max_values(all));
      result != decode_status::ok)
    return result;
  readout_place taken;
  if (pool_ != nullptr) {
    values_.store(known, taken, max_values(all));
    store(bits, 0, count);
    if (bits_.peek() >= next_end_) {
      add_complete();
      hand_out();
    }
    return decode_status::ok;
  }
  for (std::uint64_t from = 0; from < count;) {
    const std::uint64_t part = std::min(count - from, next_end_ - bits_.peek());
    values_.store(known, taken, max_values(bits_.peek() + part));
    store(bits, from, part);
    from += part;
    if (bits_.peek() != next_end_)
      continue;
    add_complete();
    hand_out();
    if (const decode_status now = status(); now != decode_status::ok)
      return now;
  }
  values_.store(known, taken, max_values(all)); // of a push without bits
  return decode_status::ok;
}

decode_status stream_engine::finish(std::span<const std::uint8_t> bits, std::uint64_t count,
                                    const stream_values &known) noexcept {
  if (const decode_status now = status(); now != decode_status::ok)
    return now;
  values_.forget_fault();
  const std::uint64_t before = bits_.peek();
  if (is_finished_ || count != tail_ || before < head_ || (before - head_) % body_ != 0)
    return decode_status::stream_misaligned;
  if (bits.size() < count / 8 + (count % 8 != 0))
    return decode_status::buffer_too_small;
  const std::uint64_t repetitions = (before - head_) / body_;
  const readout_place total = windows_.readout().total(repetitions);
  if (const decode_status result = values_.check(known, total, total); result != decode_status::ok)
    return result;
  is_finished_ = true;
  {
    const auto lock = guard();
    repetitions_ = repetitions;
    total_rounds_.store(model().head().size() + repetitions_ * model().body().size() + model().tail().size());
    readout_place taken;
    values_.store(known, taken, total);
    store(bits, 0, count);
    add(added_, windows_.last_if_built(repetitions_), true);
  }
  hand_out();
  return pool_ != nullptr ? decode_status::ok : status();
}

readout_place stream_engine::least_values(std::uint64_t bits) noexcept {
  readout_place least;
  const std::uint64_t complete = windows_.readout().empty() ? 0 : layout().complete(model().round_of(bits));
  // Two of them: a parallel window between others ends before the one that comes first.
  for (std::uint64_t j = complete - std::min<std::uint64_t>(complete, 2); j < complete; ++j) {
    const readout_place end = windows_.readout().base_of(layout().rounds_of(j).begin) + windows_.regular(j).read_end;
    least = {std::max(least.value, end.value), std::max(least.flag, end.flag)};
  }
  return least;
}

readout_place stream_engine::max_values(std::uint64_t bits) const noexcept {
  const stream_readout &of = windows_.readout();
  return of.empty() ? readout_place{} : of.base_of(model().round_of(bits)) + of.total(repetitions_ahead(windows_));
}

void stream_engine::store(std::span<const std::uint8_t> bits, std::uint64_t from, std::uint64_t count) noexcept {
  raw_.append(bits_.peek(), bits, from, count);
  bits_.store(bits_.peek() + count);
}

/// Adds the windows whose bits have come.
void stream_engine::add_complete() noexcept {
  const auto lock = guard();
  while (bits_.peek() >= next_end_) {
    const std::uint64_t complete = layout().complete(next_rounds_);
    while (added_ < complete)
      add(added_, &windows_.regular(added_), false);
    complete_rounds_ = next_rounds_;
    next_rounds_ = layout().rounds_for_more_than(complete);
    next_end_ = model().first_detector(next_rounds_);
  }
}

void stream_engine::add(std::uint64_t number, window *shape, bool is_last) noexcept {
  flight &f = flight_of(number);
  f.shape = shape;
  f.decoding = nullptr;
  f.is_last = is_last;
  f.deadlines = {};
  f.state = flight::phase::waiting;
  f.final_begin = added_line_;
  f.final_end = added_line_ = is_last ? bits_.peek() : model().first_detector((number + 1) * layout().commit);
  const std::uint64_t begin = layout().rounds_of(number).begin;
  f.first_value = windows_.readout().base_of(is_last ? number * layout().commit : begin);
  f.values_come = values_.come();
  f.first_detector = is_last || begin == number * layout().commit ? f.final_begin : model().first_detector(begin);
  f.needs = 0;
  if (number != 0 && has_artificial_events(number, f))
    f.needs += is_done(number - 1) ? 0U : 1U;
  if (!is_last && layout().is_between(number))
    ++f.needs; // the next one is not even added
  ++added_;
  ++not_begun_;
  counts_.worst_queue_rounds = std::max(counts_.worst_queue_rounds, not_begun_ * layout().commit);
  if (f.needs == 0)
    make_ready(number);
}

bool stream_engine::is_done(std::uint64_t number) noexcept {
  return number < released_ || flight_of(number).state == flight::phase::done;
}

void stream_engine::make_ready(std::uint64_t number) noexcept {
  flight &f = flight_of(number);
  f.state = flight::phase::ready;
  ready_[layout().parallel && !f.is_last && !layout().is_between(number) ? 1 : 0].push(number);
}

/// Lets the pool see what is ready; without one, decodes it.
void stream_engine::hand_out() noexcept {
  if (pool_ != nullptr) {
    pool_->submit(*this);
    return;
  }
  for (claimed one = claim(); one.window != kNone; one = claim())
    static_cast<void>(decode_claimed(one.window));
}

bool stream_engine::can_claim() const noexcept {
  return status() == decode_status::ok && !is_cancelled_ && running_ < max_running_ &&
         (!ready_[0].empty() || !ready_[1].empty());
}

stream_engine::claimed stream_engine::claim() noexcept {
  const auto lock = guard();
  if (!can_claim())
    return {};
  for (number_queue &queue : ready_) {
    if (queue.empty())
      continue;
    const std::uint64_t number = queue.front();
    flight &f = flight_of(number);
    if (f.shape != nullptr && f.shape->idle.empty())
      continue; // the thread that has its decoder asks again
    if (f.shape != nullptr) {
      f.decoding = f.shape->idle.back();
      f.shape->idle.pop_back();
    }
    queue.pop();
    f.state = flight::phase::running;
    ++running_;
    --not_begun_;
    return {number, can_claim()};
  }
  return {};
}

bool stream_engine::decode_claimed(std::uint64_t number) noexcept {
  flight &f = flight_of(number); // stays until it is done
  const char *why = "";
  const decode_status result = decode(number, f, why);
  auto lock = guard();
  --running_;
  const std::uint64_t released_before = released_;
  if (!is_cancelled_ && status() == decode_status::ok) {
    counts_.deadlines += f.deadlines;
    if (result == decode_status::ok) {
      ++counts_.windows;
      counts_.decode_ns += f.decode_ns;
      counts_.worst_decode_ns = std::max(counts_.worst_decode_ns, f.decode_ns);
      apply_answer(number, f);
    } else {
      if (*why != '\0')
        std::snprintf(fault_.data(), fault_.size(), "window %llu: %s", static_cast<unsigned long long>(number), why);
      status_.store(static_cast<std::int32_t>(result));
    }
    if (waiting_ != 0)
      changed_.notify_all();
  }
  if (f.decoding != nullptr)
    f.shape->idle.push_back(f.decoding);
  const bool more = can_claim();
  if (pool_ == nullptr)
    return more;
  const bool has_news = !is_cancelled_ && (released_ != released_before || status() != decode_status::ok);
  lock.unlock();
  if (has_news && listener_.progressed != nullptr)
    listener_.progressed(listener_.user);
  return more;
}

bool stream_engine::work() noexcept {
  const claimed one = claim();
  if (one.more)
    pool_->submit(*this);
  return one.window != kNone && decode_claimed(one.window);
}

/// The part of a window's work that needs no lock: all bits that it reads were written before it was ready.
decode_status stream_engine::decode(std::uint64_t number, flight &f, const char *&why) noexcept {
  if (f.decoding == nullptr) {
    try {
      f.shape = &windows_.last(repetitions_);
      f.decoding = f.shape->idle.back();
      f.shape->idle.pop_back();
    } catch (const std::exception &failure) { // out of memory, or a model that the decoder refuses only at this length
      std::snprintf(unbuilt_.data(), unbuilt_.size(), "%s", failure.what());
      why = unbuilt_.data();
      return decode_status::internal_error;
    }
  }
  const window_model &m = f.shape->model;
  const std::uint64_t first = f.first_detector, end = first + m.num_detectors;
  const bool has_artificial = has_artificial_events(number, f);
  std::vector<std::uint64_t> &events = f.decoding->events;
  events.clear();
  std::uint8_t parities = 0;
  for (std::uint64_t at = first / 64; at * 64 < end; ++at) {
    std::uint64_t bits = raw_.bits(at, first, end);
    if (has_artificial)
      bits ^= artificial_.bits(at, first, end);
    for (; bits != 0; bits &= bits - 1) {
      const std::uint64_t k = at * 64 + static_cast<std::uint64_t>(std::countr_zero(bits)) - first;
      if (m.is_needed[k] == 0)
        continue;
      events.push_back(k);
      parities ^= m.parities[k];
    }
  }
  std::vector<error_probability> &list = f.decoding->list;
  list.clear();
  for (const window_model::herald &one : m.heralds)
    if (has_come(first + static_cast<std::uint64_t>(one.detector)))
      list.insert(list.end(), m.herald_errors.begin() + static_cast<std::ptrdiff_t>(one.begin),
                  m.herald_errors.begin() + static_cast<std::ptrdiff_t>(one.end));
  if (!m.read.errors.empty())
    if (const decode_status result = values_.list_of(m.read, f.first_value, f.values_come, list, f.decoding->fault);
        result != decode_status::ok) {
      why = f.decoding->fault.data();
      return result;
    }
  std::vector<std::uint8_t> &answer = f.decoding->answer;
  // The clock takes longer than a window without events and heralds.
  const auto now = [&] { return events.empty() && list.empty() ? clock::time_point() : clock::now(); };
  decoder &inner = *f.decoding->inner;
  const deadline_counts earlier = inner.deadlines();
  const clock::time_point before = now();
  const decode_status status = inner.decode(events, answer, list);
  f.decode_ns = static_cast<std::uint64_t>((now() - before).count());
  const deadline_counts &all = inner.deadlines();
  f.deadlines = {all.met - earlier.met, all.missed - earlier.missed, all.late - earlier.late};
  if (status == decode_status::internal_error || status == decode_status::bad_probability)
    why = inner.fault();
  if (!inner.has_solution())
    return status;
  const std::uint64_t first_parity = m.num_observables + m.crossings.size();
  for (std::uint64_t j = 0; j < window_model::kParities; ++j) {
    const std::uint64_t k = first_parity + j;
    if ((answer[k / 8] >> (k % 8) & 1) == (parities >> j & 1))
      continue;
    if (status == decode_status::deadline)
      return status; // the best so far is no solution
    why = "the observables of the window are not those of a correction that causes its events";
    return decode_status::internal_error;
  }
  return decode_status::ok;
}

void stream_engine::apply_answer(std::uint64_t number, flight &f) noexcept {
  const window_model &m = f.shape->model;
  const std::vector<std::uint8_t> &answer = f.decoding->answer;
  const auto bit = [&](std::uint64_t k) { return (answer[k / 8] >> (k % 8) & 1) != 0; };
  std::ranges::fill(f.observables, std::uint8_t{0});
  for (std::uint64_t k = 0; k < m.num_observables; ++k)
    if (bit(k))
      f.observables[k / 8] = static_cast<std::uint8_t>(f.observables[k / 8] | 1U << k % 8);
  for (std::size_t k = 0; k < m.crossings.size(); ++k)
    if (bit(m.num_observables + k))
      artificial_.flip(f.first_detector + m.crossings[k]);
  f.state = flight::phase::done;
  if (number + 1 < added_ && has_artificial_events(number + 1, flight_of(number + 1)))
    neighbour_is_done(number + 1);
  if (number > released_ && layout().parallel && !f.is_last && !layout().is_between(number))
    neighbour_is_done(number - 1);
  release();
}

void stream_engine::neighbour_is_done(std::uint64_t number) noexcept {
  if (--flight_of(number).needs == 0)
    make_ready(number);
}

/// Makes the rounds of the first windows that are done final.
void stream_engine::release() noexcept {
  // Without a pool the owner is at the end of the window.
  const std::uint64_t pushed = pool_ != nullptr || total_rounds_.load() != kNone ? pushed_rounds() : complete_rounds_;
  while (released_ < added_ && flight_of(released_).state == flight::phase::done) {
    const flight &f = flight_of(released_);
    for (std::size_t k = 0; k < frame_.size(); ++k)
      frame_[k] = static_cast<std::uint8_t>(frame_[k] ^ f.observables[k]);
    const std::uint64_t line = released_ * layout().commit;
    artificial_.clear(f.final_begin, f.final_end);
    counts_.worst_lag_rounds = std::max(counts_.worst_lag_rounds, pushed - line);
    ++released_;
    if (pool_ != nullptr)
      set_limit(); // before the rounds are seen: else a push after that could still be busy
    committed_.store(f.is_last ? total_rounds_.load() : line + layout().commit);
    if (listener_.released != nullptr)
      listener_.released(listener_.user, committed_.peek(), frame_);
  }
}

/// Bits of the rounds that the next windows need stay in the ring. When all complete windows are released, there is
/// room for max_push_ bits: also in the head, whose rounds may have fewer bits than those of the loop.
void stream_engine::set_limit() noexcept {
  std::uint64_t kept = released_ * layout().commit;
  for (std::uint64_t j = released_; j < released_ + 2; ++j)
    kept = std::min(kept, layout().rounds_of(j).begin);
  limit_.store(std::max(model().first_detector(kept + queue_rounds_),
                        model().first_detector(kept + least_rounds(layout())) + max_push_));
}

std::uint64_t stream_engine::pushed_rounds() const noexcept {
  // In this order: the total is known before the bits of the tail come.
  const std::uint64_t bits = bits_.load(), total = total_rounds_.load();
  return total != kNone ? total : model().round_of(bits);
}

std::uint64_t stream_engine::complete_rounds() const noexcept {
  const auto lock = guard();
  return is_finished_ ? total_rounds_.load() : added_ * layout().commit;
}

stream_progress stream_engine::progress(std::span<std::uint8_t> observables) const noexcept {
  const std::uint64_t committed = committed_.load();
  stream_progress now{status(), committed, pushed_rounds(), is_all(committed)};
  if (observables.size() >= frame_.size())
    std::ranges::copy(frame_, observables.begin());
  else if (!observables.empty())
    now.status = decode_status::buffer_too_small;
  return now;
}

stream_progress stream_engine::poll(std::span<std::uint8_t> observables) const noexcept {
  const auto lock = guard();
  return progress(observables);
}

stream_progress stream_engine::wait_committed(std::uint64_t round, std::chrono::steady_clock::time_point deadline,
                                              std::span<std::uint8_t> observables) const noexcept {
  auto lock = guard();
  if (pool_ == nullptr)
    return progress(observables);
  const std::uint64_t generation = generation_;
  const auto is_over = [&] {
    return committed_.load() >= round || status() != decode_status::ok || generation_ != generation ||
           is_all(committed_.load());
  };
  ++waiting_;
  changed_.wait_until(lock, deadline, is_over);
  --waiting_;
  return progress(observables);
}

stream_statistics stream_engine::statistics() const noexcept {
  const auto lock = guard();
  return counts_;
}

} // namespace cudaq::qec::realtime
