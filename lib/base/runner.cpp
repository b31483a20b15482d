// SPDX-License-Identifier: Apache-2.0
#include "lib/base/runner.h"

#include "lib/base/callback.h"

#include <csignal>
#include <ctime>
#include <future>
#include <pthread.h>
#include <sched.h>
#include <system_error>

namespace cudaq::realtime::detail {
namespace {

/// While it lives, the calling thread, and so each thread that it starts, blocks all signals except synchronous ones.
class signals_blocked {
public:
  signals_blocked() {
    sigset_t all;
    sigfillset(&all);
    for (const int synchronous : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGSYS, SIGTRAP, SIGABRT})
      sigdelset(&all, synchronous);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~signals_blocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  signals_blocked(const signals_blocked &) = delete;
  signals_blocked &operator=(const signals_blocked &) = delete;

private:
  sigset_t before_;
};

/// Sets a word at the end of a thread's body.
class set_at_end {
public:
  explicit set_at_end(shared_word<std::uint32_t> &word) : word_(word) {}
  ~set_at_end() { word_.store(1); }
  set_at_end(const set_at_end &) = delete;
  set_at_end &operator=(const set_at_end &) = delete;

private:
  shared_word<std::uint32_t> &word_;
};

} // namespace

void idle_strategy::yield_or_sleep() const {
  if (policy_ == CUDAQ_WAIT_SPIN_YIELD) {
    sched_yield();
    return;
  }
  timespec interval{};
  interval.tv_sec = static_cast<time_t>(block_interval_ns_ / 1000000000u);
  interval.tv_nsec = static_cast<long>(block_interval_ns_ % 1000000000u);
  clock_nanosleep(CLOCK_MONOTONIC, 0, &interval, nullptr);
}

loop_thread::~loop_thread() {
  // Owners join the thread before they are destroyed. The owner of a thread that does not end stays alive (see
  // host_dispatcher::finish).
  if (thread_.joinable())
    thread_.join();
}

expected<> loop_thread::start(const std::string &name, const thread_placement &placement, std::function<void()> body) {
  std::promise<expected<>> placed;
  std::future<expected<>> answer = placed.get_future();
  finished_.store(0);
  try {
    const signals_blocked for_the_new_thread;
    std::string guarded = "thread " + name; // here, because the thread has nowhere to report a lack of memory
    thread_ = std::thread([this, placed = std::move(placed), name, guarded = std::move(guarded), placement,
                           body = std::move(body)]() mutable {
      pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
      const set_at_end mark(finished_);
      name_this_thread(name.c_str());
      expected<> result;
      try {
        result = place_this_thread(placement);
      } catch (...) {
        result = {CUDAQ_ERR_INTERNAL, kOutOfMemory};
      }
      const bool go = result.ok();
      placed.set_value(std::move(result));
      if (go)
        must_not_throw(body, guarded.c_str()); // what no other guard has named
    });
  } catch (const std::system_error &e) {
    finished_.store(1);
    return make_reason(CUDAQ_ERR_INTERNAL, "thread %s: the system did not create it: %s", name.c_str(), e.what());
  } catch (...) {
    finished_.store(1);
    throw;
  }
  expected<> result = answer.get();
  if (result.failed())
    thread_.join();
  return result;
}

bool loop_thread::join_until(steady_clock::time_point deadline) {
  if (!thread_.joinable())
    return true;
  if (!wait_until(deadline, [this] { return finished_.load() != 0; }))
    return false;
  thread_.join();
  return true;
}

steady_clock::time_point deadline_after(std::uint64_t duration_ns) {
  const steady_clock::time_point now = steady_clock::now();
  const auto room = static_cast<std::uint64_t>((steady_clock::time_point::max() - now).count());
  return duration_ns < room ? now + std::chrono::nanoseconds(duration_ns) : steady_clock::time_point::max();
}

bool wait_until(steady_clock::time_point deadline, const std::function<bool()> &done) {
  for (int i = 0; i < 100; ++i) {
    if (done())
      return true;
    sched_yield();
  }
  while (!done()) {
    if (steady_clock::now() >= deadline)
      return done();
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return true;
}

} // namespace cudaq::realtime::detail
