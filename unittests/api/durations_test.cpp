// SPDX-License-Identifier: Apache-2.0
// The durations of the C API at their boundary values. Under the sanitizers an overflow of a sum is an error, too.
#include "unittests/support/api_fixture.h"

namespace cudaq::realtime::test {
namespace {

constexpr std::uint32_t kFn = 77;
constexpr std::uint64_t kHuge[] = {std::uint64_t{1} << 62, INT64_MAX, std::uint64_t{INT64_MAX} + 1, UINT64_MAX};

/// Keeps one deferred call.
struct kept_call {
  cudaq_host_call_t call{};
  std::atomic<bool> there{false};
  handler_function handler() {
    return [this](cudaq_host_call_t &c) {
      call = c;
      there = true;
      return CUDAQ_HOST_CALL_DEFERRED;
    };
  }
};

// Known failure 44.
TEST(Durations, HugeGracePeriodWaitsForTheDeferredRequest) {
  for (const std::uint64_t grace : kHuge) {
    for (const std::uint32_t pool : {0u, 1u}) {
      kept_call kept;
      bench b;
      b.options.grace_period_ns = grace;
      b.options.handler_pool_size = pool;
      b.on(kFn, kept.handler());
      b.start();
      const std::uint32_t slot = b.client.send(kFn, {}, 1);
      ASSERT_TRUE(eventually([&] { return kept.there.load(); }));
      std::thread completer([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        CUDAQ_EXPECT_OK(cudaq_host_complete_deferred(b.get(), &kept.call.job, 5, 0));
      });
      CUDAQ_EXPECT_OK(cudaq_dispatcher_stop(b.get()));
      completer.join();
      EXPECT_EQ(b.client.collect(slot).header.status, 5) << grace;
    }
  }
}

TEST(Durations, HugeTimeoutWaitsForTheHandler) {
  for (const std::uint64_t timeout : kHuge) {
    gate closed;
    bench b;
    b.on(kFn, [&](cudaq_host_call_t &) { return closed.pass(), 6; });
    b.start();
    const std::uint32_t slot = b.client.send(kFn, {}, 1);
    ASSERT_TRUE(eventually([&] { return closed.occupied(); }));
    std::thread opener([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      closed.open();
    });
    CUDAQ_EXPECT_OK(cudaq_dispatcher_stop_timeout(b.get(), timeout));
    opener.join();
    EXPECT_EQ(b.client.collect(slot).header.status, 6) << timeout;
  }
}

TEST(Durations, LoopOnACallersThreadTakesHugeGracePeriods) {
  for (const std::uint64_t grace : kHuge) {
    host_ring ring({4, 64, false});
    cudaq_function_entry_t entry = host_entry("reverse", reverse_handler);
    volatile int shutdown = 0;
    std::uint64_t processed = 0;
    cudaq_dispatcher_options_t options = default_options();
    options.grace_period_ns = grace;
    HostDispatcherConfig config = loop_over(ring.ring);
    config.num_slots = 4;
    config.function_table = &entry;
    config.function_table_count = 1;
    config.shutdown_flag = &shutdown;
    config.stats_counter = &processed;
    config.options = &options;
    cudaq_status_t status = CUDAQ_ERR_INTERNAL;
    std::thread loop([&] { status = host_dispatcher_loop(config); });
    ring_client client(ring);
    EXPECT_EQ(client.call(entry.function_id, {1, 2}, 1).header.status, 0);
    store_release(shutdown, 1);
    loop.join();
    EXPECT_EQ(status, CUDAQ_OK) << grace;
  }
}

// Known failure 54.
TEST(Durations, BlockIntervalIsCheckedUnderEachWaitPolicy) {
  bench b;
  for (const std::uint32_t policy : {CUDAQ_WAIT_SPIN, CUDAQ_WAIT_SPIN_YIELD, CUDAQ_WAIT_BLOCK}) {
    b.options.wait_policy = policy;
    for (const std::uint64_t bad :
         {std::uint64_t{0}, std::uint64_t{100000001}, std::uint64_t{1} << 62, std::uint64_t{INT64_MAX}, UINT64_MAX}) {
      b.options.block_interval_ns = bad;
      EXPECT_EQ(cudaq_dispatcher_set_options(b.get(), &b.options), CUDAQ_ERR_INVALID_ARG) << policy << " " << bad;
      EXPECT_TRUE(error_names({"block_interval_ns", std::to_string(bad), "1..100000000"}));
    }
    for (const std::uint64_t good : {std::uint64_t{1}, std::uint64_t{100000000}}) {
      b.options.block_interval_ns = good;
      CUDAQ_EXPECT_OK(cudaq_dispatcher_set_options(b.get(), &b.options));
    }
  }
}

} // namespace
} // namespace cudaq::realtime::test
