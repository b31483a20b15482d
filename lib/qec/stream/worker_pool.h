// SPDX-License-Identifier: Apache-2.0
// The threads that decode the windows of streams, and those that serve the decoders of a server: a pool for each. What
// has work stands in a list, each client at most once. Example: two clients, one thread.
//
//   event                         list    what the thread does
//   a has two pieces of work      a       -
//   the thread takes a            -       the first piece of a
//   b has one                     b       the same
//   the piece of a ends           b, a    takes b: no client gets two pieces while another waits
#pragma once

#include "cudaq/qec/decoding/stream.h"
#include "cudaq/realtime/detail/base/shared_word.h"
#include "lib/base/runner.h"
#include "lib/qec/decoding/qec_expected.h"
#include "lib/qec/stream/thread_places.h"

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace cudaq::qec::realtime {

/// A stream or a decoder, as the pool sees it. Its functions are called by the pool's threads.
class pool_client {
public:
  /// Does one piece of work. True: there is more. Several threads may be in it, if submit was called meanwhile.
  [[nodiscard]] virtual bool work() noexcept = 0;
  /// The time that it has named by wake_at has come.
  virtual void wake() noexcept {}

protected:
  ~pool_client() = default;

private:
  friend class worker_pool;
  // Guarded by the pool's mutex.
  pool_client *next_ = nullptr; ///< in the pool's list
  bool is_listed_ = false;
  bool is_withdrawn_ = false;
  std::size_t inside_ = 0; ///< threads that are in work()
};

/// Threads: start and stop by one control thread, all others by any thread.
class worker_pool final : public stream_workers {
public:
  /// For streams: started, and stopped with its last owner.
  static expected<std::shared_ptr<worker_pool>> make(std::size_t threads, const thread_places &places = {});

  /// `max_sleepers`: clients that ever call wake_at. Throws std::bad_alloc.
  explicit worker_pool(std::size_t max_sleepers = 0) { sleepers_.reserve(max_sleepers); }
  ~worker_pool() override { stop(cudaq::realtime::detail::steady_clock::time_point::max()); }
  std::size_t count() const noexcept override { return threads_.size(); }

  /// Starts threads that are called `name` and a number. A thread without work polls for some tens of microseconds, and
  /// then with CUDAQ_WAIT_BLOCK it sleeps until there is work; with the other policies it polls on. The threads end
  /// after stop, when the list is empty and may_end() returns true.
  expected<> start(const std::string &name, std::size_t threads, cudaq_wait_policy_t wait,
                   std::function<bool()> may_end, const thread_places &places = {});
  /// False: a thread still runs at the deadline.
  bool stop(cudaq::realtime::detail::steady_clock::time_point deadline);

  /// The client has work. No effect while it is listed or withdrawn.
  void submit(pool_client &client) noexcept;
  /// Takes the client out of the list and waits until no thread is in it. Until readmit, submit has no effect.
  void withdraw(pool_client &client) noexcept;
  void readmit(pool_client &client) noexcept;
  /// At this time of the steady clock the pool calls wake() of the client, once. The last time that it named counts.
  void wake_at(pool_client &client, std::int64_t time_ns) noexcept;

private:
  struct sleeper {
    pool_client *client;
    std::int64_t time_ns;
  };
  static constexpr std::int64_t kNever = INT64_MAX;

  void run() noexcept;
  bool add(pool_client &client) noexcept;
  pool_client *next_client(std::unique_lock<std::mutex> &lock) noexcept;
  void wake_due(std::unique_lock<std::mutex> &lock) noexcept;
  void poll() noexcept;
  void sleep(std::unique_lock<std::mutex> &lock) noexcept;
  bool all_others_sleep() const noexcept { return sleeping_ != 0 && polling_ == 0; }

  cudaq_wait_policy_t wait_ = CUDAQ_WAIT_BLOCK;
  std::function<bool()> may_end_;
  std::mutex mutex_;
  std::condition_variable wake_; ///< the list has a client, next_wake_ns_ is earlier, or stop_
  std::condition_variable left_; ///< a thread has left a withdrawn client
  pool_client *first_ = nullptr, *last_ = nullptr;
  std::vector<sleeper> sleepers_;          ///< each client at most once
  std::size_t sleeping_ = 0, polling_ = 0; ///< threads without work: nothing is woken while one polls
  std::int64_t watched_ns_ = kNever;       ///< at this time, or earlier, a sleeping thread wakes
  bool stop_ = false;
  // Written with the mutex held; threads that poll read them without it.
  cudaq::realtime::detail::shared_word<std::int64_t> next_wake_ns_{kNever}; ///< the least time of sleepers_
  cudaq::realtime::detail::shared_word<std::uint32_t> has_work_;            ///< a thread that polls looks at the list
  std::deque<cudaq::realtime::detail::loop_thread> threads_;
};

/// make_stream_workers with places of the threads, which the system may refuse.
[[nodiscard]] workers_result make_placed_workers(std::size_t count, const thread_places &places);

} // namespace cudaq::qec::realtime
