// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/stream/worker_pool.h"

#include "lib/base/cpu_relax.h"

#include <string>

namespace cudaq::qec::realtime {
namespace {

namespace base = cudaq::realtime::detail;

constexpr std::size_t kMaxThreads = 1024;

} // namespace

expected<std::shared_ptr<worker_pool>> worker_pool::make(std::size_t threads) {
  if (threads == 0 || threads > kMaxThreads)
    return reason("workers " + std::to_string(threads) + ": expected 1 to " + std::to_string(kMaxThreads));
  std::shared_ptr<worker_pool> made(new worker_pool);
  for (std::size_t k = 0; k < threads; ++k) {
    const auto result =
        made->threads_.emplace_back().start("stream" + std::to_string(k), {}, [pool = made.get()] { pool->work(); });
    if (result.failed())
      return reason(result.text());
  }
  return made;
}

worker_pool::~worker_pool() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    has_work_.store(1);
  }
  wake_.notify_all();
  for (base::loop_thread &thread : threads_)
    static_cast<void>(thread.join_until(base::steady_clock::time_point::max()));
}

void worker_pool::submit(pool_client &stream) noexcept {
  bool is_asleep = false;
  {
    const std::lock_guard lock(mutex_);
    if (stream.is_listed_ || stream.is_withdrawn_)
      return;
    stream.is_listed_ = true;
    stream.next_ = nullptr;
    (first_ == nullptr ? first_ : last_->next_) = &stream;
    last_ = &stream;
    has_work_.store(1);
    is_asleep = sleeping_ != 0 && polling_ == 0;
  }
  if (is_asleep)
    wake_.notify_one();
}

void worker_pool::withdraw(pool_client &stream) noexcept {
  std::unique_lock lock(mutex_);
  stream.is_withdrawn_ = true;
  if (stream.is_listed_) {
    pool_client *before = nullptr;
    for (pool_client *at = first_; at != &stream; at = at->next_)
      before = at;
    (before == nullptr ? first_ : before->next_) = stream.next_;
    if (last_ == &stream)
      last_ = before;
    stream.is_listed_ = false;
  }
  left_.wait(lock, [&] { return stream.inside_ == 0; });
}

void worker_pool::readmit(pool_client &stream) noexcept {
  const std::lock_guard lock(mutex_);
  stream.is_withdrawn_ = false;
}

/// The first stream of the list, which it leaves. Waits for one: first it polls as long as a loop of this library polls
/// between requests, because the next window of a stream is some microseconds away, then it sleeps. Null: the end.
pool_client *worker_pool::next_stream(std::unique_lock<std::mutex> &lock) noexcept {
  while (first_ == nullptr && !stop_) {
    has_work_.store(0);
    ++polling_;
    lock.unlock();
    for (std::uint32_t k = 0; k < base::idle_strategy::kSpins && has_work_.load() == 0; ++k)
      base::cpu_relax();
    lock.lock();
    --polling_;
    if (first_ != nullptr || stop_)
      break;
    ++sleeping_;
    wake_.wait(lock, [&] { return first_ != nullptr || stop_; });
    --sleeping_;
  }
  if (stop_)
    return nullptr;
  pool_client *const stream = first_;
  first_ = stream->next_;
  stream->is_listed_ = false;
  if (first_ != nullptr && sleeping_ != 0 && polling_ == 0) // submit left it to the worker that polled: this one
    wake_.notify_one();
  return stream;
}

void worker_pool::work() noexcept {
  std::unique_lock lock(mutex_);
  while (pool_client *const stream = next_stream(lock)) {
    ++stream->inside_;
    lock.unlock();
    const pool_client::claimed one = stream->claim();
    if (one.more)
      submit(*stream);
    if (one.window != pool_client::kNone && stream->decode_claimed(one.window))
      submit(*stream);
    lock.lock();
    if (--stream->inside_ == 0 && stream->is_withdrawn_)
      left_.notify_all();
  }
}

workers_result make_stream_workers(std::size_t count) {
  try {
    auto made = worker_pool::make(count);
    return made.ok() ? workers_result{std::move(*made), {}} : workers_result{nullptr, "stream workers: " + made.text()};
  } catch (const std::exception &failure) { // out of memory
    return {nullptr, std::string("stream workers: ") + failure.what()};
  }
}

stream_workers::~stream_workers() = default;

} // namespace cudaq::qec::realtime
