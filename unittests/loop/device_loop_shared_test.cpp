// SPDX-License-Identifier: Apache-2.0
// Host dispatchers and the loop of the device kernels on one ring. A CPU thread runs the loop.
#include "unittests/loop/cpu_kernel.h"
#include "unittests/support/test_scale.h"

namespace cudaq::realtime::test {
namespace {

constexpr std::uint32_t kEach = 2; ///< functions per dispatcher

/// Functions 1 to count, and traffic for all of them.
struct checked_functions {
  checked_functions(std::uint32_t count, std::uint32_t messages) {
    plan.messages = messages;
    plan.unknown_of_100 = 10;
    for (std::uint32_t id = 1; id <= count; ++id) {
      all.push_back(std::make_unique<checked_function>(id, messages));
      checked_function::v1_by_id[id] = all.back().get();
      plan.functions.push_back(all.back().get());
    }
  }
  std::vector<std::unique_ptr<checked_function>> all;
  traffic_plan plan;
};

TEST(DeviceLoopShared, StopsAndRestartsInTraffic) {
  const host_ring ring({8, 128, false});
  const manager_handle manager;
  checked_functions functions(2 * kEach, load_size(100000));
  functions.plan.unknown_of_100 = 0;
  const auto host = make_shared_host(manager.get, ring, 0,
                                     false); // not a default owner: that one would answer while the kernel is stopped
  for (std::uint32_t k = 0; k < kEach; ++k)
    serve_checked(*host, *functions.all[k]);
  cpu_kernel kernel(manager, ring, kEach + 1);
  CUDAQ_ASSERT_OK(cudaq_dispatcher_start(host->get));
  ASSERT_TRUE(kernel.start().ok());
  traffic load(ring, functions.plan);
  load.run_in_background();
  std::mt19937 random(7);
  while (load.collected() < functions.plan.messages && !HasFailure()) {
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 2000));
    if (random() % 2 == 0) {
      kernel.stop();
      EXPECT_TRUE(kernel.start().ok());
    } else {
      CUDAQ_EXPECT_OK(cudaq_dispatcher_stop(host->get));
      CUDAQ_EXPECT_OK(cudaq_dispatcher_start(host->get));
    }
  }
  load.wait();
  load.expect_clean();
}

// A host dispatcher does not route while it runs a handler, so the thread of the kernel's member must route.
TEST(DeviceLoopShared, ServesOnWhileTheHostDispatcherIsStuckInAHandler) {
  const host_ring ring({8, 128, false});
  const manager_handle manager;
  checked_functions functions(2 * kEach, 100);
  const auto host = make_shared_host(manager.get, ring);
  spin_gate gate;
  CUDAQ_ASSERT_OK(cudaq_dispatcher_set_host_handler_v2(
      host->get, 1,
      [](cudaq_host_call_t *, void *user) -> std::int32_t {
        static_cast<spin_gate *>(user)->pass();
        return 0;
      },
      &gate, nullptr));
  cpu_kernel kernel(manager, ring, kEach + 1);
  CUDAQ_ASSERT_OK(cudaq_dispatcher_start(host->get));
  ASSERT_TRUE(kernel.start().ok());
  ring_client client(ring);
  const std::uint32_t stuck = client.send(1, {}, 0);
  ASSERT_TRUE(eventually([&] { return gate.waiting.load() == 1; }));
  for (std::uint32_t id = 1; id < 8; ++id)
    EXPECT_EQ(client.call(kEach + 1, {}, id).header.request_id, id);
  gate.open.store(true);
  client.collect(stuck);
}

TEST(DeviceLoopShared, EndedByTheCallersFlagLeavesItsRequestsToTheDefaultOwner) {
  const host_ring ring({4, 128, false});
  const manager_handle manager;
  checked_functions functions(2 * kEach, 100);
  const auto host = make_shared_host(manager.get, ring);
  serve_checked(*host, *functions.all[0]);
  cpu_kernel kernel(manager, ring, kEach + 1);
  CUDAQ_ASSERT_OK(cudaq_dispatcher_start(host->get));
  ASSERT_TRUE(kernel.start().ok());
  ring_client client(ring);
  EXPECT_EQ(client.call(kEach + 1, {}, 1).header.status, 0);
  kernel.end_by_callers_flag();
  for (std::uint32_t id = 2; id < 12; ++id) // several laps; the first requests may already be in the inbox
    EXPECT_EQ(client.call(kEach + 1, {}, id).header.status, CUDAQ_RPC_ERR_NO_SUCH_FUNCTION);
}

