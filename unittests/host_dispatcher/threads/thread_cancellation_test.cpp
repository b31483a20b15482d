// SPDX-License-Identifier: Apache-2.0
// Threads that are cancelled inside calls of the library, and threads of the library that are cancelled.
#include "unittests/support/api_fixture.h"
#include "unittests/support/processes/process_signals.h"

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
  cudaq_status_t stopped = CUDAQ_OK;
  int state = -1;
  cancelled_call call([&] {
    stopped = cudaq_dispatcher_stop_timeout(b.get(), ms(1500));
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
  });
  call.expect_end_after_the_call();
  EXPECT_EQ(state, PTHREAD_CANCEL_ENABLE) << "the thread's own cancel state is restored";
  EXPECT_EQ(stopped, CUDAQ_ERR_TIMEOUT);
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
