// SPDX-License-Identifier: Apache-2.0
// Which dispatchers may serve a ring together, and what a member finds when it joins.
#include "unittests/host_dispatcher/traffic.h"

namespace cudaq::realtime::test {
namespace {

constexpr ring_shape kShape{8, 256, false};

/// Records the order of the requests that it serves. With a gate it waits in its handler.
struct recorder {
  std::vector<std::uint32_t> ids; ///< FIFO, so only one thread writes at a time
  std::atomic<std::uint32_t> served{0};
  spin_gate *gate = nullptr;
  static std::int32_t serve(cudaq_host_call_t *call, void *user) {
    auto &self = *static_cast<recorder *>(user);
    if (self.gate != nullptr)
      self.gate->pass();
    self.ids.push_back(call->job.request_id);
    ++self.served;
    return 0;
  }
};

class SharedRingMember : public ::testing::Test {
protected:
  std::unique_ptr<host_dispatcher_handle> make(std::vector<std::uint32_t> functions, bool shared = true,
                                               bool default_owner = false, std::uint32_t slot_size = kShape.slot_size) {
    cudaq_dispatcher_config_t config = host_config(kShape);
    config.shared_ring_mode = shared;
    config.slot_size = slot_size;
    auto made =
        std::make_unique<host_dispatcher_handle>(manager.get, ring, std::vector<cudaq_function_entry_t>{}, config);
    cudaq_dispatcher_options_t options = default_options();
    options.default_owner = default_owner;
    options.unknown_function = CUDAQ_UNKNOWN_FUNCTION_ANSWER;
    CUDAQ_EXPECT_OK(cudaq_dispatcher_set_options(made->get, &options));
    for (std::uint32_t f : functions)
      CUDAQ_EXPECT_OK(cudaq_dispatcher_set_host_handler_v2(made->get, f, recorder::serve, &seen, nullptr));
    return made;
  }
  bool stays_empty(std::uint32_t slot, std::chrono::milliseconds time = std::chrono::milliseconds(20)) {
    return !eventually([&] { return cudaq_host_ringbuffer_poll_tx_flag(&ring.ring, slot, nullptr) != CUDAQ_TX_EMPTY; },
                       time);
  }
  /// All other options keep their defaults.
  static void give_one_pool_thread(cudaq_dispatcher_t *dispatcher) {
    cudaq_dispatcher_options_t options = default_options();
    options.handler_pool_size = 1;
    CUDAQ_EXPECT_OK(cudaq_dispatcher_set_options(dispatcher, &options));
  }
  /// Stops `shared`, which serves function 1, while its handler waits. The handler continues at the end.
  void expect_stuck_handler_keeps_others_away(cudaq_dispatcher_t *shared) {
    seen.gate = &gate;
    const auto alone = make({1}, false);
    CUDAQ_ASSERT_OK(cudaq_dispatcher_start(shared));
    const std::uint32_t slot = client.send(1, {}, 70);
    ASSERT_TRUE(eventually([&] { return gate.waiting.load() == 1; }));
    EXPECT_EQ(cudaq_dispatcher_stop_timeout(shared, 10000000), CUDAQ_ERR_TIMEOUT);
    EXPECT_EQ(cudaq_dispatcher_start(alone->get), CUDAQ_ERR_STATE);
    gate.open.store(true);
    client.collect(slot);
    EXPECT_EQ(seen.served.load(), 1u);
  }

