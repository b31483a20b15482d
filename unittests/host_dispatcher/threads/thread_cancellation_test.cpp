// SPDX-License-Identifier: Apache-2.0
// Threads that are cancelled inside calls of the library, and threads of the library that are cancelled.
#include "unittests/support/api_fixture.h"

#include <pthread.h>

namespace cudaq::realtime::test {
namespace {

constexpr std::uint32_t kFn = 77;

// All calls that wait or may make system calls.
// Known failure 55.
TEST(Cancellation, TakesEffectAfterTheCallAndNotInIt) {
  gate closed;
  bench b;
  b.on(kFn, [&](cudaq_host_call_t &) { return closed.pass(), 0; });
  b.start();
  b.client.send(kFn, {}, 1);
  ASSERT_TRUE(eventually([&] { return closed.occupied(); }));
  struct shared {
    bench &b;
    std::atomic<int> step{0};
    cudaq_status_t stopped = CUDAQ_OK;
  } s{b};
  pthread_t thread{};
  ASSERT_EQ(pthread_create(
                &thread, nullptr,
                [](void *of) -> void * {
                  auto &in = *static_cast<shared *>(of);
                  in.step = 1;
                  in.stopped = cudaq_dispatcher_stop_timeout(in.b.get(), ms(1500));
                  int state = -1;
                  pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
                  in.step = state == PTHREAD_CANCEL_ENABLE ? 2 : 3;
                  pthread_testcancel();
                  in.step = 4;
                  return nullptr;
                },
                &s),
            0);
  ASSERT_TRUE(eventually([&] { return s.step == 1; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(pthread_cancel(thread), 0);
  void *result = nullptr;
  pthread_join(thread, &result);
  EXPECT_EQ(result, PTHREAD_CANCELED);
  EXPECT_EQ(s.step, 2) << "the thread's own cancel state is restored";
  EXPECT_EQ(s.stopped, CUDAQ_ERR_TIMEOUT);
  closed.open();
  CUDAQ_EXPECT_OK(cudaq_dispatcher_stop(b.get()));
}

// A handler passes its thread on to code that cancels it.
TEST(Cancellation, OfALibraryThreadHasNoEffect) {
  for (const std::uint32_t pool : {0u, 1u}) {
    bench b;
    b.options.handler_pool_size = pool;
    b.on(kFn, [](cudaq_host_call_t &) {
      pthread_cancel(pthread_self());
      std::this_thread::sleep_for(std::chrono::milliseconds(1)); // a cancellation point
      return 4;
    });
    b.start();
    for (std::uint32_t id = 0; id < 20; ++id)
      EXPECT_EQ(b.client.call(kFn, {}, id).header.status, 4);
    EXPECT_EQ(b.dispatcher->state(), CUDAQ_DISPATCHER_RUNNING);
  }
}

} // namespace
} // namespace cudaq::realtime::test