// A request away from the cursor waits until the router checks the whole ring. A router that sleeps must do so at each
// wake-up.
TEST(DeviceLoopShared, ARouterThatSleepsFindsRequestsAwayFromTheCursor) {
  const host_ring ring({16, 128, false});
  const manager_handle manager;
  checked_functions functions(kEach, 100);
  cpu_kernel kernel(manager, ring, 1);
  kernel.wait_policy = CUDAQ_WAIT_BLOCK; // 0.1 ms
  ASSERT_TRUE(kernel.start().ok());
  ring_client client(ring);
  std::this_thread::sleep_for(std::chrono::milliseconds(50)); // by now the router sleeps
  const auto time_of_calls = [&](std::uint32_t first, std::uint32_t stride) {
    const auto begun = std::chrono::steady_clock::now();
    for (std::uint32_t id = first; id < first + 119; ++id) {
      client.set_next_slot((id * stride) % 16);
      EXPECT_EQ(client.call(1, {}, id).header.request_id, id);
    }
    return std::chrono::steady_clock::now() - begun;
  };
  bool quick = false;
  for (std::uint32_t run = 0; run < 5 && !quick; ++run) { // the machine may stand still in one
    const auto away = time_of_calls(240 * run + 1, 7), in_order = time_of_calls(240 * run + 120, 1);
    quick = away < std::chrono::seconds(2) + 20 * in_order;
  }
  EXPECT_TRUE(quick) << "256 sleeps per request would take longer";
}

/// A loop without a router, as cudaq_dispatch_kernel_set_shared_ring_mode makes it for a direct launch.
class LeavingLoop : public ::testing::Test {
protected:
  void start(loop_host &host) {
    host.start_with<false>(leaving_transport<yielding_thread_group>(host.params.ring, 0, host.params.index,
                                                                    host.params.rules.served_modes));
  }
  void stop(loop_host &host) {
    store_release(host.library_word, std::uint32_t{1});
    host.join();
  }
};

// Known failure 14.
TEST_F(LeavingLoop, LeavesOthersAndBadFramesInPlaceAndSeesTheirRefill) {
  const host_ring ring({4, 128, false});
  checked_functions functions(kEach, 100);
  loop_host host(ring, 1, 1, kEach);
  start(host);
  ring_client client(ring);
  CUDAQ_ASSERT_OK(cudaq_host_ringbuffer_write_rpc_request(&ring.ring, 0, 1, nullptr, 0, 1, 0));
  ring.rx_slot(0)[0] ^= 1; // destroys the magic number
  cudaq_host_ringbuffer_signal_slot(&ring.ring, 0);
  client.set_next_slot(1);
  const std::uint32_t foreign = client.send(9, {}, 2);
  EXPECT_EQ(client.call(2, {}, 3).header.request_id, 3u);
  EXPECT_EQ(client.call(1, {}, 4).header.request_id, 4u);
  const slot_ring view = host_view(ring);
  EXPECT_TRUE(view.ready(0) != 0 && view.collected(0)) << "the bad frame must stay";
  EXPECT_TRUE(view.ready(foreign) != 0 && view.collected(foreign)) << "the request for another dispatcher must stay";
  for (std::uint32_t id = 5; id < 8; ++id) { // as if another dispatcher had served both slots; then they are refilled
    view.release_rx(0);
    view.release_rx(foreign);
    client.set_next_slot(0);
    EXPECT_EQ(client.call(1, {}, id).header.request_id, id);
    EXPECT_EQ(client.call(2, {}, id).header.request_id, id);
    client.set_next_slot(0);
    client.send(9, {}, id);
    client.send(9, {}, id);
  }
  stop(host);
  const loop_report &r = host.reports[0];
  EXPECT_EQ(r.dropped_unknown_function + r.dropped_bad_magic + r.refused, 0u);
}

// Two such loops share a ring, and each leaves the other's requests in place. No order is promised.
TEST_F(LeavingLoop, TwoOfThemAnswerEveryRequestOnce) {
  for (const ring_shape &shape : {ring_shape{2, 128, false}, ring_shape{64, 128, false}}) {
    const host_ring ring(shape);
    checked_functions functions(2 * kEach, load_size(50000));
    functions.plan.unknown_of_100 = 0;
    loop_host one(ring, 1, 1, kEach), other(ring, 1, 1 + kEach, kEach);
    start(one);
    start(other);
    traffic load(ring, functions.plan);
    load.run();
    stop(one);
    stop(other);
    load.expect_clean(false);
    EXPECT_EQ(one.reports[0].responded + other.reports[0].responded, functions.plan.messages);
  }
}

} // namespace
} // namespace cudaq::realtime::test