  host_ring ring{kShape};
  manager_handle manager;
  ring_client client{ring};
  recorder seen;
  spin_gate gate;
};

// Known failure 14.
TEST_F(SharedRingMember, IsRefusedTheFunctionOfAnother) {
  const auto a = make({1, 2}), b = make({3, 2});
  CUDAQ_ASSERT_OK(cudaq_dispatcher_start(a->get));
  EXPECT_EQ(cudaq_dispatcher_start(b->get), CUDAQ_ERR_INVALID_ARG);
  EXPECT_NE(std::strstr(cudaq_last_error_message(), "0x00000002"), nullptr) << cudaq_last_error_message();
  CUDAQ_EXPECT_OK(cudaq_dispatcher_stop(a->get));
  CUDAQ_EXPECT_OK(cudaq_dispatcher_start(b->get));
  EXPECT_EQ(client.call(3, {}, 7).header.request_id, 7u);
}

TEST_F(SharedRingMember, IsRefusedASecondDefaultOwnership) {
  const auto a = make({1}, true, true), b = make({2}, true, true);
  CUDAQ_ASSERT_OK(cudaq_dispatcher_start(a->get));
  EXPECT_EQ(cudaq_dispatcher_start(b->get), CUDAQ_ERR_INVALID_ARG);
  EXPECT_NE(std::strstr(cudaq_last_error_message(), "default_owner"), nullptr) << cudaq_last_error_message();
}

TEST_F(SharedRingMember, AndADispatcherWithoutTheModeExcludeEachOther) {
  const auto shared = make({1}), alone = make({2}, false);
  CUDAQ_ASSERT_OK(cudaq_dispatcher_start(shared->get));
  EXPECT_EQ(cudaq_dispatcher_start(alone->get), CUDAQ_ERR_STATE);
  EXPECT_STRNE(cudaq_last_error_message(), "");
  CUDAQ_EXPECT_OK(cudaq_dispatcher_stop(shared->get));
  CUDAQ_EXPECT_OK(cudaq_dispatcher_start(alone->get));
  EXPECT_EQ(cudaq_dispatcher_start(shared->get), CUDAQ_ERR_STATE);
}

TEST_F(SharedRingMember, IsRefusedAnotherGeometry) {
  const auto a = make({1}), b = make({2}, true, false, 128);
  CUDAQ_ASSERT_OK(cudaq_dispatcher_start(a->get));
  EXPECT_EQ(cudaq_dispatcher_start(b->get), CUDAQ_ERR_INVALID_ARG);
  EXPECT_NE(std::strstr(cudaq_last_error_message(), "128"), nullptr) << cudaq_last_error_message();
}

// Both starts may check the ring before either dispatcher has joined it.
TEST_F(SharedRingMember, AndADispatcherWithoutTheModeExcludeEachOtherWhenTheyStartAtOnce) {
  const auto shared = make({1}), alone = make({2}, false);
  for (int round = 0; round < 300 && !HasFailure(); ++round) {
    std::atomic<int> ready{0};
    cudaq_status_t status[2];
    const auto start = [&](int which, cudaq_dispatcher_t *d) {
      ++ready;
      eventually([&] { return ready.load() == 2; });
      status[which] = cudaq_dispatcher_start(d);
    };
    std::thread other(start, 1, alone->get);
    start(0, shared->get);
    other.join();
    EXPECT_FALSE(status[0] == CUDAQ_OK && status[1] == CUDAQ_OK) << "both dispatchers serve the ring, round " << round;
    CUDAQ_EXPECT_OK(cudaq_dispatcher_stop(shared->get));
    CUDAQ_EXPECT_OK(cudaq_dispatcher_stop(alone->get));
  }
}

// The stuck handler still uses a slot. No other dispatcher may take that slot.
TEST_F(SharedRingMember, ThatFailedToStopKeepsADispatcherWithoutTheModeAway) {
  const auto shared = make({1});
  ASSERT_NO_FATAL_FAILURE(expect_stuck_handler_keeps_others_away(shared->get));
}

// The same with a pool: the loop has ended and left the ring, but the pool thread is still in the handler.
TEST_F(SharedRingMember, WhosePoolIsStuckKeepsADispatcherWithoutTheModeAway) {
  const auto shared = make({1});
  give_one_pool_thread(shared->get);
  ASSERT_NO_FATAL_FAILURE(expect_stuck_handler_keeps_others_away(shared->get));
  CUDAQ_EXPECT_OK(cudaq_dispatcher_stop(shared->get));
}

// Accepted requests of a function must be served before later ones.
TEST_F(SharedRingMember, ThatIsStillStoppingKeepsItsFunctions) {
  seen.gate = &gate;
  const auto a = make({1}), b = make({1});
  give_one_pool_thread(a->get);
  CUDAQ_ASSERT_OK(cudaq_dispatcher_start(a->get));
  for (std::uint32_t id = 0; id < 3; ++id)
    client.send(1, {}, id);
  ASSERT_TRUE(eventually([&] { return gate.waiting.load() == 1 && a->stats().received == 3; }));
  EXPECT_EQ(cudaq_dispatcher_stop_timeout(a->get, 10000000), CUDAQ_ERR_TIMEOUT);
  EXPECT_NE(cudaq_dispatcher_start(b->get), CUDAQ_OK) << "request 0 is in its handler, 1 and 2 wait";
  gate.open.store(true);
  for (std::uint32_t slot = 0; slot < 3; ++slot)
    client.collect(slot);
  CUDAQ_EXPECT_OK(cudaq_dispatcher_stop(a->get));
  EXPECT_EQ(seen.ids, (std::vector<std::uint32_t>{0, 1, 2}));
}

TEST_F(SharedRingMember, FindsTheRequestsThatWaitedForItInOrder) {
  const auto a = make({1}), b = make({2});
  CUDAQ_ASSERT_OK(cudaq_dispatcher_start(a->get));
  for (std::uint32_t id = 0; id < 6; ++id)
    client.send(1 + id % 2, {}, id);
  for (std::uint32_t slot : {0u, 2u, 4u})
    client.collect(slot);
  EXPECT_TRUE(stays_empty(1) && stays_empty(3) && stays_empty(5));
  EXPECT_EQ(seen.ids, (std::vector<std::uint32_t>{0, 2, 4}));
  CUDAQ_ASSERT_OK(cudaq_dispatcher_start(b->get));
  for (std::uint32_t slot : {1u, 3u, 5u})
    client.collect(slot);
  CUDAQ_EXPECT_OK(cudaq_dispatcher_stop(b->get));
  CUDAQ_EXPECT_OK(cudaq_dispatcher_stop(a->get));
  EXPECT_EQ(seen.ids, (std::vector<std::uint32_t>{0, 2, 4, 1, 3, 5}));
}

// The refused start must not lose the request that was routed to it.
TEST_F(SharedRingMember, WhosePoolCouldNotStartLosesNoRequest) {
  const auto a = make({1}), b = make({2});
  CUDAQ_ASSERT_OK(cudaq_dispatcher_start(a->get));
  const std::uint32_t slot = client.send(2, {}, 9);
  client.call(1, {}, 10); // by now request 9 was read and left in place
  cudaq_dispatcher_options_t options = default_options();
  options.handler_pool_size = 2;
  options.handler_core_base = 1000;
  CUDAQ_ASSERT_OK(cudaq_dispatcher_set_options(b->get, &options));
  EXPECT_NE(cudaq_dispatcher_start(b->get), CUDAQ_OK);
  options.handler_core_base = CUDAQ_CORE_ANY;
  CUDAQ_ASSERT_OK(cudaq_dispatcher_set_options(b->get, &options));
  CUDAQ_ASSERT_OK(cudaq_dispatcher_start(b->get));
  answer got;
  ASSERT_TRUE(eventually([&] { return client.try_collect(slot, got); }));
  EXPECT_EQ(got.header.request_id, 9u);
}

// The router must not serve a parked request that another dispatcher has served in the meantime.
TEST_F(SharedRingMember, DoesNotServeAgainWhatADispatcherWithoutTheModeServed) {
  const auto a = make({1}), owner = make({2}), alone = make({2}, false);
  CUDAQ_ASSERT_OK(cudaq_dispatcher_start(a->get));
  const std::uint32_t slot = client.send(2, {}, 9);
  client.call(1, {}, 10);
  CUDAQ_ASSERT_OK(cudaq_dispatcher_stop(a->get));
  CUDAQ_ASSERT_OK(cudaq_dispatcher_start(alone->get));
  EXPECT_EQ(client.collect(slot).header.request_id, 9u);
  CUDAQ_ASSERT_OK(cudaq_dispatcher_stop(alone->get));
  CUDAQ_ASSERT_OK(cudaq_dispatcher_start(owner->get));
  EXPECT_TRUE(stays_empty(slot)) << "an answer to a request that was served already";
  EXPECT_EQ(seen.ids, (std::vector<std::uint32_t>{10, 9}));
}

// If no dispatcher is wired to a ring any more, a ring at the same address may be a new one: the allocator reuses
// addresses.
TEST_F(SharedRingMember, BeginsAtSlotZeroOfARingThatNoDispatcherIsWiredTo) {
  {
    const auto a = make({1});
    CUDAQ_ASSERT_OK(cudaq_dispatcher_start(a->get));
    for (std::uint32_t id = 0; id < 4; ++id)
      client.call(1, {}, id);
    client.send(2, {}, 4); // parked, then forgotten with its ring
    client.call(1, {}, 5);
  }
  for (std::uint32_t i = 0; i < kShape.num_slots; ++i)
    ring.ring.rx_flags_host[i] = 0;
  seen.ids.clear();
  client.set_next_slot(0);
  for (std::uint32_t id = 0; id < kShape.num_slots; ++id)
    client.send(1, {}, 100 + id);
  const auto b = make({1});
  CUDAQ_ASSERT_OK(cudaq_dispatcher_start(b->get));
  for (std::uint32_t slot = 0; slot < kShape.num_slots; ++slot) {
    answer got;
    ASSERT_TRUE(eventually([&] { return client.try_collect(slot, got); })) << "slot " << slot;
  }
  CUDAQ_EXPECT_OK(cudaq_dispatcher_stop(b->get));
  EXPECT_EQ(seen.ids, (std::vector<std::uint32_t>{100, 101, 102, 103, 104, 105, 106, 107}));
}

// The counters may be read at any time, also while a start with another geometry replaces the job table that holds
// them.
TEST_F(SharedRingMember, CanBeObservedWhileItsRingIsWiredAnew) {
  host_ring other(kShape);
  cudaq_ringbuffer_t rings[2] = {ring.ring, ring.ring};
  rings[1].tx_data_host = other.ring.tx_data_host;
  const auto a = make({1});
  std::atomic<bool> end{false};
  std::thread observer([&] {
    while (!end.load())
      EXPECT_LE(a->stats().in_flight, kShape.num_slots);
  });
  for (int round = 0; round < 60 && !HasFailure(); ++round) {
    CUDAQ_EXPECT_OK(cudaq_dispatcher_set_ringbuffer(a->get, &rings[round % 2]));
    CUDAQ_EXPECT_OK(cudaq_dispatcher_start(a->get));
    CUDAQ_EXPECT_OK(cudaq_dispatcher_stop(a->get));
  }
  end.store(true);
  observer.join();
}

TEST_F(SharedRingMember, ThatIsSlowDoesNotHoldUpAnother) {
  recorder fast;
  seen.gate = &gate;
  const auto slow = make({1}), quick = make({});
  CUDAQ_ASSERT_OK(cudaq_dispatcher_set_host_handler_v2(quick->get, 2, recorder::serve, &fast, nullptr));
  CUDAQ_ASSERT_OK(cudaq_dispatcher_start(slow->get));
  CUDAQ_ASSERT_OK(cudaq_dispatcher_start(quick->get));
  const std::uint32_t stuck = client.send(1, {}, 0);
  EXPECT_TRUE(eventually([&] { return gate.waiting.load() == 1; }));
  for (std::uint32_t id = 1; id < kShape.num_slots; ++id)
    EXPECT_EQ(client.call(2, {}, id).header.request_id, id);
  gate.open.store(true);
  client.collect(stuck);
}

TEST_F(SharedRingMember, StopsAndRestartsInTraffic) {
  constexpr std::uint32_t kEach = 200000;
  checked_function one(1, kEach), two(2, kEach);
  const auto a = make({}), b = make({});
  serve_checked(*a, one);
  serve_checked(*b, two);
  CUDAQ_ASSERT_OK(cudaq_dispatcher_start(a->get));
  CUDAQ_ASSERT_OK(cudaq_dispatcher_start(b->get));
  traffic_plan plan;
  plan.functions = {&one, &two};
  plan.messages = load_size(whole_or_sample(kEach, kEach / 4));
  traffic load(ring, plan);
  load.run_in_background();
  std::mt19937 random(7);
  while (load.collected() < plan.messages) {
    cudaq_dispatcher_t *d = random() % 2 ? a->get : b->get;
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 2000));
    CUDAQ_EXPECT_OK(cudaq_dispatcher_stop(d));
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 500));
    CUDAQ_ASSERT_OK(cudaq_dispatcher_start(d));
    if (HasFailure())
      break;
  }
  load.wait();
  load.expect_clean();
}

} // namespace
} // namespace cudaq::realtime::test
