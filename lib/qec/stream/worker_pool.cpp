// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/stream/worker_pool.h"
#include "lib/base/condition.h"

#include <algorithm>
#include <thread>
#include <utility>

namespace cudaq::qec::realtime {
namespace {

namespace base = cudaq::realtime::detail;

constexpr std::size_t kMaxThreads = 1024;
/// Between two looks of a thread that may not end yet, after stop.
constexpr std::chrono::microseconds kEndPoll{50};

std::int64_t now_ns() noexcept { return base::steady_clock::now().time_since_epoch().count(); }

} // namespace

expected<std::shared_ptr<worker_pool>> worker_pool::make(std::size_t threads, const thread_places &places) {
  if (threads == 0 || threads > kMaxThreads)
    return reason("workers " + std::to_string(threads) + ": expected 1 to " + std::to_string(kMaxThreads));
  auto made = std::make_shared<worker_pool>();
  const expected<> result = made->start(
      "stream", threads, CUDAQ_WAIT_BLOCK, [] { return true; }, places);
  if (result.failed())
    return reason(result.text());
  return made;
}

expected<> worker_pool::start(const std::string &name, std::size_t threads, cudaq_wait_policy_t wait,
                              std::function<bool()> may_end, const thread_places &places) {
  wait_ = wait;
  may_end_ = std::move(may_end);
  for (std::size_t k = 0; k < threads; ++k) {
    expected<> result = threads_.emplace_back().start(name + std::to_string(k), places.of(k), [this] { run(); });
    if (result.failed())
      return result;
  }
  return {};
}

bool worker_pool::stop(base::steady_clock::time_point deadline) {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    has_work_.store(1);
  }
  wake_.notify_all();
  bool all = true;
  for (base::loop_thread &thread : threads_)
    all = thread.join_until(deadline) && all;
  return all;
}

/// With the mutex held. False: it was listed, or may not be.
bool worker_pool::add(pool_client &client) noexcept {
  if (client.is_listed_ || client.is_withdrawn_)
    return false;
  client.is_listed_ = true;
  client.next_ = nullptr;
  (first_ == nullptr ? first_ : last_->next_) = &client;
  last_ = &client;
  return true;
}

void worker_pool::submit(pool_client &client) noexcept {
  bool must_wake = false;
  {
    const std::lock_guard lock(mutex_);
    if (!add(client))
      return;
    has_work_.store(1);
    must_wake = all_others_sleep();
  }
  if (must_wake)
    wake_.notify_one();
}

void worker_pool::withdraw(pool_client &client) noexcept {
  std::unique_lock lock(mutex_);
  client.is_withdrawn_ = true;
  if (client.is_listed_) {
    pool_client *before = nullptr;
    for (pool_client *at = first_; at != &client; at = at->next_)
      before = at;
    (before == nullptr ? first_ : before->next_) = client.next_;
    if (last_ == &client)
      last_ = before;
    client.is_listed_ = false;
  }
  cudaq::realtime::detail::wait_on(left_, lock, [&] { return client.inside_ == 0; });
}

void worker_pool::readmit(pool_client &client) noexcept {
  const std::lock_guard lock(mutex_);
  client.is_withdrawn_ = false;
}

void worker_pool::wake_at(pool_client &client, std::int64_t time_ns) noexcept {
  bool must_wake = false;
  {
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find(sleepers_, &client, &sleeper::client);
    if (found != sleepers_.end())
      found->time_ns = time_ns;
    else
      sleepers_.push_back({&client, time_ns}); // there is room for all
    must_wake = time_ns < next_wake_ns_.peek() && all_others_sleep();
    next_wake_ns_.store(std::ranges::min(sleepers_, {}, &sleeper::time_ns).time_ns);
  }
  if (must_wake)
    wake_.notify_one();
}

/// Wakes the clients whose time has come.
void worker_pool::wake_due(std::unique_lock<std::mutex> &lock) noexcept {
  while (next_wake_ns_.peek() != kNever && next_wake_ns_.peek() <= now_ns()) {
    const auto due = std::ranges::min_element(sleepers_, {}, &sleeper::time_ns);
    pool_client *const client = due->client;
    sleepers_.erase(due);
    next_wake_ns_.store(sleepers_.empty() ? kNever : std::ranges::min(sleepers_, {}, &sleeper::time_ns).time_ns);
    lock.unlock(); // wake() may submit
    client->wake();
    lock.lock();
  }
}

/// Returns when there may be something to do; with CUDAQ_WAIT_BLOCK also after as many polls as a loop of this library
/// makes between requests: the next window of a stream is some microseconds away.
void worker_pool::poll() noexcept {
  base::idle_strategy idle(wait_, 0);
  for (std::uint32_t k = 0; wait_ != CUDAQ_WAIT_BLOCK || k < base::idle_strategy::kSpins; ++k) {
    if (has_work_.load() != 0 || (next_wake_ns_.load() != kNever && next_wake_ns_.load() <= now_ns()))
      return;
    idle.after_turn(0);
  }
}

void worker_pool::sleep(std::unique_lock<std::mutex> &lock) noexcept {
  ++sleeping_;
  if (const std::int64_t until = next_wake_ns_.peek(); until == kNever) {
    cudaq::realtime::detail::wait_on(wake_, lock);
  } else {
    watched_ns_ = std::min(watched_ns_, until);
    wake_.wait_until(lock, base::steady_clock::time_point(std::chrono::nanoseconds(until)));
    if (until <= watched_ns_) // perhaps another one watches, too: at most one thread more is woken
      watched_ns_ = kNever;
  }
  --sleeping_;
}

/// The first client of the list, which it leaves. Waits for one. Null: the end.
pool_client *worker_pool::next_client(std::unique_lock<std::mutex> &lock) noexcept {
  for (wake_due(lock); first_ == nullptr; wake_due(lock)) {
    if (stop_ && may_end_())
      return nullptr;
    if (stop_) {
      lock.unlock();
      std::this_thread::sleep_for(kEndPoll);
      lock.lock();
      continue;
    }
    has_work_.store(0);
    ++polling_;
    lock.unlock();
    poll();
    lock.lock();
    --polling_;
    if (wait_ == CUDAQ_WAIT_BLOCK && first_ == nullptr && !stop_)
      sleep(lock);
  }
  pool_client *const client = first_;
  first_ = client->next_;
  client->is_listed_ = false;
  // Submit and wake_at left the next one and the time to this thread while it polled.
  if ((first_ != nullptr || next_wake_ns_.peek() < watched_ns_) && all_others_sleep())
    wake_.notify_one();
  return client;
}

void worker_pool::run() noexcept {
  std::unique_lock lock(mutex_);
  while (pool_client *const client = next_client(lock)) {
    ++client->inside_;
    lock.unlock();
    const bool has_more = client->work();
    lock.lock();
    if (has_more)
      add(*client); // has_work_ stays: this thread takes the next one
    if (--client->inside_ == 0 && client->is_withdrawn_)
      left_.notify_all();
  }
}

workers_result make_stream_workers(std::size_t count) { return make_placed_workers(count, {}); }

workers_result make_placed_workers(std::size_t count, const thread_places &places) {
  try {
    auto made = worker_pool::make(count, places);
    return made.ok() ? workers_result{std::move(*made), {}} : workers_result{nullptr, "stream workers: " + made.text()};
  } catch (const std::exception &failure) { // out of memory
    return {nullptr, std::string("stream workers: ") + failure.what()};
  }
}

stream_workers::~stream_workers() = default;

} // namespace cudaq::qec::realtime
