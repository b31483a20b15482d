// SPDX-License-Identifier: Apache-2.0
// A timer signal interrupts system calls a thousand times per second (no SA_RESTART) while every kind of call runs.
#include "unittests/environment/child_process.h"

#include <atomic>
#include <sys/time.h>

namespace cudaq::realtime::test {
namespace {

std::atomic<int> signals{0}; // lock-free: a signal handler may use it

class signal_storm {
public:
  signal_storm() {
    signals.store(0);
    struct sigaction action {};
    action.sa_handler = [](int) { signals.fetch_add(1); };
    sigaction(SIGALRM, &action, &before_);
    const itimerval every_ms{{0, 1000}, {0, 1000}};
    setitimer(ITIMER_REAL, &every_ms, nullptr);
  }
  ~signal_storm() {
    const itimerval off{};
    setitimer(ITIMER_REAL, &off, nullptr);
    sigaction(SIGALRM, &before_, nullptr);
  }
  signal_storm(const signal_storm &) = delete;
  signal_storm &operator=(const signal_storm &) = delete;

private:
  struct sigaction before_ {};
};

void run_until_signals(int count, const std::function<void()> &body) {
  const auto end = std::chrono::steady_clock::now() + kDeadline;
  while (signals.load() < count && std::chrono::steady_clock::now() < end && !::testing::Test::HasFailure())
    body();
  EXPECT_GE(signals.load(), count) << "the timer did not run";
}

TEST(SignalStorm, DisturbsNoStartStopOrAnswer) {
  const signal_storm storm;
  for (const std::uint32_t pool : {0u, 3u})
    for (const auto wait : {CUDAQ_WAIT_SPIN_YIELD, CUDAQ_WAIT_BLOCK}) {
      small_service service(pool);
      service.options.wait_policy = wait;
      signals.store(0);
      run_until_signals(150, [&] { EXPECT_EQ(service.works(), ""); });
    }
}

TEST(SignalStorm, DisturbsNoCreationOfRings) {
  const signal_storm storm;
  run_until_signals(150, [] {
    const host_ring ring({64, 4096, false}); // its constructor and its destructor check
    EXPECT_EQ(cudaq_host_ringbuffer_slot_available(&ring.ring, 63), 1);
  });
}

// A stop waits by sleeping. Each signal ends a sleep early; the deadline is neither missed nor moved.
TEST(SignalStorm, DoesNotMoveTheDeadlineOfAStop) {
  bench b({4, 64, false});
  gate closed;
  b.on(7, [&](cudaq_host_call_t &) { return closed.pass(), 0; });
  b.start();
  const signal_storm storm;
  const std::uint32_t slot = b.client.send(7, {}, 1);
  ASSERT_TRUE(eventually([&] { return closed.occupied(); }));
  signals.store(0);
  run_until_signals(30, [&] { // one stop, except on a busy machine, where pending signals are merged
    const double spent =
        milliseconds([&] { EXPECT_EQ(cudaq_dispatcher_stop_timeout(b.get(), ms(300)), CUDAQ_ERR_TIMEOUT); });
    EXPECT_GE(spent, 299);
  });
  closed.open();
  EXPECT_TRUE(eventually([&] { return cudaq_dispatcher_stop(b.get()) == CUDAQ_OK; }));
  EXPECT_EQ(b.client.collect(slot).header.status, 0);
}

} // namespace
} // namespace cudaq::realtime::test
