// SPDX-License-Identifier: Apache-2.0
// The host loop over a CPU dataplane: every request is answered once, in its own slot, by any of the ways to answer.
#include "unittests/api/dataplane/dataplane_fixture.h"

namespace cudaq::realtime::test {
namespace {

using bytes = std::vector<std::uint8_t>;

TEST(CpuDataplane, AnswersRequestsInTheirSlots) {
  for (const bool in_place : {false, true}) {
    dataplane_bench b({8, 64, in_place});
    b.on(kIncrement, increment);
    b.start();
    for (std::uint32_t id = 1; id <= 100; ++id) {
      const answer got = b.provider.call(kIncrement, {static_cast<std::uint8_t>(id), 7}, id);
      EXPECT_EQ(got.header.status, CUDAQ_RPC_OK);
      EXPECT_EQ(got.result, (bytes{static_cast<std::uint8_t>(id + 1), 8}));
    }
    CUDAQ_EXPECT_OK(cudaq_dispatcher_stop(b.view.get));
    EXPECT_EQ(b.processed, 100u);
    EXPECT_EQ(b.provider.slots_with_the_loop(), 0u);
  }
}

TEST(CpuDataplane, CallsHandlersOfTheFunctionTable) {
  dataplane_bench b;
  cudaq_function_entry_t entry = host_entry("reverse", reverse_handler);
  const cudaq_function_table_t table{&entry, 1};
  CUDAQ_EXPECT_OK(cudaq_dispatcher_set_function_table(b.view.get, &table));
  b.start();
  EXPECT_EQ(b.provider.call(entry.function_id, {1, 2, 3}, 9).result, (bytes{3, 2, 1}));
}

TEST(CpuDataplane, AnswersAnEmptyResultToo) {
  dataplane_bench b;
  b.on(1, [](cudaq_host_call_t &) { return 0; });
  b.start();
  const answer got = b.provider.call(1, {5}, 3);
  EXPECT_EQ(got.header.status, CUDAQ_RPC_OK);
  EXPECT_TRUE(got.result.empty());
}

TEST(CpuDataplane, AnswersEveryRequestOfThePoolOnce) {
  constexpr std::uint32_t requests = 20000;
  for (const std::uint32_t ordering : {CUDAQ_ORDERING_FIFO, CUDAQ_ORDERING_ANY}) {
    dataplane_bench b({16, 64, false});
    b.options.handler_pool_size = 3;
    b.options.ordering = ordering;
    b.on(kIncrement, increment);
    b.start();
    for (std::uint32_t id = 0; id < requests; ++id)
      b.provider.send(kIncrement, {static_cast<std::uint8_t>(id)}, id);
    for (std::uint32_t id = 0; id < requests; ++id)
      ASSERT_EQ(b.provider.collect(id).result, bytes{static_cast<std::uint8_t>(id + 1)}) << id;
  }
}

// The answers come in the opposite order of the requests. A slot that is free again is used while others are open.
TEST(CpuDataplane, SendsDeferredAnswersInAnyOrder) {
  dataplane_bench b({4, 64, false});
  std::mutex mutex;
  std::vector<cudaq_host_job_t> open;
  b.on(1, [&](cudaq_host_call_t &call) {
    const std::lock_guard lock(mutex);
    open.push_back(call.job);
    return CUDAQ_HOST_CALL_DEFERRED;
  });
  b.on(kIncrement, increment);
  b.start();
  for (std::uint32_t round = 0; round < 50; ++round) {
    for (std::uint32_t id = 0; id < 3; ++id)
      b.provider.send(1, {}, id);
    ASSERT_TRUE(eventually([&] {
      const std::lock_guard lock(mutex);
      return open.size() == 3;
    }));
    EXPECT_EQ(b.provider.call(kIncrement, {1}, 100).result, bytes{2}) << "the fourth slot";
    const std::lock_guard lock(mutex);
    for (; !open.empty(); open.pop_back()) {
      CUDAQ_EXPECT_OK(cudaq_host_complete_deferred(b.view.get, &open.back(), 40, 0));
      EXPECT_EQ(b.provider.collect(open.back().request_id).header.status, 40);
    }
  }
}

TEST(CpuDataplane, GivesSlotsOfDroppedRequestsBack) {
  dataplane_bench b({2, 64, false});
  b.on(kIncrement, increment);
  b.start();
  for (std::uint32_t id = 1; id <= 20; ++id) {
    b.provider.send(0xDEAD, {}, id);
    b.provider.send(kIncrement, {1}, id, 0x12345678);
  }
  EXPECT_EQ(b.provider.call(kIncrement, {1}, 99).result, bytes{2});
  const cudaq_dispatcher_stats_t stats = b.view.stats();
  EXPECT_EQ(stats.dropped_unknown_function, 20u);
  EXPECT_EQ(stats.dropped_bad_magic, 20u);
  EXPECT_EQ(stats.responded, 1u);
}

TEST(CpuDataplane, AnswersUnknownFunctionsIfTheOptionIsSet) {
  dataplane_bench b({2, 64, false}, false);
  b.options.unknown_function = CUDAQ_UNKNOWN_FUNCTION_ANSWER;
  b.on(kIncrement, increment);
  b.start();
  for (std::uint32_t id = 1; id <= 20; ++id)
    EXPECT_EQ(b.provider.call(0xDEAD, {}, id).header.status, CUDAQ_RPC_ERR_NO_SUCH_FUNCTION);
}

TEST(CpuDataplane, LimitsResultsToTheFrameOfTheTransport) {
  dataplane_bench b({2, 64, false});
  CUDAQ_EXPECT_OK(cudaq_dispatcher_set_max_result_bytes(b.view.get, 8));
  std::uint32_t limit = 0, length = 8;
  b.on(1, [&](cudaq_host_call_t &call) {
    limit = call.max_result_len;
    call.result_len = length;
    return 0;
  });
  b.start();
  EXPECT_EQ(b.provider.call(1, {}, 1).header.status, CUDAQ_RPC_OK);
  EXPECT_EQ(limit, 8u);
  CUDAQ_EXPECT_OK(cudaq_dispatcher_stop(b.view.get));
  length = 9;
  b.start();
  EXPECT_EQ(b.provider.call(1, {}, 2).header.status, CUDAQ_RPC_ERR_RESULT_TOO_LARGE);
  CUDAQ_EXPECT_OK(cudaq_dispatcher_stop(b.view.get));
  CUDAQ_EXPECT_OK(cudaq_dispatcher_set_max_result_bytes(b.view.get, 1000));
  b.start();
  EXPECT_EQ(b.provider.call(1, {}, 3).header.status, CUDAQ_RPC_OK);
  EXPECT_EQ(limit, 40u) << "what a slot holds";
}

TEST(CpuDataplane, CountsErrorsOfTheProviderAndGoesOn) {
  dataplane_bench b({4, 64, false});
  gate hold;
  b.on(1, [&](cudaq_host_call_t &) {
    hold.pass();
    return 0;
  });
  b.on(kIncrement, increment);
  b.options.handler_pool_size = 1;
  b.start();
  b.provider.return_slot_once(4); // no such slot
  ASSERT_TRUE(eventually([&] { return b.view.stats().dataplane_errors == 1; }));
  b.provider.send(1, {}, 1);
  ASSERT_TRUE(eventually([&] { return hold.occupied(); }));
  for (std::uint32_t slot = 0; slot < 4; ++slot) { // one of them is with the loop; the others hold no frame
    b.provider.return_slot_once(slot);
    ASSERT_TRUE(eventually([&] { return b.provider.returned_it(); }));
  }
  hold.open();
  EXPECT_EQ(b.provider.collect(1).header.status, 0);
  ASSERT_TRUE(eventually([&] { return b.view.stats().dataplane_errors == 2; }));
  b.provider.publish_fails(true);
  b.provider.send(kIncrement, {1}, 2);
  ASSERT_TRUE(eventually([&] { return b.view.stats().dataplane_errors == 3; }));
  b.provider.publish_fails(false);
  EXPECT_EQ(b.provider.call(kIncrement, {1}, 3).result, bytes{2});
  EXPECT_NE(b.view.dump().find("errors of the dataplane 3"), std::string::npos);
}

TEST(CpuDataplane, ServesPeersOfManyThreads) {
  dataplane_bench b({8, 64, false});
  b.options.handler_pool_size = 2;
  b.options.ordering = CUDAQ_ORDERING_ANY;
  std::atomic<int> calls{0};
  b.on(kIncrement, [&](cudaq_host_call_t &call) {
    ++calls;
    return increment(call);
  });
  b.start();
  std::vector<std::thread> peers;
  for (std::uint32_t peer = 0; peer < 3; ++peer)
    peers.emplace_back([&b, peer] {
      for (std::uint32_t n = 0; n < 1000; ++n) {
        const std::uint32_t id = peer << 16 | n;
        const auto value = static_cast<std::uint8_t>(id * 7);
        ASSERT_EQ(b.provider.call(kIncrement, {value}, id).result, bytes{static_cast<std::uint8_t>(value + 1)});
      }
    });
  for (std::thread &t : peers)
    t.join();
  EXPECT_EQ(calls.load(), 3000);
}

} // namespace
} // namespace cudaq::realtime::test
