// SPDX-License-Identifier: Apache-2.0
// Handlers that end their thread (pthread_exit), and threads that are cancelled inside calls of the library.
#include "unittests/support/api_fixture.h"

#include <pthread.h>

namespace cudaq::realtime::test {
namespace {

constexpr std::uint32_t kFn = 77, kOther = 78;
constexpr std::uint64_t kThrew = CUDAQ_RPC_ERROR_INDEX(CUDAQ_RPC_ERR_HANDLER_THREW);

[[noreturn]] void exit_v1(const void *, void *, std::size_t) { pthread_exit(nullptr); }

struct flavour {
  const char *name;
  std::uint32_t pool;
  bool v2;
  bool shared;
  bool skip_markers;
};

class ThreadExit : public ::testing::TestWithParam<flavour> {
protected:
  static cudaq_dispatcher_config_t config() {
    cudaq_dispatcher_config_t c = host_config({});
    c.shared_ring_mode = GetParam().shared;
    c.skip_tx_markers = GetParam().skip_markers;
    return c;
  }
  static std::vector<cudaq_function_entry_t> table() {
    if (GetParam().v2)
      return {};
    cudaq_function_entry_t exits = host_entry("", exit_v1), good = host_entry("", reverse_handler);
    exits.function_id = kFn;
    good.function_id = kOther;
    return {exits, good};
  }
  void SetUp() override {
    b.options.handler_pool_size = GetParam().pool;
    if (!GetParam().v2)
      return;
    b.on(kFn, [](cudaq_host_call_t &) -> std::int32_t { pthread_exit(nullptr); });
    b.on(kOther, [](cudaq_host_call_t &) { return 0; });
  }
  bench b{{}, table(), config()};
};

// Known failure 55.
TEST_P(ThreadExit, OfAHandlerAnswersItsRequestAndFailsTheRun) {
  for (std::uint32_t round = 1; round <= 2; ++round) {
    b.start();
    EXPECT_EQ(b.client.call(kOther, {1, 2}, 1).header.status, 0);
    EXPECT_EQ(b.client.call(kFn, {}, 2).header.status, CUDAQ_RPC_ERR_HANDLER_THREW);
    EXPECT_EQ(b.dispatcher->state(), CUDAQ_DISPATCHER_FAILED);
    const std::string text = b.dispatcher->dump();
    EXPECT_NE(text.find("function 0x0000004d has ended its thread"), std::string::npos) << text;
    EXPECT_EQ(cudaq_dispatcher_start(b.get()), CUDAQ_ERR_STATE);
    EXPECT_EQ(cudaq_dispatcher_stop(b.get()), CUDAQ_ERR_INTERNAL);
    EXPECT_TRUE(error_names({"cudaq_dispatcher_stop", "function 0x0000004d", "pthread_exit"}));
    EXPECT_EQ(b.dispatcher->state(), CUDAQ_DISPATCHER_FAILED);
    CUDAQ_EXPECT_OK(cudaq_dispatcher_stop(b.get()));
    EXPECT_EQ(b.dispatcher->state(), CUDAQ_DISPATCHER_STOPPED);
    const cudaq_dispatcher_stats_t stats = b.dispatcher->stats();
    EXPECT_EQ(stats.protocol_errors[kThrew], round);
    EXPECT_EQ(stats.responded, 2 * round);
    EXPECT_EQ(stats.in_flight, 0u);
    EXPECT_EQ(stats.busy_slots, 0u);
    EXPECT_EQ(detail::load_relaxed(b.dispatcher->processed), 2 * round);
  }
  b.start(); // goes on at the same cursor
  EXPECT_EQ(b.client.call(kOther, {1}, 3).header.status, 0);
}

// Every request that was accepted gets an answer. The others stay in their slots for the next run.
TEST_P(ThreadExit, LeavesNoAcceptedRequestWithoutAnAnswer) {
  for (std::uint32_t id = 0; id < 7; ++id)
    b.client.send(id == 2 ? kFn : kOther, {1}, id);
  b.start();
  EXPECT_TRUE(eventually([&] { return b.dispatcher->state() == CUDAQ_DISPATCHER_FAILED; }));
  EXPECT_EQ(cudaq_dispatcher_stop(b.get()), CUDAQ_ERR_INTERNAL);
  CUDAQ_EXPECT_OK(cudaq_dispatcher_stop(b.get()));
  std::uint32_t left = 0;
  for (std::uint32_t slot = 0; slot < 7; ++slot) {
    answer got;
    if (!b.client.try_collect(slot, got)) {
      ++left;
      continue;
    }
    const bool good = got.header.status == 0 || got.header.status == CUDAQ_RPC_ERR_SHUTTING_DOWN;
    EXPECT_TRUE(slot == 2 ? got.header.status == CUDAQ_RPC_ERR_HANDLER_THREW : good) << got.header.status;
    EXPECT_EQ(got.header.request_id, slot);
  }
  EXPECT_EQ(b.dispatcher->stats().responded, 7 - left);
  b.start();
  for (std::uint32_t slot = 7 - left; slot < 7; ++slot)
    EXPECT_EQ(b.client.collect(slot).header.status, 0);
  CUDAQ_EXPECT_OK(cudaq_dispatcher_stop(b.get()));
}

TEST_P(ThreadExit, IsReportedByDestroyOnlyAsAnEndedRun) {
  b.start();
  EXPECT_EQ(b.client.call(kFn, {}, 2).header.status, CUDAQ_RPC_ERR_HANDLER_THREW);
} // the fixture's destroy must return CUDAQ_OK

INSTANTIATE_TEST_SUITE_P(
    Paths, ThreadExit,
    ::testing::Values(flavour{"Inline", 0, false, false, false}, flavour{"InlineV2", 0, true, false, true},
                      flavour{"Pool", 2, false, false, false}, flavour{"OneOfAPoolV2", 1, true, false, true},
                      flavour{"Shared", 0, true, true, false}, flavour{"SharedPool", 2, false, true, false}),
    [](const auto &tested) { return std::string(tested.param.name); });

// The handler has given its job to another thread before it ends its own.
// Known failure 55.
TEST(ThreadExitOfDeferredJobs, AnswersTheJobOnce) {
  for (const std::uint32_t pool : {0u, 1u}) {
    bench b;
    cudaq_host_job_t job{};
    b.options.handler_pool_size = pool;
    b.on(kFn, [&](cudaq_host_call_t &call) -> std::int32_t {
      job = call.job;
      pthread_exit(nullptr);
    });
    b.on(kOther, [&](cudaq_host_call_t &call) -> std::int32_t {
      call.result_len = 0;
      CUDAQ_EXPECT_OK(cudaq_host_complete_deferred(b.get(), &call.job, 9, 0));
      pthread_exit(nullptr);
    });
    b.start();
    EXPECT_EQ(b.client.call(kFn, {}, 1).header.status, CUDAQ_RPC_ERR_HANDLER_THREW);
    EXPECT_EQ(cudaq_host_complete_deferred(b.get(), &job, 0, 0), CUDAQ_ERR_STATE);
    EXPECT_EQ(cudaq_dispatcher_stop(b.get()), CUDAQ_ERR_INTERNAL);
    CUDAQ_EXPECT_OK(cudaq_dispatcher_stop(b.get()));
    b.start();
    EXPECT_EQ(b.client.call(kOther, {}, 2).header.status, 9) << "the completion was accepted";
    EXPECT_EQ(cudaq_dispatcher_stop(b.get()), CUDAQ_ERR_INTERNAL);
  }
}

// Known failure 55.
TEST(ThreadExitInLoop, EndsTheCallersThreadAfterItsRequestsAreAnswered) {
  for (const std::uint32_t pool : {0u, 2u}) {
    host_ring ring({4, 64, false});
    cudaq_function_entry_t entries[] = {host_entry("exit", exit_v1), host_entry("reverse", reverse_handler)};
    volatile int shutdown = 0;
    std::uint64_t processed = 0;
    cudaq_dispatcher_options_t options = default_options();
    options.handler_pool_size = pool;
    HostDispatcherConfig config = loop_over(ring.ring);
    config.num_slots = 4;
    config.function_table = entries;
    config.function_table_count = 2;
    config.shutdown_flag = &shutdown;
    config.stats_counter = &processed;
    config.options = &options;
    std::atomic<int> status{-1};
    std::thread loop([&] { status = host_dispatcher_loop(config); });
    ring_client client(ring);
    EXPECT_EQ(client.call(entries[1].function_id, {1}, 1).header.status, 0);
    EXPECT_EQ(client.call(entries[0].function_id, {1}, 2).header.status, CUDAQ_RPC_ERR_HANDLER_THREW);
    loop.join();
    EXPECT_EQ(status, pool == 0 ? -1 : CUDAQ_ERR_INTERNAL) << "with a pool, the caller's thread returns";
    EXPECT_EQ(processed, 2u);
  }
}

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
