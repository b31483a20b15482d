// SPDX-License-Identifier: Apache-2.0
#include "lib/base/runner.h"

#include <ctime>
#include <future>
#include <sched.h>
#include <system_error>

namespace cudaq::realtime::detail {

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

status_or_reason loop_thread::start(const std::string &name, const thread_placement &placement,
                                    std::function<void()> body) {
  std::promise<status_or_reason> placed;
  std::future<status_or_reason> answer = placed.get_future();
  finished_.store(0);
  try {
    thread_ = std::thread([this, placed = std::move(placed), name, placement, body = std::move(body)]() mutable {
      name_this_thread(name.c_str());
      status_or_reason refused;
      try {
        refused = place_this_thread(placement);
      } catch (...) {
        refused.status = CUDAQ_ERR_INTERNAL; // out of memory: no text either
      }
      const bool go = !refused;
      placed.set_value(std::move(refused));
      if (go)
        body();
      finished_.store(1);
    });
  } catch (const std::system_error &e) {
    return make_reason(CUDAQ_ERR_INTERNAL, "thread %s: the system did not create it: %s", name.c_str(), e.what());
  }
  status_or_reason refused = answer.get();
  if (refused)
    thread_.join();
  return refused;
}

bool loop_thread::join_until(steady_clock::time_point deadline) {
  if (!thread_.joinable())
    return true;
  if (!wait_until(deadline, [this] { return finished_.load() != 0; }))
    return false;
  thread_.join();
  return true;
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
